"""One RunConfig: the same run in this process and on Ray Train's workers."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, DataError, NonFiniteError, RunError
from dice_ray.run import build, cluster, folder, single, trained
from dice_ray.settings import nested
from dice_ray.tasks.predictions import TablePredictions
from dice_ray.tracking import schema
from dice_ray.training.loop import Evaluation, StepProgress
from tests.kept_ray import KeptRay
from tests.processes import WORKER, titled

PRESET = Layer(
    "preset",
    {
        "task": "sentence_pair",
        "data": {"source": {"synthetic": {"size": 200, "positive_share": 0.3}}},
        "model": {"dropout": 0.0},
        "training": {"epochs": 1, "batch_size": 16, "lr": 2e-3, "evaluations": 2, "precision": "fp32"},
    },
)


def small(**values: Any) -> RunConfig:
    paths = {path.replace("__", "."): value for path, value in values.items()}
    return resolve([PRESET, values_layer("test", paths)])


def test_data_are_prepared_once_for_runs_that_share_them() -> None:
    first = build.prepare(small(loss="dice", training__seed=3))
    assert build.prepare(small(loss="focal")) is first
    assert build.prepare(small(data__source__synthetic__seed=7)) is not first


def test_the_class_weights_of_a_run_are_those_of_its_training_split() -> None:
    assert build.class_weights(small(loss="cross_entropy")) == build.class_weights(small(loss="focal")) == {}
    inverse = small(loss__weighted_cross_entropy__weighting="inverse")
    (facts,) = build.prepare(inverse).facts
    weights = (facts.num_items / (2 * count) for count in facts.counts)
    assert build.class_weights(inverse) == {schema.CLASS_WEIGHTS: "{:.3g} (0) to {:.3g} (1)".format(*weights)}


def test_a_run_that_was_not_trained_cannot_be_scored(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"must hold a trained run's best\.pt"):
        single.score(small(), tmp_path, "dev")


def test_a_test_split_must_be_there_to_be_scored(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(
        "\n".join(["sentence1\tsentence2\tlabel", *(f"a {n}\tb {n}\t{n % 2}" for n in range(40))])
    )
    files = {"folder": str(tmp_path), "train": "pairs.tsv", "reader": {"tables": {"quoting": "off"}}}
    config = resolve([PRESET, Layer("test", {"data": {"source": {"files": files}}})])
    list(single.evaluations(config, tmp_path / "run"))
    with pytest.raises(DataError, match="must have a test split"):
        single.score(config, tmp_path / "run", "test")


def test_what_has_no_effect_on_the_data_is_refused_before_the_first_step(tmp_path: Path) -> None:
    dead = {"loss.tversky.scope": "example", "loss.tversky.gamma": 0, "loss.tversky.alpha": 0.3}
    with pytest.raises(ConfigError, match="alpha has no effect"):
        next(single.evaluations(resolve([PRESET, values_layer("test", dead)]), tmp_path))


def test_a_run_has_the_threads_that_it_is_launched_with(tmp_path: Path) -> None:
    try:
        single.train(small(launch__threads=2), tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_a_worker_leaves_the_settings_that_the_driver_has_stored(tmp_path: Path) -> None:
    """A run that was resumed on another machine was bound to the number of threads of the first one."""
    folder.store_config(small(), tmp_path)
    next(single.evaluations(small(launch__threads=1), tmp_path))
    stored = folder.stored_config(tmp_path)
    assert stored is not None
    assert stored.launch.threads is None


def test_mined_negatives_train(tmp_path: Path) -> None:
    all_kept, mined = (list(single.evaluations(small(mining__ratio=ratio), tmp_path / str(ratio))) for ratio in (0, 1))
    assert mined[-1].metrics["train/loss"] > all_kept[-1].metrics["train/loss"]


def test_oversampling_draws_the_rare_class_more_often_in_as_many_steps(tmp_path: Path) -> None:
    plain, balanced = small(), small(data__oversampling="balanced")
    weights = build.build(balanced).sampling.weights
    labels = [row["label"] for row in build.prepare(balanced).train.rows]
    assert set(build.build(plain).sampling.weights or ()) == {1.0}
    assert weights is not None
    assert {(label, round(weight, 3)) for label, weight in zip(labels, weights, strict=True)} == {(0, 1.0), (1, 2.333)}
    assert build.prepare(balanced).facts == build.prepare(plain).facts, "the prior and the weights of losses stay"
    ends = [
        list(single.evaluations(config, tmp_path / config.data.oversampling.name))[-1] for config in (plain, balanced)
    ]
    assert ends[0].step == ends[1].step
    assert ends[0].metrics["train/loss"] != ends[1].metrics["train/loss"]


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"data__oversampling": "balanced"}, 0.5),
        ({"data__batches__positive_share": 0.25}, 0.25),
        ({"data__batches__undersampling": "each_epoch"}, 0.5),
    ],
    ids=["oversampling", "share", "undersampling"],
)
@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_correcting_the_prior_shifts_the_logits_and_changes_nothing_else(
    tmp_path: Path, settings: dict[str, Any], share: float, link: str
) -> None:
    """Finds a correction of the wrong sign or class, and one that changes the training."""
    task = {"task.sentence_pair.link": link}
    runs, logits = [small(**settings), small(**settings, data__batches__correct_prior=True)], []
    runs = [resolve([Layer("run", nested(run)), values_layer("test", task)]) for run in runs]
    for number, config in enumerate(runs):
        list(single.evaluations(config, tmp_path / str(number)))
        items = trained.load(tmp_path / str(number))
        predicted = items.predictions(build.prepare(config).splits.dev, threshold=0.5)
        assert isinstance(predicted, TablePredictions)
        logits.append([math.log(float(row[3]) / (1 - float(row[3]))) for row in predicted.rows])
    negatives, positives = build.prepare(runs[0]).facts[0].counts
    shift = math.log(share / (1 - share)) - math.log(positives / negatives)
    assert [before - after for before, after in zip(*logits, strict=True)] == pytest.approx(
        [shift] * len(logits[0]), abs=0.001
    )


def test_an_undersampled_epoch_is_short_and_a_size_is_that_of_the_epoch(tmp_path: Path) -> None:
    """Finds epochs of as many steps as without undersampling, which would be oversampling by another name."""
    each = small(data__batches__undersampling="each_epoch", training__epochs=3)
    _, positives = build.prepare(each).facts[0].counts
    control = small(data__batches__undersampling__each_epoch__drops="any", training__epochs=3)
    sized = small(data__batches__size=2 * positives, training__epochs=3)
    ends = [list(single.evaluations(config, tmp_path / str(n)))[-1] for n, config in enumerate((each, control, sized))]
    assert {end.step for end in ends} == {round(3 * 2 * positives / 16)}
    assert {round(end.epoch) for end in ends} == {3}


@pytest.fixture(scope="module")
def ray_train(kept_ray: KeptRay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Ray, whose runs on Ray Train end at once and not at the next of Ray's polls."""
    with pytest.MonkeyPatch.context() as patch, kept_ray.in_place():
        patch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.2")
        with cluster.started(num_cpus=2, log=tmp_path_factory.mktemp("ray") / "log.txt"):
            yield


