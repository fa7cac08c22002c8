"""Samplers, pruners and objectives without a cluster: what Optuna is asked, and what a user is told."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import optuna
import pytest
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import TrialState, create_trial
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from dice_ray.config.load import Layer, set_layer, values_layer
from dice_ray.errors import ConfigError, InputError, UnknownNameError
from dice_ray.run import build
from dice_ray.tracking.schema import State
from dice_ray.tuning import samplers
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.samplers import (
    _NUM_AT_ONCE,
    _NUM_GOOD,
    _NUM_MODELLED,
    _BoundedTPE,
    check_settings,
    notes,
    pruner,
    sampler,
)
from dice_ray.tuning.search import PruningScheduler, SweepSearcher
from dice_ray.tuning.space import Space
from dice_ray.tuning.sweep import SweepPlan
from tests.tuning.trials import note

LOSSES = "search_spaces.loss_tuning:loss_tuning"
ONE_LOSS = "search_spaces.loss_tuning:dice"
GRID = f"{Path(__file__).with_name('spaces.py')}:of_a_grid"


def plain_tpe(seed: int) -> BaseSampler:
    return TPESampler(seed=seed)


def tpe_of_what_all_have(seed: int) -> BaseSampler:
    return TPESampler(seed=seed, multivariate=True)


@pytest.mark.parametrize(
    ("name", "space"),
    [(name, LOSSES) for name in ("tpe", "random", "brute_force", f"{__file__}:plain_tpe")]
    + [(name, ONE_LOSS) for name in ("tpe", "random", "brute_force", "nsga2", f"{__file__}:tpe_of_what_all_have")],
)
def test_nothing_is_to_be_said_where_all_parameters_are_modelled_or_none(name: str, space: str) -> None:
    assert notes(name, space) == []


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("name", ["nsga2", f"{__file__}:tpe_of_what_all_have"])
def test_what_would_be_drawn_at_random_is_told(name: str) -> None:
    (note,) = notes(name, LOSSES, 2)
    start = rf"note: the sampler {re.escape(name)} draws loss\.asymmetric\.gamma_neg and \d\d others at random"
    assert re.match(start, note)


def test_what_cannot_suggest_is_told_before_the_search() -> None:
    with pytest.raises(InputError, match=r"of_a_grid must suggest a trial of .*:dice, and raised ValueError"):
        notes(GRID, ONE_LOSS)


@pytest.mark.parametrize(
    ("settings", "space", "path"),
    [
        (["training.lr=1e-4"], "joint_tuning", "training.lr"),
        (["loss=dice"], "joint_tuning", "loss"),
        (["loss.dice.gamma=1"], "joint_tuning", "loss.dice.gamma"),
        (["loss=dice"], "focal", "loss"),
        (["loss.dice.gamma=1"], "focal", "loss"),
        (["loss=focal"], "focal", None),
        (["training.lr=1e-4"], "loss", None),
        (["loss={focal: {}}"], "focal", None),
        (["task.tagging.given=[a, b]"], "focal", None),
        (["task.mrc_ner.queries={a.b: which}"], "focal", None),
    ],
)
def test_a_setting_of_what_the_space_searches_is_an_error(settings: list[str], space: str, path: str | None) -> None:
    """Each trial would override it, without a word."""
    module = "search_spaces.loss_tuning:loss_tuning" if space == "loss" else f"search_spaces.joint_tuning:{space}"
    with nullcontext() if path is None else pytest.raises(ConfigError) as caught:
        check_settings(set_layer(settings), "the space", samplers.drawn_at_random(Space(module)))
    if caught is not None:
        (problem,) = caught.value.problems
        assert (problem.path, problem.origin) == (path, "--set")
        assert "searches it" in problem.must


def nothing(trial: optuna.Trial) -> None:
    """A space that suggests nothing."""


def misspelt(trial: optuna.Trial) -> None:
    trial.suggest_float("training.learning_rate", 1e-4, 1e-3)


def below_zero(trial: optuna.Trial) -> None:
    trial.suggest_int("training.lr", -3, -1)


def mostly_refused(trial: optuna.Trial) -> None:
    trial.suggest_int("training.lr", -9, 1)


@pytest.mark.parametrize(
    ("space", "told"),
    [
        (nothing, r"must suggest parameters, as trial.suggest_float does, and has none$"),
        (misspelt, r"training.learning_rate: is not a key \(from trial\); did you mean training.lr\?"),
        (below_zero, r"training.lr: must be greater than 0, got -\d \(from trial\)"),
        (mostly_refused, None),
    ],
)
def test_a_space_of_which_no_trial_can_run_is_an_error_before_the_search(
    space: Callable[[optuna.Trial], None], told: str | None
) -> None:
    """Ray was started, all trials failed, and a dry run told how long they would take."""
    layer = values_layer("preset", {"task": "sentence_pair", "data.source": "synthetic"})
    plan = SweepPlan(name="sweep", layers=(layer,), space=f"{__name__}:{space.__name__}", trials=4)
    with nullcontext() if told is None else pytest.raises((InputError, ConfigError), match=told):
        plan._check_space()


SPACES = Path(__file__).with_name("spaces.py")


class NamedTrial:
    def __init__(self, trial_id: str) -> None:
        self.trial_id = trial_id


def decisions(searcher: SweepSearcher, name: str, scores: list[float]) -> list[str]:
    """The decision after each evaluation of a trial, until it is stopped; Ray Tune does not ask about the last one."""
    scheduler, made = PruningScheduler(searcher), list[str]()
    searcher.suggest(name)
    for number, score in enumerate(scores, start=1):
        result = {"step": 10 * number, "score": score, "metrics": {"dev/f1": score}}
        is_last = number == len(scores)
        made.append(
            TrialScheduler.CONTINUE
            if is_last
            else scheduler.on_trial_result(None, cast(Trial, NamedTrial(name)), result)
        )
        if made[-1] == TrialScheduler.STOP:
            break
    searcher.on_trial_complete(name, result | {"finished": made[-1] == TrialScheduler.CONTINUE})
    return made


@pytest.fixture
def plan(layers: tuple[Layer, ...]) -> SweepPlan:
    return SweepPlan(name="sweep", layers=layers, space=f"{SPACES}:rate", trials=12)


def test_asha_compares_after_1_3_9_evaluations(plan: SweepPlan, tmp_path: Path) -> None:
    searcher = SweepSearcher(plan, Ledger(tmp_path / "ledger.jsonl"))
    for number in range(3):  # each better than the one before, at every rung
        assert decisions(searcher, f"good{number}", [0.5 + number / 10] * 9) == [TrialScheduler.CONTINUE] * 9
    assert decisions(searcher, "bad at once", [0.1] * 9) == [TrialScheduler.STOP]
    assert decisions(searcher, "bad at 3", [0.9, 0.1, 0.1, 0.1]) == [
        *[TrialScheduler.CONTINUE] * 2,
        TrialScheduler.STOP,
    ]
    late = decisions(searcher, "bad at 9", [0.95] * 8 + [0.1] * 2)
    assert late == [*[TrialScheduler.CONTINUE] * 8, TrialScheduler.STOP]


@pytest.mark.parametrize("scheduler", ["asha", "median"])
def test_a_resumed_sweep_stops_what_the_whole_one_would_stop(scheduler: str, plan: SweepPlan, tmp_path: Path) -> None:
    plan = plan.model_copy(update={"scheduler": scheduler})
    whole = SweepSearcher(plan, Ledger(tmp_path / "none.jsonl"))
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number in range(1, 6):
        curve = [0.4 + number / 100, 0.6, 0.5]
        made = decisions(whole, f"ray{number}", curve)
        ledger.append(TrialSpec(id=f"000{number}", params={"training.lr": number * 1e-3}, seed=0))
        reached = tuple((10 * step, score) for step, score in enumerate(curve[: len(made)], start=1))
        state: State = "done" if made[-1] == TrialScheduler.CONTINUE else "pruned"
        ledger.append(TrialOutcome(id=f"000{number}", state=state, curve=reached, metrics=({},) * len(reached)))
    resumed = SweepSearcher(plan, ledger)
    rungs, states = (
        [[of(trial) for trial in searcher._study.trials] for searcher in (whole, resumed)]
        for of in (
            lambda trial: {name: value for name, value in trial.system_attrs.items() if "rung" in name},
            lambda trial: trial.state,
        )
    )
    assert rungs[0] == rungs[1]
    assert states[0] == states[1]
    for searcher in (whole, resumed):
        assert decisions(searcher, "bad", [0.1, 0.1, 0.1]) == [TrialScheduler.STOP]
        assert decisions(searcher, "good", [0.9, 0.9, 0.9]) == [TrialScheduler.CONTINUE] * 3


def test_a_resumed_trial_is_not_stopped_for_evaluations_that_it_has_passed(plan: SweepPlan, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    slow = [{"step": 10 * number, "score": 0.4 + number / 10, "is_past": True} for number in range(1, 5)]
    ledger.append(TrialSpec(id="0001", params={"training.lr": 1e-3}, seed=0))  # was first, so that it went on
    for number in range(2, 6):  # better at first, and worse in the end
        ledger.append(TrialSpec(id=f"000{number}", params={"training.lr": number * 1e-3}, seed=0))
        ledger.append(TrialOutcome(id=f"000{number}", state="done", curve=((10, 0.6), (20, 0.61)), metrics=({}, {})))
    searcher = SweepSearcher(plan, ledger)
    assert searcher.suggest("resumed")["id"] == "0001"
    assert [searcher.report("resumed", result) for result in slow] == [False] * 4
    assert decisions(searcher, "new", [0.5, 0.6]) == [TrialScheduler.STOP]


@pytest.mark.parametrize("name", ["tpe", "random"])
def test_a_warm_start_does_not_draw_the_known_trials_again(name: str, plan: SweepPlan, tmp_path: Path) -> None:
    """Its sampler began with the seed of the earlier sweep, whose trials it ran once more."""
    plan = plan.model_copy(update={"sampler": name})
    known, first = Ledger(tmp_path / "known.jsonl"), SweepSearcher(plan, Ledger(tmp_path / "none.jsonl"))
    for number in range(3):
        note(known, TrialSpec(**first.suggest(f"ray{number}")))
    next_ = SweepSearcher(plan, Ledger(tmp_path / "none.jsonl"), known)
    drawn = [next_.suggest(f"ray{number}")["params"] for number in range(3)]
    assert not [params for params in drawn if params in [spec.params for spec in known.specs.values()]]


def test_none_stops_nothing(plan: SweepPlan, tmp_path: Path) -> None:
    plan = plan.model_copy(update={"scheduler": "none"})
    searcher = SweepSearcher(plan, Ledger(tmp_path / "ledger.jsonl"))
    decisions(searcher, "good", [0.9, 0.9])
    assert decisions(searcher, "bad", [0.1, 0.1]) == [TrialScheduler.CONTINUE] * 2


def test_a_pruner_of_the_users_own() -> None:
    assert isinstance(pruner(f"{SPACES}:patient"), optuna.pruners.PatientPruner)


def a_name(seed: int) -> str:
    return "tpe"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: pruner("ashaa"), "did you mean 'asha'"),
        (lambda: pruner(f"{SPACES}:two_rates"), "must make a pruner, and raised TypeError"),
        (lambda: sampler("tpee", 0), "did you mean 'tpe'"),
        (lambda: sampler(f"{SPACES}:rate", 0), "rate must make a sampler, and raised AttributeError"),
        (lambda: sampler(f"{__file__}:a_name", 0), "must make an Optuna sampler, and returned 'tpe'"),
    ],
)
def test_what_is_no_sampler_or_pruner(made: Callable[[], object], message: str) -> None:
    with pytest.raises((UnknownNameError, InputError), match=message):
        made()


def test_the_best_the_latest_and_the_running_trials_are_modelled() -> None:
    """Finds a good trial that is forgotten, and one that ended after others were left out and is never seen."""
    generator, bounded = random.Random(0), _BoundedTPE(seed=0)
    study = optuna.create_study(direction="maximize", sampler=bounded)
    scores = dict[int, float]()
    running = study.ask()
    for number in range(1, 700):
        scores[number] = generator.random()
        study.add_trial(create_trial(value=scores[number]))
        part = bounded._part_of(study).get_trials(deepcopy=False)
        modelled = {trial.number for trial in part if trial.state == TrialState.COMPLETE}
        assert running.number in {trial.number for trial in part}
        assert modelled >= set(sorted(scores, key=lambda each: -scores[each])[:_NUM_GOOD])
        assert modelled >= set(range(max(1, number - _NUM_MODELLED + 2 * _NUM_GOOD), number + 1))
        assert len(modelled) == number or _NUM_MODELLED <= len(modelled) < _NUM_MODELLED + _NUM_AT_ONCE
    study.tell(running, 2.0)
    best = bounded._part_of(study).get_trials(deepcopy=False)[0]
    assert (best.number, best.value) == (running.number, 2.0)
    assert len(study.trials) == 700


METRICS = (
    {"dev/precision": 0.9, "dev/recall": 0.2, "train/seconds": 1.0},
    {"dev/precision": 0.6, "dev/recall": 0.8, "train/seconds": 2.0},
    {"dev/precision": 0.8, "dev/recall": 0.5, "train/seconds": 3.0},
)


def test_the_values_are_those_of_the_checkpoint_kept_and_all_the_seconds() -> None:
    curve = ((5, 0.3), (10, 0.7), (15, 0.6))
    assert samplers.objective_values(("precision", "recall", "seconds"), curve, METRICS) == [0.6, 0.8, 3.0]
    signed = [samplers.signed_metric(name) for name in ("recall", "seconds", "brier")]
    assert signed == ["dev/recall", "-train/seconds", "-dev/brier"]


def test_a_type_that_occurs_in_no_span_has_the_f1_zero() -> None:
    """The evaluation has no F1 of it: the search ended with a KeyError, and again when it was resumed."""
    metrics = ({"dev/f1": 0.3, "dev/f1_RARE": 0.1}, {"dev/f1": 0.7})
    assert samplers.objective_values(("f1", "f1_RARE"), ((5, 0.3), (10, 0.7)), metrics) == [0.7, 0.0]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"objectives": ("recall",)}, "at least two objectives, all different, got recall"),
        ({"objectives": ("recall", "recall")}, "at least two objectives, all different, got recall, recall"),
        ({"objectives": ("recall", "f1", "recall")}, "at least two objectives, all different, got recall, f1, recall"),
        ({"scheduler": "asha"}, "must have the scheduler none, got asha"),
        ({"seeds": 2}, "must leave out --seeds"),
        ({"objectives": ("recall", "precison")}, "no objective named 'precison'; did you mean 'precision'"),
        ({"objectives": ("recall", "threshold_used")}, "no objective named 'threshold_used'"),
    ],
)
def test_what_cannot_be_searched_for(layers: tuple[Layer, ...], written: dict[str, Any], said: str) -> None:
    values: dict[str, Any] = {"scheduler": "none", "objectives": ("precision", "recall"), **written}
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=4, **values)
    with pytest.raises((InputError, UnknownNameError), match=said):
        plan._check_objectives()


def test_what_can_be_searched_for(layers: tuple[Layer, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the metrics were learned from an untrained model, whose weights may not even be here."""

    def refused(*arguments: object) -> None:
        raise AssertionError("a model was built")

    monkeypatch.setattr(build, "_build_model", refused)
    for named in ((), ("f1", "seconds"), ("precision", "recall", "mcc")):
        plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=4, scheduler="none", objectives=named)
        plan._check_objectives()


