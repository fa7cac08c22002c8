"""What a plan takes from earlier sweeps: points, known trials, and the settings of a study's arms."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import FixedTrial, TrialState

from dice_ray import api
from dice_ray.api import library
from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.data import sources
from dice_ray.errors import ConfigError, InputError, RunError, UnknownNameError
from dice_ray.run.driver import Driver
from dice_ray.run.folder import LEDGER, WARM_START
from dice_ray.settings import Flat, flat
from dice_ray.tuning import earlier, plan_file, runner
from dice_ray.tuning.cells import Variant
from dice_ray.tuning.earlier import _EQUAL_WEIGHTS, with_shared_settings, with_tuned_arms
from dice_ray.tuning.ledger import Ledger, TrialSpec
from dice_ray.tuning.search import SweepSearcher
from dice_ray.tuning.space import Space, own_point, points
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from search_spaces.loss_tuning import LOSSES
from tests.tuning.trials import note, pairs_in

SPACE = f"{Path(__file__).with_name('spaces.py')}:rate"


def test_a_point_is_cut_to_what_the_space_searches() -> None:
    given: list[dict[str, Any]] = [
        {"loss": "focal", "loss.focal.gamma": 2.0, "training.lr": 3e-5, "mining.ratio": 0.3},
        {"loss": "focal", "loss.focal.gamma": 50.0},
        {"loss": "focal", "loss.focal.gamma": 2.0, "training.lr": 1e-4},
        {"loss": "custom", "loss.custom.target": "mine:build"},
    ]
    found = points(given, Space("search_spaces.loss_tuning:loss_tuning"))
    assert found == [
        ({"loss": "focal", "loss.focal.gamma": 2.0}, {"training.lr": 3e-5, "mining.ratio": 0.3}),
        ({"loss": "focal"}, {"loss.focal.gamma": 50.0}),
    ]


@pytest.mark.parametrize(
    ("space", "loss"),
    [("loss_tuning", "cross_entropy"), ("joint_tuning", "cross_entropy"), ("joint_tuning:dice", "dice")],
)
def test_what_the_preset_says_comes_first(layers: tuple[Layer, ...], space: str, loss: str) -> None:
    written = (*layers, values_layer("--set", {"training.warmup": 0.9}))
    first = own_point(written, Space(library.space_address(space)))
    config = flat(resolve([*written, values_layer("trial", first)]))
    assert config == flat(resolve([*written, values_layer("loss", {"loss": loss})]))
    assert first["loss"] == loss
    assert ("training.lr" in first, "loss.dice.gamma" in first) == (space != "loss_tuning", loss == "dice")
    assert "training.warmup" not in first  # beyond what the space searches


@pytest.mark.parametrize("loss", LOSSES)
def test_the_defaults_of_each_loss_are_a_trial_of_its_space(layers: tuple[Layer, ...], loss: str) -> None:
    """Finds a space that cannot suggest the default of a setting, and a search that ends below it."""
    space = Space(f"search_spaces.loss_tuning:{loss}")
    link = values_layer("--set", {"task.sentence_pair.link": "sigmoid"})
    # The weights of LDAM, which begin late, are no default of it.
    late = {"loss.ldam.weighting": "effective_number", "loss.ldam.reweight_after": 0.8} if loss == "ldam" else {}
    space(FixedTrial({**own_point((*layers, link), space), **late}))


def test_published_points_are_the_first_trials_and_stay_so_when_resumed(
    layers: tuple[Layer, ...], tmp_path: Path
) -> None:
    points = tuple(params for params, _ in api.published_points("mrpc", "loss_tuning"))
    assert len(points) == 4  # of six, which differ in more than this space searches
    space = "search_spaces.loss_tuning:loss_tuning"
    plan = SweepPlan(name="sweep", layers=layers, space=space, trials=8, points=points)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    searcher = SweepSearcher(plan, ledger)
    for number in range(2):
        handed = searcher.suggest(f"ray{number}")
        assert handed["params"].items() >= points[number].items()
        note(ledger, TrialSpec(**handed))
    resumed = SweepSearcher(plan, ledger)
    for number in range(2, 4):
        assert resumed.suggest(f"ray{number}")["params"].items() >= points[number].items()


@pytest.mark.parametrize(
    ("preset", "space", "said"),
    [
        ("mrcp", "loss_tuning", "did you mean 'mrpc'"),
        ("tnews", "loss_tuning:tversky", "must search a loss published for tnews: focal, self_adjusting_dice"),
    ],
)
def test_where_nothing_was_published(preset: str, space: str, said: str) -> None:
    with pytest.raises((UnknownNameError, InputError), match=said):
        api.published_points(preset, space)


@pytest.fixture
def old(tmp_path: Path, layers: tuple[Layer, ...]) -> Path:
    folder = tmp_path / "earlier"
    digest = sources.load(resolve(layers).data).digest
    plan_file.store(SweepPlan(name="earlier", layers=layers, space=SPACE, trials=2, digest=digest), folder)
    ledger = Ledger(folder / "ledger.jsonl")
    for number, score in ((1, 0.3), (2, 0.6)):
        note(ledger, f"000{number}", score, params={"training.lr": number * 1e-3})
    return folder


def test_an_earlier_sweep_is_known_and_its_trials_are_not_counted(old: Path, layers: tuple[Layer, ...]) -> None:
    plan = SweepPlan(name="next", layers=layers, space=SPACE, trials=2, warm_start="earlier")
    earlier._check_warm_start(plan, old)
    folder = old.with_name("next")
    folder.mkdir()
    shutil.copyfile(old / LEDGER, folder / WARM_START)
    searcher = SweepSearcher(plan, Ledger(folder / "ledger.jsonl"), Ledger(folder / WARM_START))
    assert [(trial.state, trial.value) for trial in searcher._study.trials] == [
        (TrialState.COMPLETE, 0.3),
        (TrialState.COMPLETE, 0.6),
    ]
    assert [searcher.suggest(f"ray{number}")["id"] for number in range(2)] == ["0001", "0002"]


@pytest.mark.parametrize("scheduler", ["asha", "median"])
def test_an_earlier_sweep_stops_no_trial(scheduler: str, old: Path, layers: tuple[Layer, ...], tmp_path: Path) -> None:
    """Its trials may have had more epochs until their first evaluation: every new one was stopped at its first."""
    known, next_ = Ledger(old / "ledger.jsonl"), Ledger(tmp_path / "next.jsonl")
    for number in (3, 4):
        note(known, f"000{number}", 0.9, "done" if number == 3 else "pruned", params={"training.lr": 1e-3})
    plan = SweepPlan(name="next", layers=layers, space=SPACE, trials=2, scheduler=scheduler, warm_start="earlier")
    searcher = SweepSearcher(plan, next_, known)
    assert searcher._study.trials[3].intermediate_values == {1: 0.9}, "by which TPE ranks those that were stopped"
    searcher.suggest("ray")
    assert not searcher.report("ray", {"step": 1, "score": 0.1, "metrics": {}})


@pytest.mark.parametrize(
    ("settings", "digest", "said"),
    [
        ({"model.encoder": "minilm"}, None, r"earlier must hold a sweep of the encoder 'minilm', .* got 'tiny'"),
        ({"data.source.synthetic.noise": 0.1}, None, "a sweep of the same task and data"),
        ({}, "77aa", r"a sweep of the same data, .* \(digest 77aa then"),
    ],
)
def test_an_earlier_sweep_of_another_encoder_or_of_other_data_is_refused(
    settings: Flat, digest: str | None, said: str, old: Path, layers: tuple[Layer, ...]
) -> None:
    if digest is not None:
        old = old.with_name("changed")
        plan_file.store(SweepPlan(name="old", layers=layers, space=SPACE, trials=2, digest=digest), old)
    written = (*layers, values_layer("--set", settings))
    with pytest.raises(RunError, match=said):
        earlier._check_warm_start(SweepPlan(name="next", layers=written, space=SPACE, trials=2), old)


def test_a_study_is_no_earlier_sweep(layers: tuple[Layer, ...], tmp_path: Path) -> None:
    study = StudyPlan(name="study", layers=layers, arms={"dice": {"loss": "dice"}}, baseline="dice", seeds=(1,))
    plan_file.store(study, tmp_path)
    with pytest.raises(RunError, match="it holds a study"):
        earlier._check_warm_start(SweepPlan(name="next", layers=layers, space=SPACE, trials=2), tmp_path)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"training.lr": 1e-3, "training.epochs": 2}, "it does not search training.epochs"),
        ({"training.lr": 1.0}, r"it searches training.lr from [\d.e-]+ to [\d.e-]+, got 1.0"),
        ({}, "it also searches training.lr"),
    ],
)
def test_a_trial_that_the_space_could_not_suggest(
    params: dict[str, float], said: str, old: Path, layers: tuple[Layer, ...]
) -> None:
    ledger = Ledger(old / "ledger.jsonl")
    note(ledger, "0003", None, "failed", params=params)
    plan = SweepPlan(name="next", layers=layers, space=SPACE, trials=2, warm_start="earlier")
    with pytest.raises(InputError, match=f"trial 0003 of .*earlier must be one that .*rate could suggest: {said}"):
        runner.run(plan, old.with_name("next"), Driver())
    assert not old.with_name("next").exists()
    plan = plan.model_copy(update={"name": "earlier", "warm_start": None})
    with pytest.raises(InputError, match=f"trial 0003 of .*earlier must be one that .*rate could suggest: {said}"):
        plan.check(old)  # resumed with another space


def test_the_cells_of_a_study_are_not_taken_for_trials(layers: tuple[Layer, ...], tmp_path: Path) -> None:
    """A sweep of the name of a study was refused because of one of its cells, not because of the name."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    note(ledger, "cell", None, "failed", params={"loss": "dice"}, arm="dice")
    SweepPlan(name="study", layers=layers, space=SPACE, trials=2).check(tmp_path)


