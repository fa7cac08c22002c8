"""The searchers without a cluster: the plan minus the ledger, and what Optuna is told."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import pytest
from optuna.samplers import NSGAIISampler
from optuna.trial import TrialState
from ray.tune.experiment import Trial

from dice_ray.config.load import Layer, values_layer
from dice_ray.run.cluster import Cluster, Node
from dice_ray.tuning import search
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.resources import Demand
from dice_ray.tuning.search import AsManyAsFit, CellSearcher, InOrder, SweepSearcher
from dice_ray.tuning.sweep import SweepPlan
from tests.tuning.trials import note

SPACES = Path(__file__).with_name("spaces.py")
SPACE = f"{SPACES}:rate"


@pytest.fixture
def plan(layers: tuple[Layer, ...]) -> SweepPlan:
    return SweepPlan(name="sweep", layers=layers, space=SPACE, trials=8)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number in (1, 2, 3, 5, 6):
        ledger.append(TrialSpec(id=f"000{number}", params={"training.lr": number * 1e-3}, seed=0))
    metrics = ({"dev/f1": 0.5},) * 3
    ledger.append(TrialOutcome(id="0001", state="done", curve=((5, 0.4), (10, 0.6), (15, 0.5)), metrics=metrics))
    ledger.append(TrialOutcome(id="0002", state="pruned", curve=((5, 0.3),), metrics=metrics[:1]))
    ledger.append(TrialOutcome(id="0003", state="failed", failure="not finite"))
    return ledger


def told(step: int, score: float, **more: Any) -> dict[str, Any]:
    return {"step": step, "score": score, "metrics/dev/f1": score, "training_iteration": step // 5, **more}


def test_a_resumed_search_knows_what_ended_and_begins_with_what_was_open(plan: SweepPlan, ledger: Ledger) -> None:
    searcher = SweepSearcher(plan, ledger)
    ended = searcher._study.trials[:3]
    assert [trial.state for trial in ended] == [TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL]
    assert ended[0].value == 0.6
    assert ended[0].intermediate_values == {1: 0.4, 2: 0.6, 3: 0.5}
    handed = [searcher.suggest(f"ray{number}") for number in range(5)]
    assert handed[:2] == [begun.model_dump() for begun in ledger.unfinished]
    assert [trial.params for trial in searcher._study.trials[3:5]] == [begun.params for begun in ledger.unfinished]
    assert [trial["id"] for trial in handed] == ["0005", "0006", "0004", "0007", "0008"]
    assert len({trial["params"]["training.lr"] for trial in handed}) == 5
    searcher.save(str(ledger.path.with_name("searcher.pkl")))  # which pickles it, as Ray does


def test_sampling_goes_on_where_it_was(plan: SweepPlan, ledger: Ledger, tmp_path: Path) -> None:
    first = SweepSearcher(plan, Ledger(tmp_path / "none.jsonl")).suggest("ray0")["params"]
    assert SweepSearcher(plan, Ledger(tmp_path / "none.jsonl")).suggest("ray0")["params"] == first
    resumed = SweepSearcher(plan, ledger)
    assert first not in [resumed.suggest(f"ray{number}")["params"] for number in range(5)]


@pytest.mark.filterwarnings("error:The reported value is ignored")
def test_optuna_is_told_what_became_of_a_trial(plan: SweepPlan, tmp_path: Path) -> None:
    searcher = SweepSearcher(plan, Ledger(tmp_path / "none.jsonl"))
    for name in ("done", "stopped", "failed", "lost"):
        searcher.suggest(name)
        for step, score in ((5, 0.7), (10, 0.6), (5, 0.7), (10, 0.6)):  # Ray tried it again
            searcher.report(name, told(step, score))
    searcher.on_trial_complete("done", told(15, 0.5, finished=True))
    searcher.on_trial_complete("stopped", told(15, 0.2, finished=False))
    searcher.on_trial_complete("failed", {"score": math.nan, "failure": "not finite"})
    searcher.on_trial_complete("lost", error=True)
    done, stopped, failed, lost = searcher._study.trials
    assert (done.state, done.value, done.last_step) == (TrialState.COMPLETE, 0.7, 3)
    assert (stopped.state, stopped.intermediate_values) == (TrialState.PRUNED, {1: 0.7, 2: 0.6, 3: 0.2})
    assert failed.state == lost.state == TrialState.FAIL


@pytest.mark.parametrize("name", ["tpe", "random"])
def test_no_batch_is_larger_than_the_training_split(layers: tuple[Layer, ...], tmp_path: Path, name: str) -> None:
    """Of 200 rows, a tenth of the trials of `optimizer_tuning` failed: it draws batch sizes up to 288."""
    space, point = "search_spaces.optimizer_tuning:optimizer_tuning", {"training.batch_size": 288}
    plan = SweepPlan(name="sweep", layers=layers, space=space, trials=48, sampler=name, points=(point,))
    searcher = plan._searcher(Ledger(tmp_path / "none.jsonl"), None)
    sizes = [searcher.suggest(f"ray{number}")["params"]["training.batch_size"] for number in range(plan.trials)]
    assert sizes[0] == 200
    assert 100 < max(sizes[1:]) <= 200
    searcher.save(str(tmp_path / "searcher.pkl"))

    ledger = Ledger(tmp_path / "ledger.jsonl")  # of an earlier version
    ledger.append(TrialSpec(id="0001", params=dict(searcher._study.trials[1].params) | point, seed=0))
    ledger.append(TrialOutcome(id="0001", state="failed", failure="288 rows"))
    resumed = plan._searcher(ledger, None)
    assert resumed._study.trials[0].params["training.batch_size"] == 288
    assert resumed.suggest("ray")["params"]["training.batch_size"] <= 200


def test_a_search_chooses_the_losses_that_fit_the_task(tmp_path: Path) -> None:
    """For answers by position most trials of `loss_tuning` failed."""
    files = {"task": "extractive_qa", "data.source.synthetic.kind": "questions", "data.source.synthetic.size": 40}
    layers = (values_layer("preset", files),)
    space = "search_spaces.loss_tuning:loss_tuning"
    plan = SweepPlan(name="sweep", layers=layers, space=space, trials=40, sampler="random")
    searcher = pickle.loads(pickle.dumps(plan._searcher(Ledger(tmp_path / "none.jsonl"), None)))
    suggested = [searcher.suggest(f"ray{number}")["params"] for number in range(plan.trials)]
    assert {params["loss"] for params in suggested} == {"cross_entropy", "focal", "poly"}
    assert {params.get("loss.cross_entropy.label_smoothing", 0) for params in suggested} == {0}

    ledger = Ledger(tmp_path / "ledger.jsonl")  # of an earlier version
    old = {"loss": "tversky", "loss.tversky.gamma": 1.0, "loss.tversky.alpha": 0.5, "mining.ratio": 0.0}
    ledger.append(TrialSpec(id="0001", params=old | {"model.head_bias": "zero"}, seed=0))
    ledger.append(TrialOutcome(id="0001", state="failed", failure="must take the position link"))
    resumed = plan._searcher(ledger, None)
    assert resumed._study.trials[0].params["loss"] == "tversky"
    suggested = [resumed.suggest(f"ray{number}")["params"] for number in range(30)]
    assert {params["loss"] for params in suggested} <= {"cross_entropy", "focal", "poly", "tversky"}


def test_known_trials_are_none_of_the_three_that_the_median_waits_for(plan: SweepPlan, tmp_path: Path) -> None:
    """After a warm start the second trial was stopped where it was worse than the first."""
    known = Ledger(tmp_path / "known.jsonl")
    for number in (1, 2, 3):
        note(known, f"000{number}", params={"training.lr": number * 1e-3})
    stopped = []
    searcher = SweepSearcher(plan.model_copy(update={"scheduler": "median"}), Ledger(tmp_path / "none.jsonl"), known)
    for number, score in enumerate((0.9, 0.8, 0.7, 0.6)):
        searcher.suggest(f"ray{number}")
        stopped.append(searcher.report(f"ray{number}", told(5, score)))
        searcher.on_trial_complete(f"ray{number}", told(10, score, finished=True))
    assert stopped == [False, False, False, True]


def test_all_there_is_is_tried_once(layers: tuple[Layer, ...], tmp_path: Path) -> None:
    plan = SweepPlan(name="sweep", layers=layers, space=f"{SPACES}:two_rates", trials=8, sampler="brute_force")
    ledger = Ledger(tmp_path / "ledger.jsonl")
    searcher = SweepSearcher(plan, ledger)
    handed = [searcher.suggest(f"ray{number}") for number in range(2)]
    assert {trial["params"]["training.lr"] for trial in handed} == {1e-3, 2e-3}
    for number, trial in enumerate(handed):
        ledger.append(TrialSpec(**trial))
        searcher.on_trial_complete(f"ray{number}", told(5, 0.4, finished=True))
        ledger.append(TrialOutcome(id=trial["id"], state="done", curve=((5, 0.4),), metrics=({},)))
    assert str(searcher.suggest("ray2")) == SweepSearcher.FINISHED
    assert searcher.ids == ["0001", "0002"]
    resumed = SweepSearcher(plan, ledger)
    assert str(resumed.suggest("ray0")) == SweepSearcher.FINISHED
    assert resumed.ids == ["0001", "0002"]


def test_a_sampler_that_draws_may_draw_the_same_again(layers: tuple[Layer, ...], tmp_path: Path) -> None:
    plan = SweepPlan(name="sweep", layers=layers, space=f"{SPACES}:two_rates", trials=8, sampler="random")
    searcher = SweepSearcher(plan, Ledger(tmp_path / "none.jsonl"))
    assert [searcher.suggest(f"ray{number}")["id"] for number in range(8)] == plan.ids


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(("own", "space"), [("of_a_grid", "rate"), ("of_all", "two_rates")])
def test_a_sampler_of_the_users_own_may_come_to_its_end(
    own: str, space: str, layers: tuple[Layer, ...], tmp_path: Path
) -> None:
    """It then stops the study, which Optuna allows in its own loop alone."""
    plan = SweepPlan(name="sweep", layers=layers, space=f"{SPACES}:{space}", trials=3, sampler=f"{SPACES}:{own}")
    searcher = SweepSearcher(plan, Ledger(tmp_path / "none.jsonl"))
    rates = [searcher.suggest(f"ray{number}")["params"]["training.lr"] for number in range(2)]
    assert len(set(rates)) == 2
    for number in range(2):
        searcher.on_trial_complete(f"ray{number}", told(5, 0.4, finished=True))
    assert searcher.suggest("ray2")["params"]["training.lr"] in rates
    assert [trial.state for trial in searcher._study.trials[:2]] == [TrialState.COMPLETE] * 2


@pytest.fixture
def several(layers: tuple[Layer, ...]) -> SweepPlan:
    return SweepPlan(
        name="several",
        layers=layers,
        space=SPACE,
        trials=80,
        sampler="nsga2",
        scheduler="none",
        objectives=("recall", "seconds"),
    )


def run_trials(searcher: SweepSearcher, ledger: Ledger, number: int) -> list[float]:
    """Trials whose recall and seconds both grow with the rate; returns their rates."""
    rates = []
    for _ in range(number):
        ray_id = f"ray{len(ledger.specs)}"
        begun = TrialSpec(**searcher.suggest(ray_id))
        rate = begun.params["training.lr"]
        rates.append(rate)
        metrics = {"dev/recall": min(rate, 3e-3), "train/seconds": rate}
        ledger.append(begun)
        ledger.append(TrialOutcome(id=begun.id, state="done", curve=((5, 0.5),), metrics=(metrics,)))
        flat = {f"metrics/{name}": value for name, value in metrics.items()}
        searcher.on_trial_complete(ray_id, {"step": 5, "score": 0.5, "finished": True, **flat})
    return rates


def test_several_objectives_are_known_again_and_generations_go_on_where_they_were(
    several: SweepPlan, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    searcher = SweepSearcher(several, ledger)
    rates = run_trials(searcher, ledger, 40)
    told = searcher._study.trials
    assert [trial.values for trial in told] == [[min(rate, 3e-3), rate] for rate in rates]
    again = SweepSearcher(several, ledger)
    assert [trial.values for trial in again._study.trials] == [trial.values for trial in told]
    assert again._study.directions == searcher._study.directions
    front = {trial.number for trial in searcher._study.best_trials}
    assert {trial.number for trial in again._study.best_trials} == front
    run_trials(again, ledger, 1)
    key = "NSGAIISampler:generation"
    assert [trial.system_attrs[key] for trial in again._study.trials] == [0] * 16 + [1] * 16 + [2] * 9
    nsga2 = again._study.sampler
    assert isinstance(nsga2, NSGAIISampler)
    parents = nsga2.get_parent_population(again._study, 2)
    assert {trial.number for trial in parents} <= set(range(32))
    assert len(parents) == 16


def test_cells_are_handed_out_once() -> None:
    cells = [TrialSpec(id=id_, params={"loss": "dice"}, seed=1, arm="dice") for id_ in "ab"]
    searcher = CellSearcher(cells)
    assert [searcher.suggest(str(number)) for number in range(3)] == [*(cell.model_dump() for cell in cells), None]


class Growing(Cluster):
    """A cluster of machines with one CPU each, of which there are as many as is written here."""

    num_nodes = 2

    def nodes_now(self) -> tuple[Node, ...]:
        return self.num_nodes * (Node(1, 0),)


def test_the_number_of_trials_follows_that_of_the_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a sweep that keeps the number of its start, and one that hands out all its trials at once."""
    monkeypatch.setattr(search, "_ASK_SECONDS", 0)
    monkeypatch.setattr(Growing, "num_nodes", 2)
    cells = [TrialSpec(id=f"cell{number}", params={}, seed=0) for number in range(20)]
    ray = Growing((Node(1, 0), Node(1, 0)), tmp_path, is_fixed=False)
    limited = AsManyAsFit(CellSearcher(cells), Demand(1), ray)

    def handed_out(first: int) -> int:
        return sum(limited.suggest(f"ray{number}") is not None for number in range(first, first + 20))

    assert handed_out(0) == 3  # two run, one waits
    Growing.num_nodes = 8
    assert handed_out(20) == 7
    Growing.num_nodes = 1
    limited.on_trial_complete("ray0")
    assert handed_out(40) == 0  # those that run on lost machines are run again first


def test_trials_start_in_their_order_and_ended_ones_are_forgotten() -> None:
    """Finds a scheduler that goes through all trials at each event, as Tune's own, or starts a retried one first."""
    scheduler, trials = InOrder(), [Trial("none", stub=True, trial_id=f"ray{number}") for number in range(3)]
    for trial in trials:
        scheduler.on_trial_add(None, trial)
    first, second, third = trials
    assert scheduler.choose_trial_to_run(None) is first
    first.set_status(Trial.RUNNING)
    assert scheduler.choose_trial_to_run(None) is second
    first.set_status(Trial.PENDING)
    scheduler.on_trial_add(None, first)  # its actor was lost
    second.set_status(Trial.RUNNING)
    assert scheduler.choose_trial_to_run(None) is third
    third.set_status(Trial.TERMINATED)
    assert scheduler.choose_trial_to_run(None) is first
    first.set_status(Trial.ERROR)
    assert scheduler.choose_trial_to_run(None) is None
    assert scheduler._unfinished == [second]
