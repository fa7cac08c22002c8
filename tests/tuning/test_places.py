"""Names of runs, and where what they name lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.config.load import Layer, resolve
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.files import runs_folder
from dice_ray.run import folder as folder_of_run
from dice_ray.run import names
from dice_ray.tuning import places
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.places import Place


@pytest.mark.parametrize("name", ["../up", "a/b", "", " ", "train", "Default", "it's", "x" * 201])
def test_a_name_can_be_a_folder_and_an_experiment(name: str) -> None:
    with pytest.raises(InputError, match="a name must be letters"):
        names.check_name(name)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run trained alone, a sweep of two trials, and a study of two cells."""
    runs = tmp_path / "dice_ray_runs"
    (runs / "mine").mkdir(parents=True)
    (runs / "mine/config.yaml").touch()
    for parent, arms in (("sweep", [None, None]), ("study", ["dice", "focal"])):
        (runs / parent).mkdir()
        (runs / parent / "plan.yaml").touch()
        ledger = Ledger(runs / parent / "ledger.jsonl")
        for number, arm in enumerate(arms):
            ledger.append(TrialSpec(id=f"{parent}{number}", params={}, seed=4, arm=arm))
            ledger.append(TrialOutcome(id=f"{parent}{number}", state="done", curve=((5, 0.25 + number / 4),)))
            (runs / parent / "trials" / f"{parent}{number}").mkdir(parents=True)
            (runs / parent / "trials" / f"{parent}{number}" / "best.pt").touch()
    return runs


@pytest.mark.usefixtures("runs")
def test_a_run_is_found_by_its_name() -> None:
    root = Path("dice_ray_runs")
    assert places.place("mine") == Place(root / "mine", "train", "mine")
    assert places.place("sweep/sweep1") == Place(root / "sweep/trials/sweep1", "sweep", "sweep1")
    assert places.place("study/dice/4") == Place(root / "study/trials/study0", "study", "study0")
    assert places.place("study/study0") == places.place("study/dice/4")


@pytest.mark.parametrize(
    ("trial", "match"),
    [("sweep0", r"^sweep/sweep0 has no checkpoint .* only; the best is sweep/sweep1$"), ("sweep1", "was deleted")],
)
def test_a_checkpoint_that_was_deleted_is_told_as_such(runs: Path, trial: str, match: str) -> None:
    folder = runs / "sweep/trials" / trial
    (folder / "task.json").touch()
    assert places.place(f"sweep/{trial}").folder.samefile(folder)
    (folder / "best.pt").unlink()
    with pytest.raises(RunError, match=match):
        places.place(f"sweep/{trial}")


def test_a_run_is_found_by_its_folder_wherever_it_lies(runs: Path) -> None:
    assert places.place(str(runs / "mine")) == places.place(runs / "mine") == Place(runs / "mine", "train", "mine")
    assert places.place(str(runs / "sweep/trials/sweep0")) == Place(runs / "sweep/trials/sweep0", "sweep", "sweep0")
    (runs / "mine").rename(runs.parent / "moved")
    assert places.place("moved") == Place(Path("moved"), None, "moved")  # MLflow may know another run of that name


def test_one_process_drives_a_run_or_its_whole_sweep(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert places.place("mine").driven_folder.samefile(runs / "mine")
    assert places.place("study/dice/4").driven_folder.samefile(runs / "study")
    monkeypatch.chdir(runs / "sweep/trials/sweep1")
    monkeypatch.setenv("DICE_RAY_RUNS", str(runs))
    assert places.place(".").driven_folder.samefile(runs / "sweep")


def test_a_new_name_can_be_one_whatever_the_file_is_called() -> None:
    for stem in ("my messages-dice", "../x", "-", "x" * 250, "雨" * 83):
        assert names.check_name(names.new_name(stem))


@pytest.mark.usefixtures("runs")
def test_a_name_that_is_not_there_is_told_with_what_is_known() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no run named 'mime'; did you mean 'mine'\? Known: mine, study, sweep\."
    ):
        places.place("mime")
    for no_file in ("x" * 300, "sweep/\0", "\ud800"):
        with pytest.raises(UnknownNameError, match="There is no run"):
            places.place(no_file)
    with pytest.raises(UnknownNameError, match=r"no run of study named 'dise/4'; did you mean 'dice/4'"):
        places.place("study/dise/4")
    with pytest.raises(InputError, match=r"sweep is a sweep or study: name one of its runs, sweep/sweep1 is the best"):
        places.place("sweep")
    (Path("dice_ray_runs") / "sweep/ledger.jsonl").unlink()
    with pytest.raises(InputError, match=r"sweep is a sweep or study, and none of its runs has a score"):
        places.place("sweep")


def test_another_folder_keeps_the_runs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = runs.rename(runs.parent / "all runs")
    monkeypatch.setenv("DICE_RAY_RUNS", str(moved))
    assert places.place("mine") == Place(moved / "mine", "train", "mine")
    assert places.place("sweep/sweep1") == Place(moved / "sweep/trials/sweep1", "sweep", "sweep1")
    monkeypatch.setenv("HOME", str(moved.parent))
    monkeypatch.setenv("DICE_RAY_RUNS", "~/all runs")
    assert runs_folder() == moved


def test_with_a_url_plans_and_ledgers_stay_in_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a folder whose name is the URL."""
    monkeypatch.setenv("DICE_RAY_RUNS", "s3://bucket/runs")
    assert runs_folder() == Path("dice_ray_runs")


@pytest.mark.usefixtures("runs")
def test_a_kill_while_the_settings_are_written_leaves_those_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("dice_ray_runs/mine")
    config = resolve([Layer("preset", {"task": "sentence_pair", "data": {"source": "synthetic"}})])
    folder_of_run.store_config(config, folder)
    before = (folder / "config.yaml").read_text()

    def killed(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    other = config.model_copy(update={"training": config.training.model_copy(update={"epochs": 7.0})})
    with pytest.raises(KeyboardInterrupt):
        folder_of_run.store_config(other, folder)
    assert (folder / "config.yaml").read_text() == before