def test_a_sweep_without_a_trial_that_has_ended_is_refused(old: Path, layers: tuple[Layer, ...]) -> None:
    """Without a ledger, "No such file or directory" was said once the new plan had been stored."""
    plan = SweepPlan(name="next", layers=layers, space=SPACE, trials=2, warm_start="earlier")
    (old / "ledger.jsonl").unlink()
    for number in (1, 2):
        with pytest.raises(RunError, match="earlier must hold trials that have ended to start from, and has none"):
            runner.run(plan, old.with_name("next"), Driver())
        assert not old.with_name("next").exists()
        Ledger(old / "ledger.jsonl").append(TrialSpec(id=f"000{number}", params={"training.lr": 1e-3}, seed=0))


def test_an_earlier_sweep_of_the_same_files_in_another_folder(tmp_path: Path) -> None:
    """It was refused as one of other data; their digest says that they are the same."""
    plans = {
        folder: SweepPlan(name=folder, layers=pairs_in(tmp_path / folder, "train"), space=SPACE, trials=1)
        for folder in ("there", "here")
    }
    digest = plans["there"].base().splits().digest
    plan_file.store(plans["there"].model_copy(update={"digest": digest}), tmp_path / "sweep")
    assert earlier._sweep_in(tmp_path / "sweep", plans["here"].base(), digest).plan.name == "there"
    pairs_in(tmp_path / "here", "train", first="another {}")
    with pytest.raises(RunError, match=r"a sweep of the same data, .* they were changed"):
        earlier._check_warm_start(plans["here"], tmp_path / "sweep")