@pytest.mark.parametrize(("task", "count"), [("tagging", "words_dropped"), ("mrc_ner", "spans_out_of_reach")])
def test_the_f1_of_each_type_of_the_data_can_be_searched_for(tmp_path: Path, task: str, count: str) -> None:
    """It depended on the predictions of an untrained model for 64 records."""
    common, rare = "a B-PER\nb O\n\n", "a O\nb B-{}\n\n"
    (tmp_path / "train.conll").write_text(common * 20 + rare.format("RARE"))
    (tmp_path / "dev.conll").write_text(common * 100 + rare.format("NEW"))
    files = {"folder": str(tmp_path), "train": "train.conll", "dev": "dev.conll", "reader": "conll"}
    values = {"task": task, "data.source.files": files, "training.batch_size": 8}
    plan = SweepPlan(
        name="sweep",
        layers=(values_layer("preset", values),),
        space="a:b",
        trials=4,
        scheduler="none",
        objectives=("f1_PER", "f1_RARE", "f1_NEW"),
    )
    plan._check_objectives()
    with pytest.raises(UnknownNameError, match="did you mean 'f1_RARE'"):
        plan.model_copy(update={"objectives": ("f1", "f1_RAER")})._check_objectives()
    with pytest.raises(UnknownNameError, match=count):  # of the data: it was maximised
        plan.model_copy(update={"objectives": ("f1", count)})._check_objectives()
