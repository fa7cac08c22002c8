"""The recorder with a real ledger and MLflow: each event once; and what of ended trials stays on the disk."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from dice_ray.config.load import Layer, as_yaml
from dice_ray.errors import DataError
from dice_ray.tracking import schema
from dice_ray.tracking.reader import curves, read
from dice_ray.tracking.store import quiet_client, store_uri
from dice_ray.tracking.writer import Writer
from dice_ray.tuning.cells import Asked
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.plan import Plan
from dice_ray.tuning.recorder import Recorder
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Run


from dice_ray.tracking.schema import State
from dice_ray.tuning import ranking, recorder
from tests.tuning.trials import note

pytestmark = pytest.mark.usefixtures("uri")  # to make a store takes as long as a short run

FOCAL = TrialSpec(id="0001", params={"loss": "focal", "loss.focal.gamma": 1.5}, seed=4)
DICE = TrialSpec(id="0002", params={"loss": "dice"}, seed=4)
COLUMNS = {"pair": {"first": "a", "second": "b", "label": "label"}}
FILES = {
    "folder": "$NO_SUCH_VARIABLE",
    "train": "train.tsv",
    "reader": {"tables": {"quoting": False, "columns": COLUMNS}},
}
LOST = TrialSpec(id="0004", params={"data.source": {"files": FILES}}, seed=4)
WRONG = TrialSpec(id="0003", params={"loss.focal.gama": 1}, seed=4)


def told(step: int, score: float, **more: Any) -> dict[str, Any]:
    return {"score": score, "step": step, "metrics": {"dev/f1": score, "dev/collapsed": 0.0}, **more}


@pytest.fixture
def plan(layers: tuple[Layer, ...]) -> SweepPlan:
    return SweepPlan(name="sweep", layers=layers, space="a:b", trials=3, digest="of all")


@contextmanager
def recording(
    plan: Plan, ledger: Ledger, ids: Sequence[str], stored: Collection[str] = (), tags: Mapping[str, str] | None = None
) -> Iterator[Recorder]:
    """A recorder that is opened, and closed at the end of the block."""
    with Writer(plan.name) as writer:
        recorder = Recorder(plan, ledger, writer, ids)
        recorder.open(stored, tags)
        yield recorder
        recorder.close()


def all_runs(experiment: str) -> list[Run]:
    """As MLflow's own client reads them."""
    client = quiet_client(store_uri())
    found = client.get_experiment_by_name(experiment)
    assert found is not None
    return list(client.search_runs([found.experiment_id]))


def test_what_ray_tells_twice_is_noted_once(tmp_path: Path, plan: SweepPlan) -> None:
    path = tmp_path / "ledger.jsonl"
    writer = Writer("sweep")
    recorder = Recorder(plan, Ledger(path), writer, plan.ids)
    recorder.open(())
    for trial in (FOCAL, DICE, WRONG):
        recorder.started(trial)
    recorder.reported("0001", told(5, 0.25))
    recorder.started(FOCAL)  # its actor was lost: it tells its history again
    recorder.reported("0001", told(5, 0.25))
    recorder.reported("0001", told(10, 0.5, finished=False))
    (tmp_path / "trials/0001").mkdir(parents=True)
    (tmp_path / "trials/0001/task.json").write_text('{"data": "digest of its own", "classes": [], "facts": []}')
    recorder.ended("0001", told(10, 0.5, finished=False, tags={schema.CPU: "a node's"}))
    recorder.reported("0003", told(5, 0.75))  # best so far, until it fails
    recorder.reported("0003", {"score": math.nan, "failure": "gama is not a key"})
    recorder.ended("0003", {"score": math.nan, "failure": "gama is not a key"})
    progress = recorder.counts
    assert (progress.running, progress.done, progress.failed, progress.pruned, progress.total) == (1, 0, 1, 1, 3)
    assert (progress.best_score, progress.best_params) == (0.5, FOCAL.params)
    assert [(trial.name, trial.step, trial.loss) for trial in progress.trials] == [("0002 dice", 0, None)]
    recorder.reported("0002", told(7, 0.125) | {"metrics": {"train/loss": 0.75}})
    (running,) = recorder.counts.trials
    assert (running.step, running.loss, running.score) == (7, 0.75, 0.125)
    assert progress.seconds_left is not None
    assert 0 <= progress.seconds_left <= progress.elapsed / 2
    recorder.close()
    writer.close()

    ledger = Ledger(path)
    assert ledger.unfinished == [DICE]
    assert (ledger.outcomes["0001"].state, ledger.outcomes["0001"].curve) == ("pruned", ((5, 0.25), (10, 0.5)))
    assert (ledger.outcomes["0003"].state, ledger.outcomes["0003"].failure) == ("failed", "gama is not a key")

    stored = {path.read_text() for path in tmp_path.rglob("artifacts/config.yaml")}
    assert stored == {as_yaml(plan.config(trial)) for trial in (FOCAL, DICE)}
    rows = read("sweep").set_index("id")
    assert rows["status"].to_dict() == {"sweep": "KILLED", "0001": "FINISHED", "0002": "KILLED", "0003": "FAILED"}
    assert rows.loc["0001", "params.training.seed"] == 4
    assert rows.loc["0001", "tags.loss"] == "focal"
    assert rows.loc["0001", "name"] == "sweep/0001"
    assert (rows.loc["0001", "tags.cpu"], rows.loc["0002", "tags.cpu"]) == ("a node's", rows.loc["sweep", "tags.cpu"])
    assert set(rows["tags.version.dice_ray"]) == {metadata.version("dice-ray")}
    runs = {run.data.tags[schema.ID]: run for run in all_runs("sweep")}
    used = {
        id_: [each.dataset.digest for each in (run.inputs.dataset_inputs if run.inputs else ())]
        for id_, run in runs.items()
    }
    assert used == {"sweep": ["of all"], "0001": ["digest of its own"], "0002": [], "0003": []}
    assert rows.loc["0001", "tags.searched"] == "loss loss.focal.gamma"
    assert rows.loc["0003", "tags.failure"] == "gama is not a key"
    assert len(curves("sweep").query("id == '0001' and metric == 'dev/f1'")) == 2