ARMS: dict[str, Flat] = {
    "ce": {"loss": "cross_entropy"},
    "focal": {"loss": "focal"},
    "mild": {"loss": "focal", "loss.focal.gamma": 0.5},
}


@pytest.fixture
def sweep(tmp_path: Path, layers: tuple[Layer, ...]) -> Callable[..., Path]:
    """Stores a sweep of these trials and scores."""

    def stored(name: str, *trials: tuple[Flat, float | None], seed: int = 0, over: Flat | None = None) -> Path:
        written = (*layers, values_layer("--set", over or {}))
        digest = sources.load(resolve(written).data).digest
        plan = SweepPlan(name=name, layers=written, space="m:f", trials=len(trials), digest=digest, seed=seed)
        plan_file.store(plan, tmp_path / name)
        ledger = Ledger(tmp_path / name / "ledger.jsonl")
        for id_, (params, score) in zip(plan.ids, trials, strict=True):
            note(ledger, id_, score, "failed" if score is None else "done", params=params, seed=seed)
        return tmp_path / name

    return stored


@pytest.fixture
def study(layers: tuple[Layer, ...]) -> StudyPlan:
    digest = sources.load(resolve(layers).data).digest
    return StudyPlan(name="study", layers=layers, arms=ARMS, baseline="ce", seeds=(1, 2), digest=digest)


def test_a_baseline_that_does_not_fit_the_task_is_refused(sweep: Callable[..., Path], study: StudyPlan) -> None:
    found = sweep("found", ({"loss": "cross_entropy"}, 0.5), ({"loss": "focal"}, 0.6))
    plan = study.model_copy(update={"arms": {**ARMS, "other": {"loss": "asymmetric"}}, "baseline": "other"})
    with pytest.raises(ConfigError, match="loss: must take the softmax link of task sentence_pair"):
        with_tuned_arms(plan, [found])


