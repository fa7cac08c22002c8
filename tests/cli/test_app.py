"""The command line as a user meets it: its output, its exit statuses, and what it asks of the api.

Most tests run a command in this process, where torch, transformers and mlflow are imported once. A process of its own
is started where that is the point: for the streams of a real terminal, exit statuses and Ctrl-C.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
import yaml
from huggingface_hub import constants

from dice_ray import api
from dice_ray.api import Result
from dice_ray.cli import app as command_line
from dice_ray.cli.printing import print_result
from dice_ray.cli.results import _print_experiments, _print_runs
from dice_ray.run.signals import interrupt
from dice_ray.tracking import schema
from dice_ray.tracking.reader import read
from dice_ray.tracking.writer import Writer
from dice_ray.tuning.overview import ComparedRun, Experiment
from tests.models.hub_server import logged_in
from tests.standing import standing

DICE_RAY = str(Path(sys.executable).with_name("dice-ray"))
QUICK = ("--set", "data.source.synthetic.size=100", "--set", "training.epochs=2")


class Output(NamedTuple):
    """What a command printed, and its exit status."""

    stdout: str
    stderr: str
    status: int

    @property
    def error(self) -> str:
        """The error on one line."""
        return " ".join(self.stderr.split())

    @property
    def json(self) -> Any:
        """The JSON document that is all of stdout."""
        assert self.status == 0, self.stderr
        assert self.stdout.count("\n") == 1
        return json.loads(self.stdout)


Run = Callable[..., Output]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `dice-ray` with these arguments in this process; an error that is not the user's is raised."""

    def run_in_process(*arguments: str) -> Output:
        monkeypatch.setattr("sys.argv", ["dice-ray", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as exited:
            command_line.main()
        assert isinstance(exited.value.code, int)
        return Output(*capfd.readouterr(), exited.value.code)

    return run_in_process


@dataclass(frozen=True)
class Trained:
    """The run `mine`, trained in `folder`."""

    folder: Path
    stdout: str


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("trained")
    with standing(folder), pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr("sys.argv", ["dice-ray", "train", "synthetic_pairs", *QUICK, "--name", "mine"])
        with pytest.raises(SystemExit, match=r"^0$"):
            command_line.main()
    return Trained(folder, printed.getvalue())


@pytest.fixture
def trained_here(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> Trained:
    """The trained run, in the working directory."""
    monkeypatch.chdir(trained.folder)
    return trained


# Processes of their own


def test_an_error_of_the_user_exits_with_2_and_prints_no_traceback() -> None:
    command = [DICE_RAY, "validate", "synthetic_pairs", "--set", "loss=dic", "--set", "training.lr=0"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("dice-ray: The configuration has 2 problems:\n  loss: must be one of the")
    assert "did you mean loss.dice?" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.usefixtures("trained_here")
def test_an_export_is_pushed_to_the_hub_as_it_is_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else finds a pushed model that differs from the exported one, or a card that names a local folder."""
    with logged_in(monkeypatch, tmp_path) as hub:
        hub.keeps_large_files = True
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        result = run("export", "mine", "pushed", "--push", "me/mine", "--public")
        refused = run("export", "mine", "refused", "--push", "others/mine")
    assert result.stdout == (
        "Written: pushed; load it with AutoModelForSequenceClassification.from_pretrained\n"
        'Pushed: me/mine; load it with AutoModelForSequenceClassification.from_pretrained("me/mine")\n'
        "The exported model gives the same logits as the run, up to the length that its README.md names.\n"
    ), result.stderr
    assert hub.files == {("me/mine", file.name): file.read_bytes() for file in Path("pushed").iterdir()}
    assert hub.repositories == {"me/mine": "public"}
    assert 'model="me/mine"' in Path("pushed/README.md").read_text()
    assert (refused.status, refused.stderr.startswith("dice-ray: the Hugging Face hub refused")) == (1, True)
    assert not Path("refused").exists()
    assert "an export needs a folder, or a repository to push to" in run("export", "mine").error
    assert "can be made public: name it" in run("export", "mine", "new", "--public").error
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in run("export", "mine", "--push", "me/mine").error


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version") == (f"dice-ray {version('dice-ray')}\n", "", 0)


def test_train_prints_its_evaluations_and_the_next_commands(trained_here: Trained, run: Run) -> None:
    lines = trained_here.stdout.splitlines()
    assert lines[0].startswith(
        "Warning: too few items of the rarest class: dev has 5 of '1' and test has 5 of '1', and"
    )
    assert "data: 100 train, 50 dev, 50 test records" in lines
    evaluations = [line.split() for line in lines if line.startswith("epoch")]
    assert [words[:4] for words in evaluations] == [["epoch", "0.96", "step", "3"], ["epoch", "1.92", "step", "6"]]
    log = "dice_ray_runs/mine/log.txt"
    assert f"mine: results in dice_ray_runs/mine and in MLflow; third-party output: {log}" in lines
    assert lines[lines.index("Next:") :] == [
        "Next:",
        "  dice-ray evaluate mine test",
        "  dice-ray predict mine FILE",
        "  dice-ray report train",
    ]
    scores = [float(words[words.index("dev/f1") + 1]) for words in evaluations]
    assert any(line.startswith(f"Best: mine has dev/f1 {max(scores):.4f}.") for line in lines)
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


HEAR_SIGHUP = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)
"""Run in a process before its command, which would ignore SIGHUP where the tests run below `nohup`."""


def interrupted(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    """Interrupt a command, which must end soon and in order: its exit status, and the command that continues it."""
    began = time.monotonic()
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert time.monotonic() - began < (15 if number == signal.SIGTERM else 60)
    assert "Traceback" not in errors
    *_, heading, command = output.splitlines()
    assert heading == "Interrupted. To continue:"
    return process.returncode, command.strip()


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        *(pytest.param(number, 128 + number, marks=pytest.mark.slow) for number in (signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_a_signal_ends_a_run_at_a_checkpoint_and_names_the_command_that_resumes_it(
    tmp_path: Path, number: int, status: int
) -> None:
    """All steps since the last evaluation were lost, and nothing was said."""
    long = ("data.source.synthetic.size=100", "training.epochs=500", "training.evaluations=20")
    settings = [argument for setting in long for argument in ("--set", setting)]
    with subprocess.Popen(
        [DICE_RAY, "train", "synthetic_pairs", *settings, "--name", "mine"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=HEAR_SIGHUP,
    ) as process:
        assert process.stdout is not None
        while not (line := process.stdout.readline()).startswith("epoch"):
            assert line, "it ended before its first evaluation"
        evaluated = int(re.findall(r"step (\d+)", line)[0])
        assert interrupted(process, number) == (status, "dice-ray resume mine")
    assert torch.load(tmp_path / "dice_ray_runs/mine/last.pt")["step"] > evaluated
    assert read("train")["status"].tolist() == ["KILLED"]


@pytest.mark.slow
def test_a_terminal_that_is_gone_changes_no_exit_status(tmp_path: Path) -> None:
    """The status was 1, and what waits for this command took the run for a failed one."""
    settings = ("--set", "data.source.synthetic.size=100", "--set", "training.epochs=500", "--name", "mine")
    master, terminal = os.openpty()
    with subprocess.Popen(
        [DICE_RAY, "train", "synthetic_pairs", *settings], stdout=terminal, stderr=terminal, preexec_fn=HEAR_SIGHUP
    ) as process:
        os.close(terminal)
        output = b""
        while b"dev/f1" not in output:
            output += os.read(master, 1000)
        os.close(master)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 129
    assert (tmp_path / "dice_ray_runs/mine/last.pt").exists()


@pytest.mark.ray
@pytest.mark.parametrize(
    ("number", "file", "status"), [(signal.SIGINT, "plan.yaml", 130), (signal.SIGTERM, "ledger.jsonl", 143)]
)
def test_a_signal_ends_a_sweep_from_its_start_on_and_names_the_command_that_resumes_it(
    tmp_path: Path, number: int, file: str, status: int
) -> None:
    """The first Ctrl-C of a sweep said nothing while Ray started, and SIGTERM ended it with 15."""
    settings = ("--set", "data.source.synthetic.size=100", "--set", "training.epochs=500", "--name", "sw")
    with subprocess.Popen(
        [DICE_RAY, "tune", "synthetic_pairs", *settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (tmp_path / "dice_ray_runs/sw" / file).exists():
            assert process.poll() is None
            time.sleep(0.1)
        assert interrupted(process, number) == (status, "dice-ray resume sw")
    if file == "ledger.jsonl":
        assert set(read("sw")["status"]) == {"KILLED"}


# Errors


def test_debug_shows_the_traceback_wherever_it_stands(run: Run) -> None:
    for arguments in (["--debug", "validate", "nothing"], ["validate", "nothing", "--debug"]):
        with pytest.raises(LookupError, match="There is no preset named 'nothing'"):
            run(*arguments)
    assert run("validate", "nothing").status == 2


def test_an_error_in_code_of_the_user_is_its_line(run: Run) -> None:
    """It was a traceback of 90 lines, of which most were of the training."""
    Path("mine.py").write_text("def loss(logits, targets):\n    return logits.sum(1) + logits.new_zeros(7)\n")
    own = ("--set", "loss.custom.target=mine.py:loss", "--set", "loss.custom.form=function")
    result = run("train", "synthetic_pairs", *QUICK, *own)
    message = f"dice-ray: {Path('mine.py').absolute()}, line 2, raised RuntimeError: The size of tensor a"
    assert result.status == 1
    assert message in " ".join(result.error.split())
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        run("--debug", "train", "synthetic_pairs", *QUICK, *own, "--name", "again")


def test_verbose_may_stand_anywhere(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (["-v", "list"], ["list", "--verbose"]):
        monkeypatch.setenv("DICE_RAY_VERBOSE", "")
        assert run(*arguments).status == 0
        assert os.environ["DICE_RAY_VERBOSE"] == "1"


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["validate", "mrcp"], "did you mean 'mrpc'?", 2),
        (["validate", "mine.yaml"], "mine.yaml in", 2),
        (["validate", "tickets.yml"], "did you mean 'tickets.yaml'?", 2),
        (["doctor", "tickets.yam"], "did you mean 'tickets.yaml'?", 2),
        (["tune", "synthetic_pairs", "--space", "loss_tunning"], "did you mean 'loss_tuning'?", 2),
        (["tune", "synthetic_pairs", "--space", "loss_tuning:focl"], "did you mean 'focal'?", 2),
        (["resume", "nothing"], "nothing", 2),
        (["train", "loss_comparison"], "is a study, not a preset: `dice-ray ablate loss_comparison` runs it", 2),
        (["train", "loss_tuning"], "is a search space, not a preset: `dice-ray tune PRESET --space loss_tuning`", 2),
        (["ablate", "mrpc"], "is a preset, not a study: `dice-ray train mrpc` trains on it", 2),
        (["ablate", "mine.yaml"], "is a preset, not a study: `dice-ray train mine.yaml` trains on it", 2),
        (["ablate", "loss_comparisn"], "did you mean 'loss_comparison'?", 2),
        (["report", "nothing"], "nothing has been tracked in it yet", 2),
        (["train", "synthetic_pairs", "--set", "model.encoder=no/such-encoder"], "model.encoder must be `tiny`", 2),
        (["train", "mrpc"], "the variable DICE_RAY_DATA must be set", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_name_that_does_not_exist_is_an_error_with_the_known_names(
    arguments: list[str], message: str, status: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DICE_RAY_DATA", raising=False)
    Path("tickets.yaml").touch()
    result = run(*arguments)
    assert message in result.error.partition("dice-ray: ")[2]
    assert (result.status, result.stdout) == (status, "")


def test_usage_is_checked(run: Run) -> None:
    assert "--older-than needs --clear" in run("cache", "--older-than", "30d").stderr
    assert "got '30'" in run("cache", "--clear", "--older-than", "30").stderr
    assert run("tune", "synthetic_pairs", "--trials", "0").status == 2
    assert "--set training.epochs=VALUE" in " ".join(run("train", "synthetic_pairs", "--epochs", "3").stderr.split())


@pytest.mark.parametrize(
    "command",
    [("tune", "synthetic_pairs"), ("ablate", "mining"), ("resume", "x")],
    ids=" ".join,
)
def test_a_price_needs_a_dry_run(command: tuple[str, ...], run: Run) -> None:
    result = run(*command, "--price-per-hour", "4")
    assert (result.status, "--price-per-hour needs --dry-run" in result.stderr) == (2, True)
    assert not Path("dice_ray_runs").exists()


# What the commands ask of the api


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of each call of `api.train`, `api.tune` and `api.resume`, which do nothing else."""
    noted: list[dict[str, Any]] = []

    def note(**given: Any) -> Result:
        noted.append(given)
        name = given.get("name") or given["preset"]
        return Result(name, name, is_finished=False)

    monkeypatch.setattr(api, "train", note)
    monkeypatch.setattr(api, "tune", note)
    monkeypatch.setattr(api, "resume", note)
    return noted


def test_ctrl_c_outside_of_a_command_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the options are read, modules are loaded, or a command ends, nothing else catches it."""

    def interrupted(args: list[str]) -> None:
        assert signal.getsignal(signal.SIGINT) is interrupt
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(command_line, "app", interrupted)
    with pytest.raises(SystemExit, match=r"^130$"):
        command_line.main()


@pytest.mark.parametrize(("status", "is_at_once"), [(143, True), (129, True), (130, False)])
def test_a_machine_that_is_taken_away_does_not_wait_for_python(
    status: int, is_at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python frees all modules as it exits, which takes seconds."""
    ended: list[int] = []

    def interrupted(args: list[str]) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(command_line, "app", interrupted)
    monkeypatch.setattr(os, "_exit", ended.append)
    with pytest.raises(SystemExit):
        command_line.main()
    assert ended == [status] * is_at_once


def test_a_command_that_has_ended_does_not_go_through_all_objects_again() -> None:
    """Finds a driver that was refused, and on a busy machine lives for a minute after its message."""
    program = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count())); from dice_ray.cli.app import *"
    ended = subprocess.run(
        [sys.executable, "-c", f"{program}; main()", "resume", "none"], stdout=subprocess.PIPE, check=False
    )
    assert ended.returncode == 2
    assert int(ended.stdout) > 1000


def test_resume_passes_what_was_given_and_an_interruption_exits_with_130(run: Run, calls: list[dict[str, Any]]) -> None:
    result = run("resume", "sw")
    assert result.status == 130
    assert result.stdout.endswith("Interrupted. To continue:\n  dice-ray resume sw\n")
    more = "--trials +2 --seeds 0 --top 1 --max-hours 3 --register m --address h:1 --dry-run --price-per-hour 4 --json"
    assert json.loads(run("resume", "sw", *more.split()).stdout)["is_finished"] is False
    again = run("resume", "sw", "--register", "my model", "--address", "h:1")
    assert again.stdout.endswith("\n  dice-ray resume sw --register 'my model' --address h:1\n"), "no plan stores these"
    lone = run("train", "synthetic_pairs", "--register", "m")
    assert lone.stdout.endswith("\n  dice-ray resume synthetic_pairs --register m\n")
    shown, given, *_ = calls
    assert callable(shown.pop("show"))
    assert shown == {"name": "sw", "more_trials": 0, "dry_run": False}
    assert given == {
        "name": "sw",
        "more_trials": 2,
        "seeds": 0,
        "top": 1,
        "max_hours": 3.0,
        "register": "m",
        "address": "h:1",
        "dry_run": True,
        "show": None,
    }


# Listings


def test_the_listed_names_are_those_that_can_be_given(run: Run) -> None:
    names = run("list", "--json").json
    titles = names.pop("titles")
    assert titles["mrpc"].startswith("MRPC, the original release")
    assert all(titles[name] and "\n" not in titles[name] for name in names["presets"])
    assert {"synthetic_pairs", "mrpc"} <= set(names["presets"])
    assert "loss_tuning" in names["spaces"]
    assert "loss_comparison" in names["studies"]
    assert {"cross_entropy", "self_adjusting_dice"} <= set(names["losses"])
    assert run("list").stdout.split()[:2] == ["presets", min(names["presets"])]


def test_the_losses_are_listed_and_plotted(run: Run) -> None:
    result = run("losses", "--plot", "derivatives.png")
    assert Path("derivatives.png").read_bytes().startswith(b"\x89PNG")
    names = run("list", "--json").json["losses"]
    # Below the name of their group, and above what is said of each.
    assert sorted(re.findall(r"^  (\w+)$", result.stdout, re.MULTILINE)) == sorted(names)
    assert re.findall(r"^(\w.*):$", result.stdout, re.MULTILINE)[:3] == [
        "baseline and smoothing",
        "reweighting",
        "focusing",
    ]
    assert [row["name"] for row in run("losses", "--json").json] == names


def test_a_loss_is_described_with_the_bounds_of_its_parameters(run: Run) -> None:
    for name in run("list", "--json").json["losses"]:
        described = run("losses", name)
        assert (described.status, described.stdout.splitlines()[0]) == (0, name)
    lines = [line.split() for line in run("losses", "focal").stdout.splitlines()]
    assert ["loss.focal.gamma", "2.0", "at", "least", "0"] in lines
    assert ["loss.focal.weighting.effective_number.beta", "0.999", "at", "least", "0", "and", "below", "1"] in lines
    assert "section 3.4 of the paper" in run("losses", "self_adjusting_dice").stdout
    assert "did you mean 'focal'?" in run("losses", "focl").stderr


def test_the_output_of_validate_is_a_preset(run: Run) -> None:
    first = run("validate", "synthetic_pairs", "--set", "loss.focal.gamma=3")
    Path("mine.yaml").write_text(first.stdout)
    assert run("validate", "mine.yaml").stdout == first.stdout
    assert run("validate", "mine.yaml", "--json").json == yaml.safe_load(first.stdout)


def test_data_sets_are_inspected_and_written(run: Run) -> None:
    result = run("inspect", "synthetic_pairs", "synthetic_tagging", "--out", "here")
    assert result.status == 0, result.stderr
    assert ["synthetic_pairs", "sentence_pair", "1,800", "200", "9"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    assert {"imbalance.csv", "splits.csv", "labels.csv", "imbalance.png"} <= {
        path.name for path in Path("here").iterdir()
    }
    (inspection,) = run("inspect", "synthetic_pairs", "--json").json
    assert inspection["splits"]["train"]["ratio"] == 9
    assert not Path("dice_ray_runs").exists()


def test_the_page_of_a_report_is_opened(trained_here: Trained, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("browser").write_text('#!/bin/sh\nprintf %s "$1" > opened')
    Path("browser").chmod(0o700)
    no_browser = "This machine has no browser to open the page with"
    for command, shown in ((f"{Path('browser').resolve()} %s", False), (None, True)):
        monkeypatch.setattr("webbrowser._tryorder", None)  # it is read once for each process
        monkeypatch.setattr("webbrowser._browsers", {})
        monkeypatch.setenv("BROWSER", command) if command else monkeypatch.delenv("BROWSER")
        monkeypatch.setenv("PATH", "/bin") if command else monkeypatch.setenv("PATH", "")
        monkeypatch.delenv("DISPLAY", raising=False)
        output = run("report", "train", "--open").stdout
        assert (no_browser in output) == shown
        assert "Written: dice_ray_runs/train/report/report.html\n" in output
    assert Path("opened").read_text() == Path("dice_ray_runs/train/report/report.html").resolve().as_uri()


@pytest.mark.usefixtures("trained_here")
def test_a_report_is_written_even_if_nobody_reads_what_it_prints_and_printed_if_it_cannot_be_written(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dice-ray report train | head -1` left no files; and a page that somebody edited left no tables on the screen."""

    def broken(report: object) -> None:
        raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr("dice_ray.cli.results.print_report", broken)
        assert run("report", "train", "--out", "found").status == 1
    assert Path("found/report.html").exists()
    Path("found/report.html").write_text("edited")
    refused = run("report", "train", "--out", "found")
    assert "found has report.html: move them away" in refused.stderr
    assert refused.stdout.startswith("Runs\n")
    refused = run("report", "train", "--out", "found/report.html")
    assert "must be written to a folder, and found/report.html is a file" in refused.stderr


# Runs


def test_a_dry_run_prints_the_plan_and_leaves_nothing(run: Run) -> None:
    settings = ("--set", "data.source.synthetic.size=100", "--set", "training.precision=fp32")
    result = run("train", "synthetic_pairs", *settings, "--name", "mine", "--dry-run")
    assert result.stdout.endswith(run("validate", "synthetic_pairs", *settings).stdout)
    facts = {line[:11].strip(): line[12:] for line in result.stdout.splitlines() if line[11:12] == " "}
    assert {"data", "model", "steps", "time", "memory", "results in"} <= facts.keys()
    assert facts["results in"] == "dice_ray_runs/mine, and in MLflow's experiment train"
    assert "must be KEY=VALUE" in run("train", "synthetic_pairs", "--tag", "novalue", "--dry-run").stderr
    assert list(Path.cwd().iterdir()) == []


def test_a_trained_run_predicts_and_is_scored(trained_here: Trained, run: Run) -> None:
    Path("new.tsv").write_text("sentence1\tsentence2\na\tb\n")
    printed = run("predict", "mine", "new.tsv")
    assert printed.stdout.startswith("id\tlabel\tprobability_0")
    assert "\nmine had ended before: nothing was trained\n" in run("resume", "mine").stdout
    assert "all of which are in one report: `dice-ray report train`" in run("report", "mine").stderr
    assert run("predict", "mine", "new.tsv", "--out", "found.tsv").stdout == "Written: found.tsv\n"
    assert Path("found.tsv").read_text() == printed.stdout
    assert Path("found.tsv").stat().st_mode & 0o777 == 0o600, "predictions may hold texts"
    assert printed.stderr.startswith("threshold 0.")
    everything = run("predict", "mine", "new.tsv", "--threshold", "0")
    assert everything.stdout.splitlines()[1].split("\t")[1] == "1"
    assert everything.stderr.startswith("threshold 0: as chosen; tuned on ")
    assert run("predict", "mine", "new.tsv", "--threshold", "half").status == 2
    scored = run("evaluate", "mine", "dev", "--items", "items.csv")
    assert scored.stdout.startswith("mine on dev, 50 records:\n  f1 ")
    assert "  f1_tuned " in scored.stdout
    assert Path("items.csv").read_text().startswith("id,tp,fp,fn,tuned_tp,tuned_fp,tuned_fn,label_probability\n")
    exported = run("export", "mine", "plain")
    assert exported.stdout == (
        "Written: plain; load it with AutoModelForSequenceClassification.from_pretrained\n"
        "The exported model gives the same logits as the run, up to the length that its README.md names.\n"
    )
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "task.json"} <= {
        path.name for path in Path("plain").iterdir()
    }
    assert "must be new or empty, got plain" in run("export", "mine", "plain").stderr
    assert "did you mean 'mine'?" in run("evaluate", "mime").stderr


def test_lines_of_stdin_are_predicted_as_a_file_and_ids_are_kept(
    trained_here: Trained, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("ids.tsv").write_text("id\tsentence1\tsentence2\nA7\ta\tb\nB9\tc\td\n")
    header, first, second = (line.split("\t") for line in run("predict", "mine", "ids.tsv").stdout.splitlines())
    assert (header[:2], first[0], second[0]) == (["id", "label"], "A7", "B9")
    monkeypatch.setattr("sys.stdin", io.StringIO("a\tb\n\nc\td\n"))
    of_lines = [line.split("\t") for line in run("predict", "mine", "-").stdout.splitlines()]
    assert of_lines == [header, ["1", *first[1:]], ["3", *second[1:]]]
    monkeypatch.setattr("sys.stdin", io.StringIO("a\u2028a\tb\n"))
    assert len(run("predict", "mine", "-").stdout.splitlines()) == 2, "U+2028 is text, as it is in a file"
    monkeypatch.setattr("sys.stdin", io.StringIO("no pair\n"))
    assert "line 1 must be two sentences with a tab between them, got 'no pair'" in run("predict", "mine", "-").error
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\ncaf\xe9\td\n"), "utf-8"))
    message = "line 2 must be text in UTF-8, got byte 0xe9 in 'caf?"
    assert message in run("predict", "mine", "-").error, "it was a traceback"


def test_no_command_overwrites_its_input_or_works_for_an_output_it_cannot_write(
    trained_here: Trained, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`predict f --out f` replaced f by its predictions; a missing folder was told after the inference."""
    monkeypatch.setattr("dice_ray.run.trained.load", None)  # nothing is loaded before the error
    content = "sentence1\tsentence2\tlabel\na\tb\t1\n"
    Path("f.tsv").write_text(content)
    Path("link.tsv").symlink_to("f.tsv")
    for command, option, out in (
        ("predict", "--out", "f.tsv"),
        ("predict", "--out", "link.tsv"),
        ("evaluate", "--items", str(Path("f.tsv").absolute())),
    ):
        result = run(command, "mine", "f.tsv", option, out)
        assert (result.status, "must not be the input" in result.error) == (2, True), result
    for arguments in (
        ("predict", "mine", "f.tsv", "--out", "no/such/f.tsv"),
        ("evaluate", "mine", "f.tsv", "--items", "no/such/f.csv"),
        ("export-preset", "sweep", "no/such/f.yaml"),
    ):
        assert "must be in a folder that exists, and there is no " in run(*arguments).error
    assert "is a folder" in run("predict", "mine", "f.tsv", "--out", ".").stderr
    assert "must be new or empty" in run("export", "mine", ".").stderr
    assert Path("f.tsv").read_text() == content


def test_results_and_listings_are_one_json_document(trained_here: Trained, run: Run) -> None:
    result = run("train", "synthetic_pairs", *QUICK, "--name", "mine", "--json").json
    assert (result["name"], result["best"]["metric"]) == ("mine", "dev/f1")
    assert f"Best: mine has dev/f1 {result['best']['score']:.4f}." in trained_here.stdout
    assert result["waiting"] is None
    assert Path(result["log"]).is_file()
    Path("two.tsv").write_text("sentence1\tsentence2\na\tb\nc\td\n")
    predicted = run("predict", "mine", "two.tsv", "--json").json
    assert 0 < predicted["threshold"]["value"] < 1
    assert predicted["threshold"]["support"] > 0
    header, *rows = (line.split("\t") for line in run("predict", "mine", "two.tsv").stdout.splitlines())
    assert [list(row) for row in predicted["predictions"]] == [header, header]
    assert [row["label"] for row in predicted["predictions"]] == [row[1] for row in rows]
    assert [row["probability_1"] for row in predicted["predictions"]] == [float(row[3]) for row in rows]
    assert run("predict", "mine", "two.tsv", "--out", "as_json.tsv", "--json").json["written"] == "as_json.tsv"
    assert Path("as_json.tsv").read_text().splitlines()[0].split("\t") == header
    exported = run("export", "mine", "exported", "--json").json
    assert exported == {
        "run": "mine",
        "written": "exported",
        "pushed": None,
        "loaded_by": "AutoModelForSequenceClassification",
    }
    scored = run("evaluate", "mine", "dev", "--json").json
    assert (scored["records"], scored["metrics"]["f1"]) == (50, pytest.approx(result["best"]["score"]))
    assert scored["not_stored"] is None
    (experiment,) = run("runs", "--json").json
    assert (experiment["name"], experiment["runs"]) == ("train", {"FINISHED": 1})
    assert [line.split()[0] for line in run("runs").stdout.splitlines()] == ["experiment", "train"]
    (row,) = run("runs", "train", "--json").json
    assert (row["run"], row["score"]) == ("mine", pytest.approx(result["best"]["score"]))
    report = run("report", "train", "--json").json
    assert report["tables"][0]["rows"]
    assert report["written"] == []
    lines = run("runs", "train").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["run", "mine"]
    assert "did you mean 'train'?" in run("runs", "trian").stderr


def test_scores_at_a_threshold_that_predictions_do_not_use_are_marked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = {"f1": 0.5, "threshold": 0.25, "threshold_support": 3.0, "threshold_used": 0.5, "f1_tuned": 0.75}
    for used, marked in ((0.5, ["threshold", "f1_tuned"]), (0.25, [])):
        scores = SimpleNamespace(metrics=metrics | {"threshold_used": used}, items=(), collapsed=False)
        monkeypatch.setattr(api, "evaluate", lambda scores=scores, **_: api.Scored("mine", "test", scores, None))
        lines = run("evaluate", "mine").stdout.splitlines()
        assert [line.split()[0] for line in lines if "3 positives of dev, predictions use 0.5" in line] == marked


def test_defaults_of_runs_trained_alone_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Between runs of two tasks nearly all settings differ: a cell of the table had 20 lines."""
    params = {"loss": "dice", "loss.dice.scope": "batch", "training.batch_size": 32, "training.epochs": 4}
    every = " ".join(f"{path}={value}" for path, value in params.items())
    for name, shown in (("mine", "loss=dice training.epochs=4"), ("sw/1", every)):
        _print_runs([ComparedRun(name, "killed", "dev/f1", 0.5, 1, params, None)])
        _, *row = capsys.readouterr().out.splitlines()
        assert " ".join(row).split() == [name, "interrupted", "0.5000", "1", *shown.split()]


def test_an_experiment_that_was_stopped_before_its_first_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    _print_experiments([Experiment("search", "sweep", {}, None, None, None)])
    assert capsys.readouterr().out.splitlines()[1].split() == ["search", "sweep", "none", "yet"]


@pytest.mark.parametrize("experiment", ["nothing", "another"])
def test_a_result_that_mlflow_does_not_hold_has_no_best_in_json(
    experiment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if experiment == "another":
        with Writer("another") as writer:
            writer.open("a", name="a", params={}, tags={schema.KIND: "sweep"})
    print_result(lambda **_: Result("sw", "sw"), {}, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["name"], document["best"]) == ("sw", None)