def test_an_objective_without_a_span_is_kept_as_zero(tmp_path: Path, plan: SweepPlan) -> None:
    """The report left the trial out of the Pareto front, or took the value of an evaluation that was not kept."""
    of_types = plan.model_copy(update={"objectives": ("f1", "f1_RARE", "seconds"), "scheduler": "none"})
    with recording(of_types, Ledger(tmp_path / "ledger.jsonl"), of_types.ids) as recorder:
        recorder.started(FOCAL)
        recorder.reported("0001", told(5, 0.25) | {"metrics": {"dev/f1": 0.25, "dev/f1_RARE": 0.5}})
        recorder.reported("0001", told(10, 0.5, finished=True))
        recorder.ended("0001", told(10, 0.5, finished=True))
    stored = read("sweep").set_index("id").loc["0001"]
    assert (stored["metrics.dev/kept_f1"], stored["metrics.dev/kept_f1_RARE"]) == (0.5, 0.0)
    assert Ledger(tmp_path / "ledger.jsonl").outcomes["0001"].metrics[1] == told(10, 0.5)["metrics"]


def test_the_experiment_is_described_once_and_the_users_tags_are_on_the_parent(tmp_path: Path, plan: SweepPlan) -> None:
    client = quiet_client(store_uri())

    def experiment() -> Experiment:
        found = client.get_experiment_by_name("sweep")
        assert found is not None
        return found

    def described() -> str:
        return str(experiment().tags[schema.NOTE])

    with recording(plan, Ledger(tmp_path / "ledger.jsonl"), plan.ids, tags={"team": "a"}) as recorder:
        recorder.started(DICE)
    tags = {run.data.tags[schema.ID]: run.data.tags for run in all_runs("sweep")}
    assert (tags["sweep"]["team"], "team" in tags["0002"]) == ("a", False)
    assert "a search of the space `a:b` with the sampler `tpe`, by dev/f1" in described()
    client.set_experiment_tag(experiment().experiment_id, schema.NOTE, "mine")
    with recording(plan, Ledger(tmp_path / "ledger.jsonl"), plan.ids):
        pass
    assert described() == "mine"


def test_a_trial_that_ray_gives_up_has_begun_and_says_why(tmp_path: Path, plan: SweepPlan) -> None:
    path = tmp_path / "ledger.jsonl"
    with recording(plan.model_copy(update={"trials": 2}), Ledger(path), plan.ids[:2]) as recorder:
        recorder.started(FOCAL)
        recorder.reported("0001", told(5, 0.25))
        recorder.lost(FOCAL, "its process died")
        recorder.lost(DICE, "there was no process")
    ended = Ledger(path).outcomes
    assert {id_: each.failure for id_, each in ended.items()} == {
        "0001": "its process died",
        "0002": "there was no process",
    }
    assert (ended["0001"].curve, ended["0002"].curve) == (((5, 0.25),), ())
    assert set(read("sweep")["status"]) == {"FAILED"}, "the sweep too, since no trial is left and all failed"