def test_an_arm_takes_the_best_trial_of_its_loss_and_keeps_what_it_writes(
    sweep: Callable[..., Path], study: StudyPlan
) -> None:
    ce: Flat = {"loss": "cross_entropy", "training.lr": 1e-3}
    focal: Flat = {"loss": "focal", "loss.focal.gamma": 3.0, "training.lr": 2e-3}
    worse = sweep("worse", ({**focal, "training.lr": 1.0}, 0.7), ({"loss": "dice"}, 0.99))
    better = sweep("better", (ce, 0.5), (focal, 0.8), (ce, 0.4), ({**ce, "training.lr": 1.0}, None))
    found = with_tuned_arms(study, [better, worse])
    assert {arm: found.arms[arm] for arm in ARMS} == ARMS, "the settings of a trial are a layer below the arm"
    cells = {cell.arm: found.config(cell) for cell in found.grid().cells}
    assert {arm: config.training.lr for arm, config in cells.items()} == {
        **{"ce": 1e-3, "focal": 2e-3, "mild": 2e-3},
        "control_focal": 2e-3,
    }
    gammas = {arm: flat(config)["loss.focal.gamma"] for arm, config in cells.items() if config.loss.name == "focal"}
    assert gammas == {"focal": 3.0, "mild": 0.5}
    assert found.tuned == {
        "ce": "better 0001, best of 3",
        "focal": "better 0002, best of 2",
        "mild": "better 0002, best of 2",
        "control_focal": "better 0002, best of 2",
    }
    assert found.controls == {"control_focal": "focal"}
    assert cells["control_focal"].loss == cells["ce"].loss
    assert len(found.grid().cells) == 8
    same = sweep("same", (ce, 0.5), ({**focal, "training.lr": 1e-3}, 0.5))
    assert not with_tuned_arms(study, [same]).controls, "all arms have the same settings"
    fixed = study.model_copy(update={"arms": {**ARMS, "ce": {"loss": "cross_entropy", "training.lr": 5e-4}}})
    assert not with_tuned_arms(fixed, [better]).controls, "it would be the baseline itself"
    taken = study.model_copy(update={"arms": {**ARMS, "control_ce": {"loss": "focal", "loss.focal.gamma": 4}}})
    with pytest.raises(ConfigError, match=r"arms\.control_ce: must have another name"):
        with_tuned_arms(taken, [better])


@pytest.mark.parametrize("shared", [False, True])
def test_a_setting_that_a_tuned_arm_would_override_is_refused(
    sweep: Callable[..., Path], study: StudyPlan, shared: bool
) -> None:
    """`--set` was ignored without a word where the sweep had searched the same path."""
    there = sweep("there", ({"loss": "cross_entropy"}, 0.7), ({"loss": "focal", "loss.focal.gamma": 3.0}, 0.5))
    given = values_layer("--set", {"loss.focal.gamma": 1.0, "training.epochs": 3})
    plan = study.model_copy(update={"layers": (*study.layers, given), "shared": "ce 0001" if shared else ""})
    with pytest.raises(ConfigError) as caught:
        with_tuned_arms(plan, [there])
    (problem,) = caught.value.problems
    assert (problem.path, problem.origin) == ("loss.focal.gamma", "--set")
    assert problem.must == "must not be set: an arm has what its sweep found; leave it out"


@pytest.mark.parametrize(
    ("arm", "kept"),
    [
        ({"loss": {"focal": {"gamma": 0.5}}}, {"loss.focal.gamma": 0.5, "loss.focal.weighting.lg.k": 7.0}),
        ({"loss.focal": {"gamma": 0.5, "weighting": {"lg": {"k": 2}}}}, {"loss.focal.weighting.lg.k": 2.0}),
        ({"loss": "focal", "loss.focal.weighting": "inverse"}, {"loss.focal.weighting": "inverse"}),
        ({"loss": {"focal": {"weighting": "inverse"}}}, {"loss.focal.weighting": "inverse", "loss.focal.gamma": 3.0}),
        (
            {"loss": {"focal": {"weighting": {"effective_number": {"beta": 0.9}}}}},
            {"loss.focal.weighting.effective_number.beta": 0.9},
        ),
    ],
)
def test_an_arm_keeps_what_it_writes_in_any_form_and_its_own_branch(
    sweep: Callable[..., Path], study: StudyPlan, arm: Flat, kept: Flat
) -> None:
    """Joined by path, a nested arm lost its values, and another weighting was an error for two branches."""
    best: Flat = {"loss.focal.gamma": 3.0, "loss.focal.weighting": "lg", "loss.focal.weighting.lg.k": 7.0}
    there = sweep("weighted", ({"loss": "focal"} | best, 0.5), ({"loss": "cross_entropy"}, 0.5))
    found = with_tuned_arms(study.model_copy(update={"arms": {"ce": {}, "own": arm}}), [there])
    values = flat(found.config(found.grid().cells[1]))
    assert kept.items() <= values.items()
    assert ("loss.focal.weighting.lg.k" in values) == (values["loss.focal.weighting"] == "lg")


