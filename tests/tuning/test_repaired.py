"""A damaged ledger that was repaired as the error says: what is missing is run again, and MLflow has what it has."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dice_ray.config.load import Layer
from dice_ray.errors import RunError
from dice_ray.run.build import prepare
from dice_ray.run.driver import Driver
from dice_ray.tracking import schema
from dice_ray.tracking.reader import curves, read
from dice_ray.tracking.store import quiet_client, store_uri
from dice_ray.tuning import runner
from dice_ray.tuning.cells import Asked
from dice_ray.tuning.ledger import History, Ledger, TrialSpec
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan

SPACE = f"{Path(__file__).with_name('spaces.py')}:rate"
ARMS = {"ce": {"loss": "cross_entropy"}, "focal": {"loss": "focal"}}


def known(*ids: str) -> History:
    return History({id_: TrialSpec(id=id_, params={}, seed=0) for id_ in ids})


def test_runs_that_are_not_of_the_folder(layers: tuple[Layer, ...]) -> None:
    """Finds a study that takes the runs of another folder for its own, and a sweep that gives their ids away again."""
    study = StudyPlan(name="study", layers=layers, arms=ARMS, baseline="ce", seeds=(1,))
    first, second = (cell.id for cell in study.grid().cells)
    part = study.model_copy(update={"asked": Asked(arms=("ce",), seeds=(1,))})
    stored = {"study", first, second}
    assert study.strangers({"study"}, known()) == study.strangers(stored, known(first, second)) == set()
    assert study.strangers(stored, known()) == {first, second}, "a new folder under the name of another one"
    assert study.strangers(stored, known(first)) == part.strangers(stored, known(first)) == set()
    assert study.strangers({*stored, "of another study"}, known(first)) == {"of another study"}
    search = SweepPlan(name="sweep", layers=layers, space=SPACE, trials=4)
    assert search.strangers({"sweep", "0001", "0002"}, known("0001", "0003")) == {"0002"}


def rewritten(file: Path, line: Callable[[str], str]) -> None:
    file.write_text("".join(map(line, file.read_text().splitlines(keepends=True))))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_a_sweep_goes_on_after_each_repair(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    plan = SweepPlan(name="sweep", layers=layers, space=SPACE, trials=2, scheduler="none")
    folder = tmp_path / "sweep"
    file = folder / "ledger.jsonl"
    runner.run(plan, folder, Driver(num_cpus=1))
    whole = Ledger(file)

    rewritten(file, lambda line: line.replace('"end"', '"and"') if '"0001"' in line else line)
    with pytest.raises(RunError, match="delete this line if it is the end of a trial"):
        runner.run(plan, folder, Driver(num_cpus=1))
    rewritten(file, lambda line: "" if '"and"' in line else line)
    assert runner.run(plan, folder, Driver(num_cpus=1)).is_finished
    assert Ledger(file).specs == whole.specs
    assert Ledger(file).outcomes["0001"].curve == whole.outcomes["0001"].curve

    rewritten(file, lambda line: "" if '"0001"' in line else line)
    with pytest.raises(RunError, match=r"\(0001\): choose another name, or give") as error:
        runner.run(plan, folder, Driver(num_cpus=1))
    assert f"delete them in MLflow and their folders in {folder / 'trials'}" in str(error.value)
    shutil.rmtree(folder / "trials" / "0001")
    client = quiet_client(store_uri())
    found = client.get_experiment_by_name("sweep")
    assert found is not None
    (run,) = client.search_runs([found.experiment_id], f"tags.`{schema.ID}` = '0001'")
    client.delete_run(run.info.run_id)
    assert runner.run(plan, folder, Driver(num_cpus=1)).is_finished
    rates = {id_: spec.params["training.lr"] for id_, spec in Ledger(file).specs.items()}
    rows = read("sweep").set_index("id")
    assert rows["params.training.lr"].drop("sweep").to_dict() == pytest.approx(rates)
    assert set(rows["status"]) == {"FINISHED"}


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_a_cell_that_was_deleted_from_the_ledger_is_run_again(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    plan = StudyPlan(name="study", layers=layers, arms=ARMS, baseline="ce", seeds=(1,))
    plan = plan.bound_to({None: prepare(plan.base()).splits.digest})
    file = tmp_path / "study" / "ledger.jsonl"
    runner.run(plan, tmp_path / "study", Driver(num_cpus=1))
    whole, points = Ledger(file), curves("study")
    deleted = plan.grid().cells[0].id
    rewritten(file, lambda line: "" if deleted in line else line)
    assert runner.run(plan, tmp_path / "study", Driver(num_cpus=1)).is_finished
    assert Ledger(file).outcomes[deleted].curve == whole.outcomes[deleted].curve
    assert set(read("study")["status"]) == {"FINISHED"}
    assert len(curves("study")) == len(points)
