"""Output that commands share: JSON that every parser takes, and commands that a shell and `dice-ray` take."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from dice_ray.api import Best, Result
from dice_ray.cli.app import app
from dice_ray.cli.printing import print_json, print_result
from tests.api.test_results import study

Run = Callable[..., list[str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `dice-ray` with these arguments; returns the arguments of the commands that it printed."""

    def run_in_process(*arguments: str) -> list[str]:
        capfd.readouterr()
        app(args=list(arguments), standalone_mode=False)
        return printed(capfd.readouterr().out)

    return run_in_process


def printed(output: str) -> list[str]:
    """The commands below "Next:" or "To continue:"; each must be one that the parser takes."""
    commands = [line.strip() for line in output.splitlines() if line.startswith("  dice-ray ")]
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    for command in commands:
        _, name, *arguments = shlex.split(command)
        group.commands[name].make_context(name, arguments)
    return commands


def arguments_of(command: str) -> list[str]:
    return shlex.split(command)[1:]


def test_numbers_that_json_lacks_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"score": math.nan, "bounds": (-math.inf, 0.5)})
    assert json.loads(capsys.readouterr().out) == {"score": None, "bounds": [None, 0.5]}


@pytest.mark.ray
def test_every_command_after_init_and_train_runs(run: Run, on_kept_ray: None, uri: str) -> None:
    """Finds names that no command takes, and a test split that the data lack."""
    file = Path("my tickets (1).csv")
    rows = [f"text {number} {'late' if number % 4 else 'ok'},{int(number % 4 > 0)}" for number in range(120)]
    file.write_text("\n".join(["text,label", *rows]))
    train, inspect, ablate = run("init", str(file))
    assert ablate.endswith("--data 'my tickets (1).yaml' --name my_tickets_1 --set data.test_share=0.2")
    run(*arguments_of(inspect))
    quick = ("--set", "training.epochs=1", "--arm", "cross_entropy", "--arm", "dice", "--seeds", "1")
    report, *_ = run(*arguments_of(ablate), *quick)
    run(*arguments_of(report))
    evaluate, predict, report = run(*arguments_of(train), "--name", "mine", "--set", "training.epochs=1")
    assert evaluate == "dice-ray evaluate mine dev"
    run(*arguments_of(evaluate))
    run(*[str(file) if argument == "FILE" else argument for argument in arguments_of(predict)])
    run(*arguments_of(report))


def test_no_test_split_is_to_be_drawn_where_a_folder_has_one(run: Run) -> None:
    """The command that `init` printed was refused."""
    for name in ("train", "test"):
        rows = [f"{name} {number} {'late' if number % 4 else 'ok'},{int(number % 4 > 0)}" for number in range(120)]
        Path("fold").mkdir(exist_ok=True)
        Path(f"fold/{name}.csv").write_text("\n".join(["text,label", *rows]))
    assert run("init", "fold")[-1].endswith("--data fold.yaml --name fold")


@pytest.mark.parametrize(("has_test", "split"), [(True, "test"), (False, "dev")])
def test_a_split_is_offered_only_if_the_data_have_it(
    has_test: bool, split: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = Best("mine", "dev/f1", 0.5)
    print_result(lambda **_: Result("mine", "train", trained=trained, has_test=has_test), {}, as_json=False)
    assert printed(capsys.readouterr().out)[0] == f"dice-ray evaluate mine {split}"


def test_the_result_of_a_study_opens_with_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(lambda **_: study(2), {}, lambda result: [["report", "compare"]], as_json=False)
    output = capsys.readouterr().out
    assert "Too few seeds to say which arm is better: 2 seeds, and 5 are needed." in output
    assert printed(output) == ["dice-ray report compare"]
    print_result(lambda **_: study(6), {}, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["best"]["name"] == "dice"
    assert document["headlines"][0].startswith("Better than plain")


def test_a_resumed_study_names_the_command_with_more_seeds(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else finds that an interrupted study ends, once it is resumed, without what would settle it."""
    more = ["dice-ray", "ablate", "mine.py", "--seeds", "5"]
    monkeypatch.setattr("dice_ray.api.resume", lambda *given, **options: Result("compare", "compare", is_study=True))
    monkeypatch.setattr(Result, "next_study", more)
    assert run("resume", "compare")[-1] == " ".join(more)


def test_the_best_of_a_sweep_is_exported_to_a_file_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `tune quick.yaml --name quick`, the printed command named the preset itself, and was refused."""
    monkeypatch.setattr("dice_ray.api.tune", lambda **given: Result("quick", "quick"))
    assert run("tune", "quick.yaml", "--name", "quick")[-1] == "dice-ray export-preset quick quick-best.yaml"


def test_results_that_wait_are_not_said_to_be_in_mlflow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finds "in MLflow", and "did not answer" of a store that has no driver and cannot be asked."""
    monkeypatch.setattr(Result, "waiting", Path("unsent-0.jsonl"))
    print_result(lambda **_: Result("a", "a"), {}, as_json=False)
    results, waiting = capsys.readouterr().out.strip().splitlines()[:2]
    assert results.startswith("a: results in dice_ray_runs/a; third-party output: ")
    assert waiting == "MLflow lacks the results in unsent-0.jsonl: `dice-ray runs` sends them, or says why it cannot."


def test_what_an_interrupted_study_prints_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        print_result(lambda **_: Result("a b", "a b", is_finished=False), {}, as_json=False)
    assert printed(capsys.readouterr().out) == ["dice-ray resume 'a b'"]