def test_a_trial_that_ran_again_counts_by_its_reruns_and_reruns_are_no_trials(
    sweep: Callable[..., Path], study: StudyPlan
) -> None:
    ce: Flat = {"loss": "cross_entropy"}
    lucky, steady = sweep("lucky", ({"loss": "focal"}, 0.9), (ce, 0.5)), sweep("steady", ({"loss": "focal"}, 0.7))
    ledger = Ledger(lucky / "ledger.jsonl")
    note(ledger, "0001-1001", 0.6, params={"loss": "focal"}, seed=1001, rerun_of="0001")
    ledger.append(TrialSpec(id="0003", params={"loss": "focal"}, seed=0))  # which has not ended
    # As in one sweep: the mean of reruns is not compared with the score by which a trial was selected.
    assert with_tuned_arms(study, [lucky, steady]).tuned["focal"] == "lucky 0001, best of 2"
    assert with_tuned_arms(study, [steady, lucky]).tuned["focal"] == "lucky 0001, best of 2"
    ledger = Ledger(steady / "ledger.jsonl")
    note(ledger, "0001-1001", 0.7, params={"loss": "focal"}, seed=1001, rerun_of="0001")
    assert with_tuned_arms(study, [lucky, steady]).tuned["focal"] == "steady 0001, best of 2"


@pytest.mark.parametrize(
    ("over", "seed", "said"),
    [
        ({"data.source.synthetic.size": 300}, 0, "a sweep of the same task and data"),
        ({"task.sentence_pair.max_length": 16}, 0, "a sweep of the same task and data"),
        ({"model.encoder": "minilm"}, 0, "encoder 'tiny' to tune its arms, got 'minilm'"),
        ({}, 2, "other seeds than its arms were tuned on, got seed 2 of other"),
    ],
)
def test_a_sweep_that_says_nothing_here_is_refused(
    sweep: Callable[..., Path], study: StudyPlan, over: Flat, seed: int, said: str
) -> None:
    there = sweep("other", ({"loss": "focal"}, 0.5), ({"loss": "cross_entropy"}, 0.5), seed=seed, over=over)
    with pytest.raises(RunError, match=said):
        with_tuned_arms(study, [there])


def test_an_arm_found_in_no_sweep_is_named(sweep: Callable[..., Path], study: StudyPlan) -> None:
    there = sweep("focals", ({"loss": "focal"}, 0.5), ({"loss": "cross_entropy"}, None))
    with pytest.raises(ConfigError, match=r"arms\.ce: must be of a loss .* got cross_entropy\. Known: focal"):
        with_tuned_arms(study, [there])


CE_TRIAL: Flat = {"loss": "cross_entropy", "training.lr": 2e-3, "training.warmup": 0.2, "model.head_bias": "prior"}
DICE_TRIAL: Flat = {"loss": "dice", "loss.dice.gamma": 3.0, "mining.ratio": 1.0, "training.lr": 5e-3}


def configs(plan: StudyPlan) -> dict[str | None, Flat]:
    return {cell.arm: flat(plan.config(cell)) for cell in plan.grid().cells}


