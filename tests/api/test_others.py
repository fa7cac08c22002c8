"""Runs that other programs made, by those programs: read, compared, stored, shown again, and written back."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import optuna
import pandas as pd
import pytest

import dice_ray
from dice_ray.cli import app as command_line
from dice_ray.errors import DiceRayError, InputError, RefusedError
from dice_ray.files import runs_folder
from dice_ray.run.folder import check_config
from dice_ray.tracking.reader import of_others
from dice_ray.tuning import plan_file
from tests.analysis.test_others import table

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `dice-ray`; returns its exit status."""

    def run_in_process(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["dice-ray", *arguments])
        with pytest.raises(SystemExit) as exited:
            command_line.main()
        assert isinstance(exited.value.code, int)
        return exited.value.code

    return run_in_process


IN_A_NOTEBOOK = """
import json, sys, time
import pandas as pd
runs = pd.DataFrame([{"loss": arm, "seed": seed, "f1": 0.6 + seed / 100 + 0.01 * place * (seed % 3)}
                     for place, arm in enumerate(["a", "b", "c", "d"]) for seed in range(5)])
start = time.process_time()
import dice_ray
made = dice_ray.compare(runs, arm="loss", seed="seed", metric="f1", baseline="a")
made.verdict, made.table, made.report()._repr_html_()
seconds = time.process_time() - start
print(json.dumps([seconds, sorted({"torch", "ray", "mlflow", "transformers", "optuna"} & set(sys.modules))]))
"""


def test_a_notebook_waits_less_than_two_seconds_and_loads_no_torch(tmp_path: Path) -> None:
    """Finds an import of torch, Ray or MLflow on the way, and anything that is written without a name."""
    done = subprocess.run([sys.executable, "-c", IN_A_NOTEBOOK], capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(done.stdout)
    assert loaded == []
    assert seconds < 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "tsv", "semicolons.csv", "parquet", "jsonl"])
def test_a_file_of_any_format_gives_the_same_table(ending: str) -> None:
    """Finds another separator, an arm called None that is read as missing, and nested records."""
    runs = table({"None": 0.0, "dice": 0.03})
    file = Path(f"runs.{ending}")
    match ending:
        case "parquet":
            runs.to_parquet(file)
        case "jsonl":
            rows = ({"metrics": {"f1": row.pop("f1")}, "params": row} for row in runs.to_dict("records"))
            file.write_text("\n".join(map(json.dumps, rows)))
        case _:
            runs.to_csv(file, index=False, sep={"tsv": "\t", "semicolons.csv": ";"}.get(ending, ","))
    made, expected = (dice_ray.compare(each, metric="f1") for each in (file, runs))
    pd.testing.assert_frame_equal(made.table, expected.table)
    assert list(made.table["arm"]) == ["dice", "None"]


