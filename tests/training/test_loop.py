"""The training loop: learning, resuming, errors, and equal results for any number of workers."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
import torch.distributed as dist

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, NonFiniteError, RunError
from dice_ray.run import build, single, trained
from dice_ray.tasks.base import Scores
from dice_ray.tasks.text_classification import _OneLabel
from dice_ray.training import batches, loop, precision
from dice_ray.training.loop import Evaluation, StepProgress
from tests.training.test_step import run_workers

PRESET = Layer(
    "preset", {"task": "sentence_pair", "data": {"source": {"synthetic": {"size": 200, "positive_share": 0.3}}}}
)


def small(**values: Any) -> RunConfig:
    settings: dict[str, Any] = {"training.epochs": 2, "training.batch_size": 16, "training.lr": 2e-3}
    settings |= {"training.evaluations": 5, "training.precision": "fp32"}
    paths = {path.replace("__", "."): value for path, value in values.items()}
    return resolve([PRESET, values_layer("test", settings | paths)])


def script(monkeypatch: pytest.MonkeyPatch, **metrics: Iterable[float]) -> None:
    """Let the evaluations of a run have these values of metrics, one after the other."""
    score, rows = _OneLabel.score, zip(*metrics.values(), strict=True)

    def scripted(*arguments: Any) -> Scores:
        scores = score(*arguments)
        return replace(scores, metrics=scores.metrics | dict(zip(metrics, next(rows), strict=True)))

    monkeypatch.setattr(_OneLabel, "score", scripted)


def timeless(run: Iterable[Evaluation]) -> list[Evaluation]:
    """A run's evaluations without their times."""
    timed = {"train/tokens_per_second": 0.0, "train/seconds": 0.0}
    return [replace(each, metrics=each.metrics | timed) for each in run]


def test_evaluations_are_evenly_spaced_and_the_last_is_the_end(tmp_path: Path) -> None:
    evaluations = timeless(single.evaluations(small(), tmp_path))
    assert [evaluation.step for evaluation in evaluations] == [5, 10, 15, 20, 25]
    assert [evaluation.finished for evaluation in evaluations] == [False] * 4 + [True]
    assert evaluations[-1].epoch == 2.0
    assert {"train/loss", "dev/f1", "dev/f1_tuned", "dev/collapsed"} <= set(evaluations[-1].metrics)
    rates = [evaluation.metrics["train/lr"] for evaluation in evaluations]
    assert rates == sorted(rates, reverse=True)
    assert 0 < rates[-1] < rates[0] < 2e-3