def test_shared_settings_are_those_of_the_best_trial_apart_from_its_loss(
    sweep: Callable[..., Path], study: StudyPlan
) -> None:
    """Finds arms that differ in more than their loss, or that all got the loss of the best trial."""
    found = with_shared_settings(
        study, sweep("joint", (CE_TRIAL, 0.5), (DICE_TRIAL, 0.8), ({**DICE_TRIAL, "training.lr": 1.0}, None))
    )
    assert found.shared == "joint 0002, dice, best of 3"
    of_arm = configs(found)
    assert {arm: values["training.lr"] for arm, values in of_arm.items()} == dict.fromkeys(of_arm, 5e-3)
    assert {arm: values["loss"] for arm, values in of_arm.items()} == {
        **{"ce": "cross_entropy", "focal": "focal", "mild": "focal"},
        "control_ce": "weighted_cross_entropy",
    }
    assert not any("mining.ratio" in values and values["mining.ratio"] for values in of_arm.values())
    by_ce = configs(with_shared_settings(study, sweep("ce", (CE_TRIAL, 0.5))))
    assert {values["model.head_bias"] for values in by_ce.values()} == {"prior"}
    assert not found.tuned
    written = study.model_copy(
        update={
            "layers": (*study.layers, values_layer("--set", {"training.lr": 0.1})),
            "variants": {"few": Variant(layers=(*study.layers, values_layer("variant few", {"training.warmup": 0.3})))},
        }
    )
    above = with_shared_settings(written, sweep("over", (CE_TRIAL, 0.5)))
    assert above.base().training.lr == 0.1, "what the study writes is above the shared settings"
    assert (above.base("few").training.warmup, above.base("few").training.lr) == (0.3, 2e-3)


def test_with_shared_settings_a_loss_takes_its_own_parameters_alone(
    sweep: Callable[..., Path], study: StudyPlan
) -> None:
    """Finds an arm that gets other optimizer settings back by the search of its parameters."""
    wider = study.model_copy(update={"arms": {**ARMS, "dice": {"loss": "dice"}}})
    plan = with_shared_settings(wider, sweep("ce", (CE_TRIAL, 0.5)))
    at_shared = {"training.lr": 2e-3, "training.warmup": 0.2}
    own: Flat = {"loss": "dice", "loss.dice.gamma": 3.0, "mining.ratio": 1.0, "model.head_bias": "zero"}
    dices = sweep("dices", (own, 0.8), ({"loss": "cross_entropy"}, 0.4), over=at_shared)
    found = with_tuned_arms(plan, [dices])
    assert found.tuned == {"dice": "dices 0001, best of 1"}, "cross-entropy has no parameters, and focal no sweep"
    assert found.controls == {"control_ce": "ce"}
    values = configs(found)["dice"]
    expected = {**at_shared, "loss.dice.gamma": 3.0, "mining.ratio": 1.0, "model.head_bias": "prior"}
    assert expected.items() <= values.items()
    with pytest.raises(RunError, match=r"at the shared settings of ce, .* training.lr 0.005 instead of 0.002: run it"):
        with_tuned_arms(plan, [sweep("joint", (DICE_TRIAL, 0.8))])


def test_the_control_of_shared_settings_is_absent_where_it_shows_nothing(
    sweep: Callable[..., Path], study: StudyPlan
) -> None:
    there = sweep("ce", (CE_TRIAL, 0.5))
    of_focal = study.model_copy(update={"baseline": "focal"})
    assert not with_shared_settings(of_focal, there).controls
    own = study.model_copy(update={"arms": {**ARMS, "same": dict(_EQUAL_WEIGHTS)}})
    assert not with_shared_settings(own, there).controls, "two equal arms would be refused"


@pytest.mark.parametrize(
    ("trial", "score", "says"),
    [
        ({"loss": "focal", "loss.focal.gamma": 1.0}, 0.5, r"all losses can share, .* loss, loss.focal.gamma only"),
        (CE_TRIAL, None, r"must have a trial with a score to share its settings, and it has none"),
    ],
)
def test_a_sweep_that_has_nothing_to_share_is_refused(
    sweep: Callable[..., Path], study: StudyPlan, trial: Flat, score: float | None, says: str
) -> None:
    with pytest.raises(RunError, match=says):
        with_shared_settings(study, sweep("other", (trial, score)))


@pytest.mark.parametrize("take", ["shared", "tuned"])
def test_an_arm_that_the_task_cannot_run_is_left_out(sweep: Callable[..., Path], study: StudyPlan, take: str) -> None:
    """It ended the command, so that no study with all losses could take its settings from a sweep."""
    arms = {**ARMS, "asymmetric": {"loss": "asymmetric"}}  # for several labels
    there = sweep("s", ({"loss": "focal", "training.lr": 2e-3}, 0.5), ({"loss": "cross_entropy"}, 0.4))
    with_all = study.model_copy(update={"arms": arms})
    found = with_shared_settings(with_all, there) if take == "shared" else with_tuned_arms(with_all, [there])
    assert [each.arm for each in found.grid().left_out] == ["asymmetric"]
    assert {cell.arm for cell in found.grid().cells} >= {*ARMS}