def test_the_command_writes_a_report_that_is_shown_again(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Finds a comparison that `report` reads from the changed file, and one that overwrites a run."""
    table().to_csv("scores.csv", index=False)
    assert run("compare", "scores.csv", "--metric", "f1") == 0
    first = capsys.readouterr().out
    Path("scores.csv").unlink()
    assert run("report", "scores-compared") == 0
    assert capsys.readouterr().out == first
    page = (runs_folder() / "scores-compared/report/report.html").read_text()
    again = "dice-ray compare scores.csv --name scores-compared --arm loss --seed seed --metric f1 --baseline ce"
    assert again in page  # what was guessed too: another row could change the guess
    assert "is not stored" not in page
    assert "to an empty folder" not in page
    assert run("runs", "scores-compared", "--csv") == 0
    assert capsys.readouterr().out.startswith("id,parent,name,kind,arm,seed,state,")
    requirements = ("better", "not-worse:1", "bettr")
    assert [run("report", "scores-compared", "--require", each) for each in requirements] == [0, 0, 2]
    (runs_folder() / "mine").mkdir()
    (runs_folder() / "mine" / "config.yaml").touch()
    table().to_csv("scores.csv", index=False)
    assert run("compare", "scores.csv", "--metric", "f1", "--name", "mine") == 2
    assert "mine holds something else" in " ".join(capsys.readouterr().err.split())
    table().to_csv("scores.csv", index=False)
    words = again.split()[1:]
    assert run(*words) == 0
    assert capsys.readouterr().out.partition("Compared are")[0] == first.partition("Compared are")[0]


def test_a_comparison_is_listed_and_hides_nothing(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    """Finds a comparison that is not listed, or that takes the name of an experiment, a study or a run."""
    table().assign(status=["FAILED", "RUNNING"] + ["FINISHED"] * 13).to_csv("scores.csv", index=False)
    command = ("compare", "scores.csv", "--metric", "f1", "--name")
    assert run(*command, "mine") == 0
    capsys.readouterr()
    assert run("runs") == 0  # without a store
    (listed,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("mine"))
    assert re.split(r"  +", listed)[1:3] == ["comparison", "13 finished, 1 failed, 1 running"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert (run("runs", "--json"), run(*command, "first")) == (0, 2)
    shown = capsys.readouterr()
    assert [each["name"] for each in json.loads(shown.out)] == ["first", "mine"]
    assert "MLflow has an experiment first" in " ".join(shown.err.split())
    refused: Any = None
    for check in (check_config, plan_file.extended):
        with pytest.raises(RefusedError, match="mine holds a comparison"):
            check(refused, runs_folder() / "mine")


def test_what_cannot_be_shown_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a folder of a comparison whose report fails each time."""
    monkeypatch.setattr("analysis.report.report", lambda findings: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        dice_ray.compare(table(), metric="f1", name="mine")
    with pytest.raises(InputError, match=r"give it by --metric; of numbers: .*f1"):
        dice_ray.compare(table())
    assert not runs_folder().exists()


def test_a_file_of_windows_and_a_value_with_an_equals_sign_are_read() -> None:
    """Finds a mark before the first line that becomes part of it, and a choice that is cut at the wrong sign."""
    Path("runs.jsonl").write_text(table(note="a=b").to_json(orient="records", lines=True), encoding="utf-8-sig")
    assert dice_ray.compare("runs.jsonl", metric="f1", arm="loss", where=["note=a=b"]).verdict.startswith("Better")


def test_rows_of_which_the_lines_are_not_known_are_counted() -> None:
    """Finds the line of another row in a message, where Python does not read what pandas does."""
    table(note="x" * 200).head(4).assign(f1=["0.5", "0.5", "high", "0.5"]).to_csv("long.csv", index=False)
    limit = csv.field_size_limit(100)
    try:
        with pytest.raises(InputError, match="got 'high' in row 3"):
            dice_ray.compare("long.csv", metric="f1", arm="loss", seed="seed")
    finally:
        csv.field_size_limit(limit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv"], "there is no file none.csv"),
        (["."], ". is a folder"),
        (["text.csv"], "must be a number, got 'high' in line 5"),
        (["text.parquet"], "must be a number, got 'high' in row 2"),
        (["text.jsonl"], "must be a number, got 'high' in line 3"),
        (["broken.jsonl"], "broken.jsonl must be a table with a row for each run: line 2 is not JSON"),
        (["broken.parquet"], "broken.parquet must be a table with a row for each run"),
        (["scores.csv", "--where", "loss"], "where must be COLUMN=VALUE, got 'loss'"),
        (["scores.csv", "--write-back"], "write_back must have an MLflow experiment"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Finds a traceback, and a folder that a refused comparison leaves."""
    table().to_csv("scores.csv", index=False)
    wrong = table().assign(f1=["0.5", *["high"] * 14], note="two\nlines")
    Path("text.csv").write_text(wrong.to_csv(index=False).replace('lines"\n', 'lines"\n\n', 1))
    wrong.to_parquet("text.parquet")
    Path("text.jsonl").write_text("\n\n".join(wrong.to_json(orient="records", lines=True).split("\n")))
    Path("broken.jsonl").write_text('{"f1": 1}\n{"f1": 1')
    Path("broken.parquet").write_text("x")
    assert run("compare", *arguments, "--metric", "f1") == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not runs_folder().exists()


def by_a_script(uri: str, experiment: str = "losses") -> None:
    """A plain script: ten runs with several values of a metric, one that fails, and one that goes on."""
    mlflow.set_tracking_uri(uri)
    id_ = mlflow.set_experiment(experiment).experiment_id
    for row in table({"ce": 0.0, "dice": 0.03}).to_dict("records"):
        with mlflow.start_run():
            mlflow.log_params({"loss": row["loss"], "seed": row["seed"], "lr": 1e-3 if row["loss"] == "dice" else 2e-5})
            mlflow.set_tag("team", "ours")
            for step, value in enumerate((0.1, row["f1"])):
                mlflow.log_metric("test_f1", value, step=step)
    mlflow.start_run()
    mlflow.log_params({"loss": "focal", "seed": 0, "lr": 1e-3})
    mlflow.end_run("FAILED")
    mlflow.MlflowClient(uri).create_run(id_)


@pytest.fixture(params=["sqlite", "files", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store of each kind; MLflow keeps the address of the last one that was set in this process."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "0")  # `set_experiment` sets it for the whole process
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID")
    uri = (tmp_path / "mlruns").as_uri()
    if request.param == "sqlite":
        uri = request.getfixturevalue("uri")
    elif request.param == "server":
        server = request.getfixturevalue("server")
        server.start()
        uri = server.uri
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    yield str(uri)
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]  # as if it had never been set


def test_an_experiment_of_a_script_is_compared_by_name_and_id(store: str) -> None:
    """Finds the first value of a metric in place of the last, a failed run that counts, and a store not read."""
    by_a_script(store)
    experiment = mlflow.get_experiment_by_name("losses")
    assert experiment
    made = [dice_ray.compare(each, metric="test_f1") for each in ("losses", experiment.experiment_id)]
    pd.testing.assert_frame_equal(made[0].table, made[1].table)
    assert made[0].verdict.startswith("ARMS DIFFER IN lr TOO: this compares settings, not losses. Better than ce")
    means = made[0].table.set_index("arm")["mean"].round(4)
    assert (means["dice"], means["ce"]) == (0.65, 0.62)
    text = made[0].report().text()
    assert "Left out: 1 run without a value of loss or seed." in text
    assert "its status is FAILED" in text
    with pytest.raises(DiceRayError, match="did you mean 'losses'"):
        dice_ray.compare("loses", metric="test_f1")
    with pytest.raises(InputError, match="two arms or more"):
        dice_ray.compare("losses", metric="test_f1", arm="tags.team")


@pytest.mark.parametrize("store", ["sqlite", "files"], indirect=True)
def test_the_outcome_is_written_back_once(run: Run, store: str) -> None:
    """Finds a second run of the outcome, one that is compared itself, and an old verdict that stays."""
    # The artifacts of the default experiment in the copied database would lie where that was made.
    name = "Default" if store.startswith("file:") else "losses"
    by_a_script(store, name)
    experiment = mlflow.get_experiment_by_name(name)
    assert experiment
    command = ("compare", name, "--metric", "test_f1", "--write-back", "--name", "mine")
    assert [run(*command, *more) for more in (["--baseline", "dice"], [], [])] == [0, 0, 0]
    client = mlflow.MlflowClient()
    (stored,) = [each for each in client.search_runs([experiment.experiment_id]) if "dice_ray.kind" in each.data.tags]
    assert (stored.info.run_name, stored.info.status) == ("mine", "FINISHED")
    assert round(stored.data.metrics["test_f1/dice"], 4) == 0.65
    assert "Better than ce" in stored.data.tags["mlflow.note.content"]
    assert {each.path for each in client.list_artifacts(stored.info.run_id, "report")} >= {"report/report.html"}
    assert len(of_others(experiment.experiment_id)[1]) == 12


@pytest.mark.parametrize("store", ["files"], indirect=True)
def test_runs_of_rays_logger_are_compared(store: str) -> None:
    """Finds columns that are not found under the names that Ray gives them."""
    from ray.air.integrations.mlflow import MLflowLoggerCallback

    class Trial:
        def __init__(self, number: int, config: dict[str, Any]) -> None:
            self.config, self.evaluated_params, self.trial_id, self.local_path = config, config, f"{number:04d}", "."

        def __str__(self) -> str:
            return f"trial_{self.trial_id}"

    logger = MLflowLoggerCallback(store, experiment_name="ray")
    logger.setup()
    for number, row in enumerate(table({"ce": 0.0, "dice": 0.03}).to_dict("records")):
        trial: Any = Trial(number, {"model": {"loss": row["loss"]}, "seed": row["seed"], "lr": 0.1})
        logger.log_trial_start(trial)
        logger.log_trial_result(1, trial, {"f1": row["f1"], "training_iteration": 1})
        logger.log_trial_end(trial)
    assert dice_ray.compare("ray", metric="f1").verdict.startswith("Better than ce on this test set: dice +3.00")


@pytest.mark.parametrize("store", ["server"], indirect=True)
def test_runs_of_optunas_callback_are_compared(store: str) -> None:
    """Finds a pruned trial, which MLflow calls FINISHED, that counts, and the direction of the study passed over."""
    integration = pytest.importorskip("optuna_integration")
    with pytest.warns(FutureWarning, match="deprecated"):
        callback = integration.MLflowCallback(store)
    study = optuna.create_study(study_name="by_the_callback", direction="minimize")
    study.optimize(_objective(study), 12, callbacks=[callback], catch=(ValueError,))
    _check_optuna("by_the_callback")


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_runs_of_mlflows_storage_for_optuna_are_compared(store: str) -> None:
    """Finds the run of the study, which holds its direction, that counts as one."""
    from mlflow.optuna.storage import MlflowStorage

    storage = MlflowStorage(experiment_id=mlflow.MlflowClient(store).create_experiment("in_the_storage"))
    study = optuna.create_study(study_name="of_mlflow", direction="minimize", storage=storage)
    study.optimize(_objective(study), 12, catch=(ValueError,))
    storage.flush_all_batches()
    _check_optuna("in_the_storage")


def _objective(study: optuna.Study) -> Callable[[optuna.Trial], float]:
    """The objective of twelve trials: ten of a grid, one that is pruned, and one that fails."""
    costs = table({"ce": 0.0, "dice": -0.03}).to_dict("records")
    for row in (*costs, *costs[:2]):
        study.enqueue_trial({"loss": row["loss"], "seed": row["seed"]})

    def objective(trial: optuna.Trial) -> float:
        loss, seed = trial.suggest_categorical("loss", ["ce", "dice"]), trial.suggest_int("seed", 0, 4)
        if trial.number == 10:
            trial.report(9.0, 1)
            raise optuna.TrialPruned
        if trial.number == 11:
            raise ValueError("it fails")
        return float(next(row["f1"] for row in costs if (row["loss"], row["seed"]) == (loss, seed)))

    return objective


def _check_optuna(experiment: str) -> None:
    made = dice_ray.compare(experiment, metric="value")
    assert made.verdict.startswith("Better than ce on this test set: dice lower by 0.03")
    assert made.table.set_index("arm")["mean"].round(4).to_dict() == {"ce": 0.62, "dice": 0.59}
    text = made.report().text()
    assert "Which value is better is that of the Optuna study: minimize." in text
    assert "its status is PRUNED" in text or "its status is KILLED" in text


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_runs_of_the_trainer_are_compared(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds settings of the Trainer, of which it logs a hundred, that are named though they are the same."""
    import torch
    from transformers import Trainer, TrainingArguments

    class Line(torch.nn.Linear):
        def forward(self, x: Any, labels: Any) -> Any:  # type: ignore[override]
            logits = super().forward(x)
            return {"loss": ((logits[:, 0] - labels) ** 2).mean(), "logits": logits}

    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "trainer")
    mlflow.set_tracking_uri(store)
    rows: Any = [{"x": torch.tensor([number / 8]), "labels": number / 4} for number in range(8)]
    for optimizer in ("sgd", "adamw_torch"):
        for seed in range(5):
            written = {"report_to": "mlflow", "save_strategy": "no", "use_cpu": True, "eval_strategy": "epoch"}
            arguments = TrainingArguments(f"out/{optimizer}-{seed}", optim=optimizer, seed=seed, **written)
            torch.manual_seed(seed)
            trainer = Trainer(Line(1, 1), arguments, train_dataset=rows, eval_dataset=rows)
            trainer.train()
            mlflow.end_run()
    text = dice_ray.compare("trainer", metric="eval_loss", arm="optim").report().text()
    assert "eval_loss (lower is better)" in text
    assert "paired by seed (guessed" in text
    assert "ARMS DIFFER" not in text
