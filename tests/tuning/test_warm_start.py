"""Where a search begins: points cut to the space, and an earlier sweep whose every trial the space could suggest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from optuna.trial import FixedTrial, TrialState

from dice_ray import api
from dice_ray.api import shipped
from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.data import sources
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.run.driver import Driver
from dice_ray.run.folder import LEDGER, WARM_START
from dice_ray.settings import flat
from dice_ray.tracking.schema import State
from dice_ray.tuning import earlier, plan_file, runner
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.search import SweepSearcher
from dice_ray.tuning.space import Space, own_point, points
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from search_spaces.loss_tuning import LOSSES

SPACE = f"{Path(__file__).with_name('spaces.py')}:rate"


def test_a_point_is_cut_to_what_the_space_searches() -> None:
    given = [
        {"loss": "focal", "loss.focal.gamma": 2.0, "training.lr": 3e-5, "mining.ratio": 0.3},
        {"loss": "focal", "loss.focal.gamma": 50.0},
        {"loss": "focal", "loss.focal.gamma": 2.0, "training.lr": 1e-4},
        {"loss": "asymmetric", "loss.asymmetric.margin": 0.05},
    ]
    found = points(given, Space("search_spaces.loss_tuning:loss_tuning"))
    assert [point.params for point in found] == [{"loss": "focal", "loss.focal.gamma": 2.0}, {"loss": "focal"}]
    assert [point.left_out for point in found] == [
        {"training.lr": 3e-5, "mining.ratio": 0.3},
        {"loss.focal.gamma": 50.0},
    ]


@pytest.mark.parametrize(
    ("space", "loss"),
    [("loss_tuning", "cross_entropy"), ("joint_tuning", "cross_entropy"), ("joint_tuning:dice", "dice")],
)
def test_what_the_preset_says_comes_first(layers: tuple[Layer, ...], space: str, loss: str) -> None:
    written = (*layers, values_layer("--set", {"training.warmup": 0.9}))
    first = own_point(written, Space(shipped.space_address(space)))
    config = flat(resolve([*written, values_layer("trial", first)]))
    assert config == flat(resolve([*written, values_layer("loss", {"loss": loss})]))
    assert first["loss"] == loss
    assert ("training.lr" in first, "loss.dice.gamma" in first) == (space != "loss_tuning", loss == "dice")
    assert "training.warmup" not in first  # beyond what the space searches


@pytest.mark.parametrize("loss", LOSSES)
def test_the_defaults_of_each_loss_are_a_trial_of_its_space(layers: tuple[Layer, ...], loss: str) -> None:
    """Finds a space that cannot suggest the default of a setting, and a search that ends below it."""
    space = Space(f"search_spaces.loss_tuning:{loss}")
    space(FixedTrial(dict(own_point(layers, space))))


def test_published_points_are_the_first_trials_and_stay_so_when_resumed(
    layers: tuple[Layer, ...], tmp_path: Path
) -> None:
    points = tuple(point.params for point in api.published_points("mrpc", "loss_tuning"))
    assert len(points) == 4  # of six, which differ in more than this space searches
    space = "search_spaces.loss_tuning:loss_tuning"
    plan = SweepPlan(name="sweep", layers=layers, space=space, trials=8, points=points)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    searcher = SweepSearcher(plan, ledger)
    for number in range(2):
        handed = searcher.suggest(f"ray{number}")
        assert handed["params"].items() >= points[number].items()
        ledger.append(TrialSpec(**handed))
        ledger.append(TrialOutcome(id=handed["id"], state="done", curve=((5, 0.4),), metrics=({},)))
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
        ledger.append(TrialSpec(id=f"000{number}", params={"training.lr": number * 1e-3}, seed=0))
        ledger.append(TrialOutcome(id=f"000{number}", state="done", curve=((5, score),), metrics=({},)))
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
        known.append(TrialSpec(id=f"000{number}", params={"training.lr": 1e-3}, seed=0))
        state: State = "done" if number == 3 else "pruned"
        known.append(TrialOutcome(id=f"000{number}", state=state, curve=((5, 0.9),), metrics=({},)))
    plan = SweepPlan(name="next", layers=layers, space=SPACE, trials=2, scheduler=scheduler, warm_start="earlier")
    searcher = SweepSearcher(plan, next_, known)
    assert searcher._study.trials[3].intermediate_values == {1: 0.9}, "by which TPE ranks those that were stopped"
    searcher.suggest("ray")
    assert not searcher.report("ray", {"step": 1, "score": 0.1, "metrics": {}})


def test_an_earlier_sweep_of_another_encoder_is_refused(old: Path, layers: tuple[Layer, ...]) -> None:
    layers = (*layers, values_layer("--set", {"model.encoder": "minilm"}))
    plan = SweepPlan(name="next", layers=layers, space=SPACE, trials=2, warm_start="earlier")
    with pytest.raises(RunError, match=r"earlier must hold a sweep of the encoder 'minilm', .* got 'tiny'"):
        earlier._check_warm_start(plan, old)


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
    ledger.append(TrialSpec(id="0003", params=params, seed=0))
    ledger.append(TrialOutcome(id="0003", state="failed", failure="lost"))
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
    ledger.append(TrialSpec(id="cell", params={"loss": "dice"}, seed=1, arm="dice"))
    ledger.append(TrialOutcome(id="cell", state="failed", failure="lost"))
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
    plans = {}
    for folder in ("there", "here"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.tsv").write_text(
            "a\tb\tlabel\n" + "".join(f"{n}\tx{n}\t{n % 2}\n" for n in range(40))
        )
        columns = {"pair": {"first": "a", "second": "b", "label": "label"}}
        reader = {"tables": {"quoting": False, "columns": columns}}
        files = {"folder": str(tmp_path / folder), "train": "train.tsv", "reader": reader}
        values = {"task": "sentence_pair", "data.source.files": files, "training.batch_size": 8}
        plans[folder] = SweepPlan(name=folder, layers=(values_layer("preset", values),), space=SPACE, trials=1)
    digest = plans["there"].base().splits().digest
    plan_file.store(plans["there"].model_copy(update={"digest": digest}), tmp_path / "sweep")
    assert earlier._sweep_in(tmp_path / "sweep", plans["here"].base(), digest).plan.name == "there"
    (tmp_path / "here/train.tsv").write_text("a\tb\tlabel\n" + "".join(f"{n}\ty{n}\t{n % 2}\n" for n in range(40)))
    with pytest.raises(RunError, match=r"a sweep of the same data, .* they were changed"):
        earlier._check_warm_start(plans["here"], tmp_path / "sweep")


def test_a_sweep_of_other_data_or_a_study_says_nothing_here(old: Path, layers: tuple[Layer, ...]) -> None:
    other = (*layers, values_layer("settings", {"data.source.synthetic.noise": 0.1}))
    with pytest.raises(RunError, match="a sweep of the same task and data"):
        earlier._check_warm_start(SweepPlan(name="next", layers=other, space=SPACE, trials=2), old)
    plan_file.store(SweepPlan(name="old", layers=layers, space=SPACE, trials=2, digest="77aa"), old.with_name("old"))
    with pytest.raises(RunError, match=r"a sweep of the same data, .* \(digest 77aa then"):
        earlier._check_warm_start(SweepPlan(name="next", layers=layers, space=SPACE, trials=2), old.with_name("old"))
    study = StudyPlan(name="study", layers=layers, arms={"dice": {"loss": "dice"}}, baseline="dice", seeds=(1,))
    plan_file.store(study, old.with_name("study"))
    with pytest.raises(RunError, match="it holds a study"):
        earlier._check_warm_start(SweepPlan(name="next", layers=layers, space=SPACE, trials=2), old.with_name("study"))