def test_a_trial_that_ray_gives_up_untried_is_run_again_when_no_other_is(tmp_path: Path, plan: SweepPlan) -> None:
    path = tmp_path / "ledger.jsonl"
    with recording(plan, Ledger(path), plan.ids) as recorder:
        recorder.started(FOCAL)
        recorder.lost(DICE, "its machine is gone", is_final=False)
        assert not recorder.to_resubmit(), "others go on, or were interrupted"
        assert recorder.counts.running == 2
        recorder.lost(FOCAL, "its process died")
        assert recorder.to_resubmit() == [DICE]
        assert not recorder.to_resubmit()
    assert list(Ledger(path).unfinished) == [DICE]
    assert set(Ledger(path).outcomes) == {"0001"}


def test_what_mlflow_lacks_is_sent_in_the_order_of_the_starts(tmp_path: Path, plan: SweepPlan) -> None:
    """Of equal trials the first one is best: MLflow's was the first to end, and the ledger's the first to start."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for trial in (FOCAL, DICE):
        ledger.append(trial)
    for trial in (DICE, FOCAL):
        ledger.append(TrialOutcome(id=trial.id, state="done", curve=((5, 0.5),), metrics=({"dev/f1": 0.5},)))
    with recording(plan, ledger, plan.ids):
        pass
    assert [trial.id for trial in ranking.ranked_in_frame(read("sweep"))] == ["0001", "0002"]


def test_what_mlflow_lacks_is_sent_from_the_ledger(tmp_path: Path, plan: SweepPlan) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for trial in (FOCAL, DICE):
        ledger.append(trial)
        metrics = ({"dev/f1": 0.25}, {"dev/f1": 0.5})
        ledger.append(TrialOutcome(id=trial.id, state="done", curve=((5, 0.25), (10, 0.5)), metrics=metrics))
    with recording(plan, ledger, plan.ids, stored={"0002"}):
        pass
    assert set(read("sweep")["id"]) == {"sweep", "0001"}
    points = set(curves("sweep")[["metric", "step", "value"]].itertuples(index=False, name=None))
    assert points == {("dev/f1", 5, 0.25), ("dev/f1", 10, 0.5), ("dev/best_f1", 10, 0.5)}


def test_a_trial_collapsed_where_its_best_evaluation_or_its_test_did(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    metrics = tuple({"dev/f1": 0.5, "dev/collapsed": collapsed} for collapsed in (1.0, 0.0, 1.0))
    ended: dict[str, Any] = {"state": "done", "curve": ((5, 0.25), (10, 0.5), (15, 0.25)), "metrics": metrics}
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for id_, test in (("of dev", {}), ("of test", {"test/f1": 0.0, "test/collapsed": 1.0})):
        ledger.append(DICE.model_copy(update={"id": id_, "arm": "dice"}))
        ledger.append(TrialOutcome(id=id_, test=test, **ended))
    plan = StudyPlan(
        name="study",
        layers=layers,
        arms={"dice": {"loss": "dice"}},
        baseline="dice",
        seeds=(4, 5),
        asked=Asked(arms=("dice",), seeds=(4,)),
    )
    with recording(plan, ledger, ["of dev"]):
        pass
    rows = read("study").set_index("id")
    assert rows["tags.collapsed"].dropna().to_dict() == {"of dev": "false", "of test": "true"}
    assert rows.loc["of dev", "name"] == f"study/dice/{DICE.seed}", "as commands take it"
    (stored,) = tmp_path.rglob("artifacts/plan.yaml")
    assert "asked: null" in stored.read_text(), "a report reruns all that it shows"


def test_a_trial_whose_data_cannot_be_described_is_noted(
    tmp_path: Path, plan: SweepPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    with pytest.raises(DataError, match="NO_SUCH_VARIABLE"):
        plan.config(LOST).tags()
    with recording(plan, Ledger(tmp_path / "ledger.jsonl"), plan.ids) as recorder:
        recorder.started(LOST)
        recorder.ended(LOST.id, {"failure": "the variable must be set"})
    assert read("sweep").set_index("id").loc["0004", "tags.failure"] == "the variable must be set"


def test_the_time_left_is_that_of_the_trials_that_end_now(
    tmp_path: Path, plan: SweepPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was below zero while trials that had failed before were run again, and grew until the next trial ended."""
    clock = [0.0]
    monkeypatch.setattr("dice_ray.tuning.recorder.time", SimpleNamespace(monotonic=lambda: clock[-1]))
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for trial in (FOCAL, DICE):
        ledger.append(trial)
        ledger.append(TrialOutcome(id=trial.id, state="failed", failure="no memory"))
    with recording(plan, ledger, plan.ids) as recorder:
        clock.append(5.0)
        recorder.started(FOCAL)
        assert recorder.counts.seconds_left is None
        clock.append(15.0)
        recorder.reported("0001", told(5, 0.5, finished=True))
        recorder.ended("0001", told(5, 0.5, finished=True))
        recorder.started(DICE)
        for now, left in ((15.0, 20.0), (21.0, 14.0), (50.0, 0.0)):
            clock.append(now)
            assert recorder.counts.seconds_left == left, "two of three are left, and take ten seconds each"