@pytest.mark.parametrize(("last", "seconds"), [(12, 60), (5, 0)], ids=["at an evaluation", "before one"])
def test_free_memory_is_returned_where_the_c_library_can(
    last: int, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_RELEASE_SECONDS", seconds)
    list(single.evaluations(small(training__evaluations=1, training__epochs=1), tmp_path / "first"))
    in_use = [torch.ones(2**14) for _ in range(6400)][::100]  # 4 MB of 400 MB
    before = psutil.Process().memory_info().rss
    run = single.train(small(training__evaluations=1, training__epochs=1), tmp_path / "second")
    assert [each.step for each in itertools.islice(run, last)][-1] == last
    given_back = before - psutil.Process().memory_info().rss
    assert given_back > 200 * 2**20 or not hasattr(ctypes.CDLL(None), "malloc_trim")
    assert all(each.sum() == 2**14 for each in in_use)


def test_every_other_step_yields_its_progress(tmp_path: Path) -> None:
    evaluations = list(single.train(small(training__evaluations=2), tmp_path))
    assert [each.step for each in evaluations] == list(range(1, 26))
    assert [each.step for each in evaluations if isinstance(each, Evaluation)] == [12, 25]
    steps = [each for each in evaluations if isinstance(each, StepProgress)]
    assert {each.num_steps for each in steps} == {25}
    assert steps[-1].epoch == pytest.approx(24 * 16 / 200)
    assert max(each.lr for each in steps) == pytest.approx(2e-3, rel=0.1)
    assert all(0 <= each.padding < 0.5 and each.tokens_per_second > 100 for each in steps)
    lengths = [len(row["input_ids"]) for row in build.prepare(small()).train.rows]
    assert steps[0].num_tokens == sum(lengths[row] for row in batches.Steps(lengths, 16, 1).rows(0))
    assert all(0 < later.num_tokens - before.num_tokens < 16 * max(lengths) * 2 for before, later in pairwise(steps))
    first = evaluations[11]
    assert isinstance(first, Evaluation)
    losses = [each.loss for each in steps[:11]]
    assert min(losses) < 12 * first.metrics["train/loss"] - sum(losses) < 1.2 * max(losses)


@pytest.mark.parametrize(
    "loss", [{"loss": "dice"}, {"loss.ldam.weighting": "inverse", "loss.ldam.reweight_after": 0.5}]
)
def test_an_interrupted_run_yields_its_history_and_ends_like_an_uninterrupted_one(
    tmp_path: Path, loss: dict[str, Any]
) -> None:
    """Weights that begin at a share of the steps began anew in a resumed run."""
    config = small(**loss)
    whole = timeless(single.evaluations(config, tmp_path / "whole"))
    stopped = single.evaluations(config, tmp_path / "stopped")
    first = timeless(next(stopped) for _ in range(random.randint(1, 4)))
    del stopped
    resumed = timeless(single.evaluations(config, tmp_path / "stopped"))
    assert resumed == whole
    assert [each.is_past for each in resumed] == [True] * len(first) + [False] * (len(whole) - len(first))
    assert whole[: len(first)] == first
    states = [torch.load(tmp_path / name / "last.pt") for name in ("whole", "stopped")]
    torch.testing.assert_close(states[0]["model"], states[1]["model"], rtol=0, atol=0)


def test_the_loss_is_told_how_much_of_the_training_is_done(tmp_path: Path) -> None:
    """Else class weights that begin later would never begin."""
    after: dict[str, Any] = {
        "loss.weighted_cross_entropy.weighting": "inverse",
        "loss.weighted_cross_entropy.reweight_after": 0.5,
    }
    losses = [
        [each.metrics["train/loss"] for each in single.evaluations(small(**values), tmp_path / str(number))]
        for number, values in enumerate((after, {"loss": "cross_entropy"}))
    ]
    assert [one == other for one, other in zip(*losses, strict=True)] == [True, True, False, False, False]


def test_the_state_of_another_version_is_named(tmp_path: Path) -> None:
    stopped = single.evaluations(small(), tmp_path)
    next(stopped)
    stopped.close()
    state = torch.load(tmp_path / "last.pt")
    for name, odd in (("tally", {"other": 1}), ("history", [{"step": 5}]), ("optimizer", None)):
        torch.save(state | {name: odd}, tmp_path / "last.pt")
        with pytest.raises(RunError, match=r"last\.pt must hold a state as this version stores it, and "):
            list(single.evaluations(small(), tmp_path))


@pytest.mark.parametrize(
    ("num_asks", "step", "num_evaluations"),
    [pytest.param(3, 3, 0, id="step"), pytest.param(6, 5, 0, id="evaluation"), pytest.param(9, 5, 1, id="evaluated")],
)
def test_a_run_that_is_asked_to_stop_loses_no_step(
    tmp_path: Path, num_asks: int, step: int, num_evaluations: int
) -> None:
    """Ctrl-C lost all steps since the last evaluation: between two, a checkpoint is due every ten minutes alone.

    The run asks after each step, and before each of the four micro-batches of the evaluation after step 5.
    """
    config = small(loss="dice", training__tokens=700)
    whole = timeless(single.evaluations(config, tmp_path / "whole"))
    asks = count(1)
    events = list(single.train(config, tmp_path / "stopped", lambda: next(asks) >= num_asks))
    assert torch.load(tmp_path / "stopped/last.pt")["step"] == step
    assert sum(isinstance(event, Evaluation) for event in events) == num_evaluations
    assert timeless(single.evaluations(config, tmp_path / "stopped")) == whole
    states = [torch.load(tmp_path / name / "last.pt") for name in ("whole", "stopped")]
    torch.testing.assert_close(states[0]["model"], states[1]["model"], rtol=0, atol=0)


def test_a_finished_run_only_yields_its_history(tmp_path: Path) -> None:
    whole = timeless(single.evaluations(small(), tmp_path))
    written = (tmp_path / "last.pt").stat().st_mtime_ns
    assert timeless(single.evaluations(small(), tmp_path)) == whole
    assert (tmp_path / "last.pt").stat().st_mtime_ns == written


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    first, again, other = (
        timeless(single.evaluations(small(training__seed=seed), tmp_path / name))
        for name, seed in (("first", 1), ("again", 1), ("other", 2))
    )
    assert first == again != other


def test_the_best_checkpoint_is_the_one_scored(tmp_path: Path) -> None:
    config = small(loss="dice", training__epochs=3, training__lr=1e-2, training__schedule="constant")
    evaluations = timeless(single.evaluations(config, tmp_path))
    best = max(evaluation.metrics["dev/f1"] for evaluation in evaluations)
    assert single.score(config, tmp_path, "dev")["dev/f1"] == best > 0.3


@pytest.mark.parametrize(
    ("f1", "pr_auc", "best"),
    [
        ([0.2, 0.6, 0.6, 0.4], [0.5, 0.7, 0.7, 0.9], 1),
        ([0.2, 0.6, 0.6, 0.4], [0.5, 0.7, 0.8, 0.9], 2),
        ([0.0, 0.0, 0.0, 0.0], [math.nan, 0.3, 0.5, 0.4], 2),
    ],
    ids=["the first", "by PR-AUC", "predicts one class only"],
)
def test_the_best_checkpoint_is_that_of_the_highest_score_and_of_equal_ones_that_of_the_highest_pr_auc(
    f1: list[float], pr_auc: list[float], best: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of evaluations that all predict one class, the first one was kept, which has learned least."""
    script(monkeypatch, f1=f1, pr_auc=pr_auc)
    evaluations = list(single.evaluations(small(training__epochs=1, training__evaluations=4), tmp_path))
    assert [evaluation.metrics["dev/f1"] for evaluation in evaluations] == f1
    assert torch.load(tmp_path / "best.pt")["step"] == evaluations[best].step


def cost(targets: list[str], predictions: list[str]) -> float:
    return 0.0


def test_the_lowest_cost_is_best_and_stops_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maximised, the first and highest one would be kept, and the run would stop at the third evaluation."""
    script(monkeypatch, cost=[9.0, 7.0, 5.0, 6.0, 8.0, 1.0])
    score = {"task": {"sentence_pair": {"score": f"{__name__}:cost"}}}
    config = small(**score, training__epochs=1, training__evaluations=6, training__patience=2)
    evaluations = list(single.evaluations(config, tmp_path))
    assert [evaluation.metrics["dev/cost"] for evaluation in evaluations] == [9.0, 7.0, 5.0, 6.0, 8.0]
    assert torch.load(tmp_path / "best.pt")["step"] == evaluations[2].step
    assert " dev/cost 5.0000, " in str(evaluations[2])


def test_early_stopping_ends_a_run_for_good(tmp_path: Path) -> None:
    config = small(training__patience=2, training__lr=1e-12, training__epochs=4, training__evaluations=10)
    evaluations = timeless(single.evaluations(config, tmp_path))
    assert [evaluation.finished for evaluation in evaluations] == [False, False, True]
    assert timeless(single.evaluations(config, tmp_path)) == evaluations
    assert torch.load(tmp_path / "best.pt")["step"] == evaluations[0].step


def test_training_costs_are_metrics(tmp_path: Path) -> None:
    evaluations = list(single.evaluations(small(training__tokens=100), tmp_path))
    for evaluation in evaluations:
        assert 0 <= evaluation.metrics["train/padding"] < 0.2
        assert evaluation.metrics["train/tokens_per_second"] > 100
        assert evaluation.metrics["train/out_of_memory"] == 0


@pytest.mark.parametrize("loss", ["cross_entropy", "dice"])
def test_gradient_checkpointing_changes_nothing(tmp_path: Path, loss: str) -> None:
    kept, formed = (
        timeless(single.evaluations(small(training__activations=activations, loss=loss), tmp_path / activations))
        for activations in ("keep", "recompute")
    )
    assert formed == kept


def test_a_loss_that_is_not_finite_stops_the_run_before_the_optimizer_steps(tmp_path: Path) -> None:
    config = small(training__lr=1e30, training__checkpoint_minutes=0)
    with pytest.raises(
        NonFiniteError, match=r"at step \d+, learning rate .*, rows \[.* Logits must be finite, got nan in"
    ) as failed:
        timeless(single.evaluations(config, tmp_path))
    last = torch.load(tmp_path / "last.pt")
    assert f"at step {last['step'] + 1}, " in str(failed.value)
    assert all(weight.isfinite().all() for weight in last["model"].values())


def test_a_batch_size_above_the_number_of_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"training\.batch_size: must be at most the rows of the training split, 200"):
        next(single.evaluations(small(training__batch_size=201), tmp_path))
    (all_at_once,) = single.evaluations(small(training__batch_size=200, training__epochs=1), tmp_path)
    assert all_at_once.step == 1


LOSSES = ("weighted_cross_entropy", "focal", "dice", "self_adjusting_dice", "tversky")
RUNS: dict[str, dict[str, Any]] = {
    **{loss: {"loss": loss} for loss in LOSSES},
    **{half: {"loss": "dice", "training.precision": half, "training.tokens": 130} for half in ("bf16", "fp16")},
}
"""Half precision with several micro-batches, which needs two passes."""


def _train_worker(rank: int, num_workers: int, folder: Path) -> None:
    precision.supported_by = lambda device: ("fp32", "bf16", "fp16")
    os.environ |= {"MASTER_ADDR": "127.0.0.1"}
    dist.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=num_workers)
    for name, settings in RUNS.items():
        evaluations = timeless(single.evaluations(small(**settings, model__dropout=0.0), folder / name))
        assert evaluations[-1].finished
    dist.barrier()  # a worker that exits early closes the connection of the others
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.usefixtures("fp16_anywhere")
def test_two_workers_train_like_one(tmp_path: Path) -> None:
    run_workers(_train_worker, (2, tmp_path), 2)
    found = {}
    for name, settings in RUNS.items():
        alone = timeless(single.evaluations(small(**settings, model__dropout=0.0), tmp_path / "alone" / name))
        evaluations = timeless(single.evaluations(small(**settings, model__dropout=0.0), tmp_path / name))
        found[name] = [evaluation.metrics["train/loss"] for evaluation in evaluations]
        near = 1e-4 if name in LOSSES else 5e-3
        assert found[name] == pytest.approx([each.metrics["train/loss"] for each in alone], rel=near), name
    assert len({tuple(found[name]) for name in ("dice", "bf16", "fp16")}) == 3


@pytest.mark.slow
def test_a_compiled_encoder_learns_the_same_under_the_same_names(tmp_path: Path) -> None:
    """Its dropout too: with several micro-batches a set-level loss needs two passes with the same masks."""
    evaluations = {}
    for compiled in ("nothing", "encoder"):
        config = small(loss="dice", training__compile=compiled, training__tokens=130, training__epochs=1)
        evaluations[compiled] = [each.metrics["train/loss"] for each in single.evaluations(config, tmp_path / compiled)]
    assert evaluations["encoder"] == pytest.approx(evaluations["nothing"], rel=1e-3)
    assert build.build(config).model.encoder._compiled_call_impl is not None
    for file in ("best.pt", "last.pt"):
        plain, found = (torch.load(tmp_path / run / file)["model"] for run in evaluations)
        assert list(found) == list(plain)
    assert trained.load(tmp_path / "encoder").step == torch.load(tmp_path / "encoder/best.pt")["step"]
