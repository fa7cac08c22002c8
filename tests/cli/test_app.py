"""The command line as a user meets it: what it prints, how it exits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dice_ray.api import Result
from dice_ray.cli.printing import print_end
from dice_ray.tracking import schema
from dice_ray.tracking.writer import Writer

DICE_RAY = str(Path(sys.executable).with_name("dice-ray"))


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DICE_RAY, *arguments], env=os.environ | environment, capture_output=True, text=True, check=False
    )


def test_a_mistake_is_told_without_a_traceback_and_exits_with_2() -> None:
    result = run("validate", "synthetic_pairs", "--set", "loss=dic", "--set", "training.lr=0")
    assert result.returncode == 2
    assert result.stderr.startswith("dice-ray: The configuration has 2 problems:\n  loss: must name one of")
    assert "did you mean loss.dice?" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_debug_shows_the_traceback_wherever_it_stands() -> None:
    for arguments in (["--debug", "validate", "nothing"], ["validate", "nothing", "--debug"]):
        result = run(*arguments)
        assert result.returncode == 1
        assert "Traceback" in result.stderr
        assert "UnknownNameError: There is no preset named 'nothing'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["validate", "mrcp"], "did you mean 'mrpc'?"),
        (["validate", "mine.yaml"], "an existing file, got mine.yaml in"),
        (["tune", "synthetic_pairs", "--space", "loss_tunning"], "did you mean 'loss_tuning'?"),
        (["tune", "synthetic_pairs", "--space", "loss_tuning:focl"], "did you mean 'focal'?"),
        (["tune", "--resume", "nothing"], "must hold the plan of a sweep or study"),
        (["ablate", "loss_comparisn"], "did you mean 'loss_comparison'?"),
        (["report", "nothing"], "nothing has been tracked in it yet"),
        (["train", "synthetic_pairs", "--set", "model.encoder=no/such-encoder"], "model.encoder must be `tiny`"),
        (["train", "mrpc"], "the variable DICE_RAY_DATA must be set"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_name_that_is_not_there_is_told_with_what_is_known(
    arguments: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DICE_RAY_DATA", raising=False)
    result = run(*arguments)
    assert result.returncode in (1, 2)
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_usage_is_checked() -> None:
    assert "either a preset, or --resume" in run("tune").stderr
    assert "leave out" in run("tune", "--resume", "x", "--seed", "4").stderr
    assert run("tune", "synthetic_pairs", "--trials", "0").returncode == 2


def test_what_is_listed_is_what_can_be_named() -> None:
    names = json.loads(run("list", "--json").stdout)
    assert {"synthetic_pairs", "mrpc"} <= set(names["presets"])
    assert "loss_tuning" in names["spaces"]
    assert "loss_comparison" in names["studies"]
    assert {"cross_entropy", "self_adjusting_dice"} <= set(names["losses"])
    assert run("list").stdout.split()[:2] == ["presets", min(names["presets"])]


def test_the_losses_are_listed_and_drawn() -> None:
    result = run("losses", "--plot", "derivatives.png")
    assert Path("derivatives.png").read_bytes().startswith(b"\x89PNG")
    names = json.loads(run("list", "--json").stdout)["losses"]
    assert [line for line in result.stdout.splitlines() if line and not line.startswith((" ", "Drawn"))] == names
    assert [row["name"] for row in json.loads(run("losses", "--json").stdout)] == names


def test_what_validate_prints_is_a_preset() -> None:
    first = run("validate", "synthetic_pairs", "--set", "loss.focal.gamma=3")
    Path("mine.yaml").write_text(first.stdout)
    assert run("validate", "mine.yaml").stdout == first.stdout
    as_json = run("validate", "mine.yaml", "--json").stdout
    assert as_json.count("\n") == 1
    assert json.loads(as_json) == yaml.safe_load(first.stdout)


def test_train_shows_its_evaluations_and_the_next_command() -> None:
    quick = ["--set", "data.source.synthetic.size=100", "--set", "training.epochs=2", "--name", "mine"]
    result = run("train", "synthetic_pairs", *quick)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "data: 100 train, 50 dev, 50 test records"
    assert [line.split()[:4] for line in lines[1:3]] == [["epoch", "0.96", "step", "3"], ["epoch", "1.92", "step", "6"]]
    assert "mine: in dice_ray_runs/mine, and in MLflow; what others said is in dice_ray_runs/mine/log.txt" in lines
    assert lines[lines.index("Next:") :] == [
        "Next:",
        "  dice-ray evaluate mine test",
        "  dice-ray predict mine FILE",
        "  dice-ray report train",
    ]
    scores = [float(line.partition("dev/f1 ")[2].split()[0]) for line in lines[1:3]]
    assert f"mine: best dev/f1 {max(scores):.4f}" in lines
    assert {path.name for path in Path("dice_ray_runs/mine").iterdir()} == {
        "best.pt",
        "config.yaml",
        "encoder",
        "last.pt",
        "lock",
        "log.txt",
        "task.json",
    }
    assert "mine" in run("report", "train").stdout


def test_data_sets_are_inspected_and_written() -> None:
    result = run("inspect", "synthetic_pairs", "synthetic_tagging", "--out", "here")
    assert result.returncode == 0, result.stderr
    assert ["synthetic_pairs", "sentence_pair", "1,800", "200", "9"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    assert {"imbalance.csv", "splits.csv", "labels.csv", "imbalance.png"} <= {
        path.name for path in Path("here").iterdir()
    }
    (found,) = json.loads(run("inspect", "synthetic_pairs", "--json").stdout)
    assert found["splits"]["train"]["ratio"] == 9
    assert not Path("dice_ray_runs").exists()


def test_a_dry_run_prints_the_plan_and_leaves_nothing() -> None:
    settings = ("--set", "data.source.synthetic.size=100", "--set", "training.precision=fp32")
    result = run("train", "synthetic_pairs", *settings, "--name", "mine", "--dry-run")
    assert result.stdout.startswith(run("validate", "synthetic_pairs", *settings).stdout)
    facts = {line[:11].strip(): line[12:] for line in result.stdout.splitlines() if line[11:12] == " "}
    assert {"data", "model", "steps", "time", "memory", "results in"} <= facts.keys()
    assert facts["results in"] == "dice_ray_runs/mine, and in MLflow's experiment train"
    assert list(Path.cwd().iterdir()) == []


def test_a_trained_run_predicts_and_is_scored() -> None:
    assert run("train", "synthetic_pairs", "--set", "data.source.synthetic.size=100", "--name", "mine").returncode == 0
    Path("new.tsv").write_text("sentence1\tsentence2\na\tb\n")
    printed = run("predict", "mine", "new.tsv")
    assert printed.stdout.startswith("id\tlabel\tprobability_0")
    assert run("predict", "mine", "new.tsv", "--out", "found.tsv").stdout == "Written: found.tsv\n"
    assert Path("found.tsv").read_text() == printed.stdout
    scored = run("evaluate", "mine", "dev", "--items", "items.csv")
    assert scored.stdout.startswith("mine on dev, 50 records:\n  f1 ")
    assert "  f1_tuned " in scored.stdout
    assert Path("items.csv").read_text().startswith("id,tp,fp,fn,tuned_tp,tuned_fp,tuned_fn\n")
    exported = run("export", "mine", "plain")
    assert exported.stdout.startswith("Written: plain, to be loaded by AutoModel.from_pretrained\nNo stock class")
    assert {"config.json", "model.safetensors", "tokenizer.json", "heads.safetensors", "task.json"} <= {
        path.name for path in Path("plain").iterdir()
    }
    assert "must be new or empty, got plain" in run("export", "mine", "plain").stderr
    assert "did you mean 'mine'?" in run("evaluate", "mime").stderr


def test_results_and_listings_are_one_json_document() -> None:
    quick = ("--set", "data.source.synthetic.size=100", "--name", "mine", "--json")
    trained = json.loads(run("train", "synthetic_pairs", *quick).stdout)
    assert trained["name"] == "mine"
    assert trained["best"]["metric"] == "dev/f1"
    assert trained["waiting"] is None
    assert Path(trained["log"]).is_file()
    Path("new.tsv").write_text("sentence1\tsentence2\na\tb\nc\td\n")
    predicted = json.loads(run("predict", "mine", "new.tsv", "--json").stdout)
    header, *rows = (line.split("\t") for line in run("predict", "mine", "new.tsv").stdout.splitlines())
    assert [list(row) for row in predicted["predictions"]] == [header, header]
    assert [row["label"] for row in predicted["predictions"]] == [row[1] for row in rows]
    assert [f"{row['probability_1']:.6f}" for row in predicted["predictions"]] == [row[3] for row in rows]
    assert (
        json.loads(run("predict", "mine", "new.tsv", "--out", "found.tsv", "--json").stdout)["written"] == "found.tsv"
    )
    assert Path("found.tsv").read_text().splitlines()[0].split("\t") == header
    exported = json.loads(run("export", "mine", "plain", "--json").stdout)
    assert exported == {"run": "mine", "written": "plain", "loaded_by": "AutoModel"}
    scored = json.loads(run("evaluate", "mine", "dev", "--json").stdout)
    assert (scored["records"], scored["metrics"]["f1"]) == (50, pytest.approx(trained["best"]["score"]))
    assert scored["not_stored"] is None
    (experiment,) = json.loads(run("runs", "--json").stdout)
    assert (experiment["name"], experiment["runs"]) == ("train", {"FINISHED": 1})
    (row,) = json.loads(run("runs", "train", "--json").stdout)
    assert (row["run"], row["score"]) == ("mine", pytest.approx(trained["best"]["score"]))
    report = json.loads(run("report", "train", "--json").stdout)
    assert report["tables"][0]["rows"]
    assert report["written"] == []
    lines = run("runs", "train").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["run", "mine"]
    assert "did you mean 'train'?" in run("runs", "trian").stderr


@pytest.mark.parametrize("command", [("tune", "synthetic_pairs"), ("ablate", "mining")], ids=lambda given: given[0])
def test_a_price_is_of_a_dry_run(command: tuple[str, ...]) -> None:
    refused = run(*command, "--price-per-hour", "4")
    assert (refused.returncode, "--price-per-hour needs --dry-run" in refused.stderr) == (2, True)
    assert not Path("dice_ray_runs").exists()


@pytest.mark.ray
def test_a_sweep_says_in_json_what_did_best() -> None:
    quick = ("--set", "data.source.synthetic.size=100", "--trials", "1", "--name", "sw", "--json")
    swept = json.loads(run("tune", "synthetic_pairs", *quick).stdout)
    (row,) = json.loads(run("runs", "sw", "--json").stdout)
    assert swept["is_finished"]
    assert swept["best"]["name"] == row["run"]
    assert (swept["best"]["metric"], swept["best"]["score"]) == ("dev/f1", pytest.approx(row["score"]))
    assert swept["best"]["settings"]["loss"]
    preset = json.loads(run("export-preset", "sw", "--json").stdout)
    assert preset == {"sweep": "sw", "preset": run("export-preset", "sw").stdout}
    assert json.loads(run("export-preset", "sw", "best.yaml", "--json").stdout) == {
        "sweep": "sw",
        "written": "best.yaml",
    }
    assert Path("best.yaml").read_text() == preset["preset"]


@pytest.mark.parametrize("holds", ["nothing", "another"])
def test_a_result_that_mlflow_does_not_hold_is_json_all_the_same(
    holds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if holds == "another":
        with Writer("another") as writer:
            writer.open("a", name="a", params={}, tags={schema.KIND: "sweep"})
    print_end(Result("sw", "sw"), [], as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["best"]) == ("sw", None)