SCORES: dict[str, tuple[State, float | None]] = {
    "0001": ("done", 0.5),
    "0002": ("failed", 0.9),
    "0003": ("pruned", 0.7),
    "0004": ("done", 0.7),
    "0005": ("failed", None),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for id_, (state, score) in SCORES.items():
        note(ledger, id_, score, state, params={"lr": score})
        folder = tmp_path / "trials" / id_
        (folder / "encoder").mkdir(parents=True)
        (folder / "test").mkdir()
        for name in ("best.pt", "last.pt", "before.pt", "config.yaml", "encoder/config.json", "test/items.csv"):
            (folder / name).write_text("x")
    return ledger


def left(tmp_path: Path) -> dict[str, set[str]]:
    return {folder.name: {path.name for path in folder.iterdir()} for folder in sorted((tmp_path / "trials").iterdir())}


def test_a_sweep_keeps_the_checkpoints_of_its_best_alone(
    tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]
) -> None:
    assert ranking.best_in(ledger) == "0003"
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=5)
    # More seeds may be asked for later; of equal configurations one is kept.
    assert plan.retained(ledger) == {"0003", "0001"}
    plan = plan.model_copy(update={"top": 1})
    for _ in range(2):
        recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
        others = {id_: {"config.yaml", "test"} for id_ in SCORES if id_ != "0003"}
        assert left(tmp_path) == others | {"0003": {"best.pt", "config.yaml", "encoder", "test"}}


def test_nothing_is_deleted_behind_a_link(tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]) -> None:
    """A trial's folder may have been moved to another disk, or a link put in its place by someone else."""
    elsewhere = (tmp_path / "trials/0001").rename(tmp_path / "elsewhere")
    (tmp_path / "trials/0001").symlink_to(elsewhere)
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=5, top=1)
    recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
    assert {"best.pt", "last.pt", "encoder"} < {path.name for path in elsewhere.iterdir()}


def test_those_that_may_run_again_are_kept(tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]) -> None:
    """More seeds made another trial the best, whose checkpoint was gone, and deleted that of the one before."""
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=5, seeds=1, top=2)
    # Equal configurations run again once: the third best stands in.
    assert plan.retained(ledger) == {"0003", "0001"}
    for cell, score in zip(plan.reruns(ledger), (0.25, 0.5), strict=True):
        recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
        assert {id_ for id_, names in left(tmp_path).items() if "best.pt" in names} == {"0001", "0003"}
        note(ledger, cell, score)
    assert ranking.best_in(ledger) == "0001"
    recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
    more = plan.model_copy(update={"seeds": 2})
    for cell, score in zip(more.reruns(ledger)[2:], (0.75, 0.25), strict=True):
        note(ledger, cell, score)
    assert ranking.best_in(ledger) == "0003"
    recorder._clean_up(more, ledger, tmp_path / "trials", ledger.outcomes)
    assert {id_ for id_, names in left(tmp_path).items() if "best.pt" in names} == {"0001", "0003"}
    for id_, score in (("0006", 0.8), ("0007", 0.9)):  # more trials, better ones, that are still to run again
        note(ledger, id_, score, params={"lr": score})
    assert more.retained(ledger) == {"0003", "0006", "0007"}


def test_of_several_objectives_no_trial_is_the_loser(tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]) -> None:
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=5, objectives=("precision", "recall"))
    recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
    assert all({"best.pt", "encoder"} <= names for names in left(tmp_path).values())


def test_a_study_keeps_what_scores_each_cell_and_failed_ones_whole(
    tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]
) -> None:
    plan = StudyPlan(name="study", layers=layers, arms={"a": {}}, baseline="a", seeds=(1,))
    recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
    scored = {"best.pt", "config.yaml", "encoder", "test"}
    whole = scored | {"last.pt", "before.pt"}
    assert left(tmp_path) == {"0001": scored, "0002": whole, "0003": scored, "0004": scored, "0005": whole}


def test_a_sweep_keeps_the_weights_of_those_that_may_be_its_best(layers: tuple[Layer, ...]) -> None:
    sweep = SweepPlan(name="sweep", layers=layers, space="a:b", trials=4)
    assert sweep.num_kept(4) == 5, "seeds may be asked for later"
    for changed, num_kept in (({"top": 1}, 2), ({"seeds": 10, "top": 2}, 3), ({"seeds": 1, "top": 9}, 5)):
        assert sweep.model_copy(update=changed).num_kept(24) == num_kept
    assert sweep.model_copy(update={"objectives": ("precision", "recall")}).num_kept(4) == 4