@dataclass(frozen=True)
class Closed:
    """A run of two workers that is closed as soon as it has told its end."""

    told: list[Evaluation]
    is_stopped: bool
    workers: list[psutil.Process]


@pytest.fixture(scope="module")
def closed(ray_train: None, tmp_path_factory: pytest.TempPathFactory) -> Closed:
    folder = tmp_path_factory.mktemp("closed")
    running = single.evaluations(small(loss="self_adjusting_dice", launch__workers=2), folder)
    told = [next(running)]
    while not told[-1].finished:
        told.append(next(running))
    running.close()
    return Closed(told, (folder / "stopped").exists(), titled(WORKER))


@pytest.mark.ray
@pytest.mark.usefixtures("ray_train")
class TestOnRayTrain:
    @pytest.mark.slow
    def test_one_worker_is_bit_for_bit_the_run_of_this_process(self, tmp_path: Path) -> None:
        here = list(single.evaluations(small(loss="dice"), tmp_path / "here"))
        there = list(single.evaluations(small(loss="dice", launch__how="ray_train"), tmp_path / "there"))
        for told in (*here, *there):
            assert told.metrics.pop("train/tokens_per_second") > 0
            assert told.metrics.pop("train/seconds") > 0
        assert there == here

    def test_two_workers_tread_the_path_of_one(self, tmp_path: Path, closed: Closed) -> None:
        one = list(single.evaluations(small(loss="self_adjusting_dice"), tmp_path / "one"))
        assert [told.metrics["train/loss"] for told in closed.told] == pytest.approx(
            [told.metrics["train/loss"] for told in one], rel=1e-4
        )
        assert [told.metrics["dev/f1"] for told in closed.told] == pytest.approx(
            [told.metrics["dev/f1"] for told in one]
        )

    def test_a_run_that_told_its_end_is_not_stopped(self, closed: Closed) -> None:
        assert closed.told[-1].step > 0
        assert not closed.is_stopped
        assert not closed.workers

    @pytest.mark.slow
    def test_a_failure_of_a_worker_comes_back_as_it_was(self, tmp_path: Path) -> None:
        with pytest.raises(NonFiniteError, match=r"at step \d+"):
            list(single.evaluations(small(launch__how="ray_train", training__lr=1e30), tmp_path))

    @pytest.mark.slow
    def test_a_worker_that_is_killed_is_replaced_as_often_as_allowed(self, tmp_path: Path) -> None:
        long = {"training__epochs": 6, "training__evaluations": 4}
        one = list(single.evaluations(small(**long), tmp_path / "one"))
        running = single.evaluations(small(**long, launch__workers=2, launch__max_failures=1), tmp_path / "two")
        told = [next(running)]
        killed = titled(WORKER)
        assert len(killed) == 2
        killed[0].kill()
        told += [next(running)]
        alive = titled(WORKER)
        assert len(alive) == 2
        assert not set(alive) & set(killed)
        told += [next(running)]
        assert [each.step for each in told] == [each.step for each in one[:3]]
        assert [each.metrics["train/loss"] for each in told] == pytest.approx(
            [each.metrics["train/loss"] for each in one[:3]], rel=1e-3
        )
        alive[0].kill()
        with pytest.raises(RunError, match="Ray Train stopped"):
            list(running)

    @pytest.mark.slow
    def test_a_run_stopped_early_frees_its_workers(self, tmp_path: Path) -> None:
        long = {"training__epochs": 200, "training__evaluations": 200}
        running = single.evaluations(small(**long, launch__how="ray_train"), tmp_path)
        next(running)
        assert titled(WORKER)
        running.close()
        deadline = time.monotonic() + 10
        while titled(WORKER) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not titled(WORKER)

    def test_a_run_that_is_asked_to_stop_writes_a_checkpoint(self, tmp_path: Path) -> None:
        """Its workers were killed, and all steps since the last evaluation lost."""
        events: list[Evaluation | StepProgress] = []
        long = small(launch__workers=2, training__epochs=5000, training__evaluations=1)
        for event in single.train(long, tmp_path, lambda: bool(events)):
            events.append(event)
        assert not [event for event in events if isinstance(event, Evaluation)]
        assert torch.load(tmp_path / "last.pt")["step"] >= events[0].step
