"""The layout of what is printed: nothing is wider than 100 columns, and names and commands stay whole."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from dice_ray.cli.app import main
from dice_ray.cli.layout import WIDTH, folded, table
from dice_ray.tracking import schema
from dice_ray.tracking.writer import Writer

TRIAL = "search_of_a_loss_and_its_optimizer/0002"
ARM = "self_adjusting_dice (tuned threshold)"
COMMAND = "`dice-ray resume search_of_a_loss_and_its_optimizer`"
PARAMETERS = {
    "loss": "self_adjusting_dice",
    "loss.self_adjusting_dice.decay_gradient": "stopped",
    "loss.self_adjusting_dice.gamma": 0.000123456,
    "training.optimizer.adamw.weight_decay": 0.0123456,
    "training.schedule": "warmup_then_linear",
    "training.lr": 0.0000312345,
    "training.batch_size": 32,
    "model.dropout": 0.1,
    "model.head_bias": "prior",
}


@pytest.fixture
def stored() -> None:
    """A sweep and a study as MLflow holds them, with long names, many parameters and a long reason of a failure."""
    sweep, _ = TRIAL.split("/")
    with Writer(sweep) as writer:
        writer.open(sweep, name=sweep, params={}, tags={schema.KIND: "sweep", schema.METRIC: "dev/f1"})
        for key, score in (("0001", 0.5), ("0002", 0.75), ("0003", None)):
            params = {name: f"{value}{key}" if isinstance(value, str) else value for name, value in PARAMETERS.items()}
            state = "failed" if score is None else "done"
            tags = {schema.KIND: "trial", schema.SEARCHED: " ".join(params), schema.STATE: state}
            if score is None:
                tags |= {schema.FAILURE: f"the file {'x' * 150} must exist, and {'it does not exist, ' * 9}"}
            writer.open(key, name=key, params=params, tags=tags, parent=sweep)
            if score is not None:
                writer.metrics(key, 1, {"dev/f1": score})
            writer.end(key, "FAILED" if score is None else "FINISHED")
        writer.end(sweep, "FINISHED")
    with Writer("compare") as writer:
        tags = {schema.KIND: "study", schema.METRIC: "test/f1", schema.BASELINE: "cross_entropy"}
        writer.open("compare", name="compare", params={}, tags=tags)
        for arm, score in (("cross_entropy", 0.5), ("dice", 0.6), (ARM, 0.55)):
            for seed in range(1, 7):
                tags = {schema.KIND: "cell", schema.ARM: arm, schema.SEED: str(seed), schema.STATE: "done"}
                writer.open(f"{arm}{seed}", name=arm, params={}, tags=tags, parent="compare")
                scores = {f"test/{name}": score * (1 + seed / 100) for name in ("f1", "f1_tuned", "pr_auc")}
                writer.metrics(f"{arm}{seed}", 1, scores | {"test/constant_f1": 0.18})
                writer.end(f"{arm}{seed}", "FINISHED")
        writer.end("compare", "FINISHED")


@pytest.fixture
def output_of(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a command prints on stdout and stderr, where the terminal has 300 columns."""
    monkeypatch.setenv("COLUMNS", "300")

    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["dice-ray", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit):
            main()
        return "".join(capfd.readouterr())

    return run


def test_nothing_printed_is_too_wide(stored: None, output_of: Callable[..., str]) -> None:
    long = "a_column_with_a_very_long_name"
    rows = [f"{'a text with 汉字 that goes on ' * 9}{n},{'late' if n % 4 else 'ok'},{n}" for n in range(120)]
    Path("mine.csv").write_text("\n".join([f"text,label,{long}", *rows]))
    sweep, _ = TRIAL.split("/")
    runs = ["runs"], ["runs", sweep], ["report", sweep], ["runs", "compare"], ["report", "compare"]
    reference = ["list"], ["losses"], ["losses", "self_adjusting_dice"], ["validate", "nothing"]
    data = ["init", "mine.csv"], ["inspect", "mine.yaml", "synthetic_labels", "synthetic_tagging"], ["cache"]
    printed = {" ".join(arguments): output_of(*arguments) for arguments in (*runs, *reference, *data)}
    too_wide = [line for output in printed.values() for line in output.splitlines() if cell_len(line) > WIDTH]
    assert too_wide == []
    for words in (["report", sweep], ["runs", sweep]):
        assert "dev/f1" in printed[" ".join(words)]
    assert TRIAL in printed[f"runs {sweep}"]
    assert all(f"compare/{ARM}/{seed} " in printed["runs compare"] for seed in range(1, 7))


def test_help_is_not_as_wide_as_the_terminal() -> None:
    """In a process of its own, as Typer reads the width when it is imported."""
    command = [str(Path(sys.executable).with_name("dice-ray")), "tune", "--help"]
    environment = {name: value for name, value in os.environ.items() if name != "TERMINAL_WIDTH"} | {"COLUMNS": "300"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert max(map(cell_len, result.stdout.splitlines())) == WIDTH


def test_columns_that_do_not_fit_are_put_below_with_the_names_repeated() -> None:
    numbers = [f"{number}0.25 [12.50, 87.50]" for number in range(5)]
    lines = table(["arm", *map(str, range(5))], [[ARM, *numbers], ["dice", *numbers]], [False, *5 * [True]]).split("\n")
    assert [line.split()[0] for line in lines if line] == ["arm", "self_adjusting_dice", "dice"] * 3
    assert all(any(number in line for line in lines) for number in numbers)


def test_as_many_columns_are_repeated_as_tell_the_rows_apart() -> None:
    rows = [[data, split, *5 * ["1" * 30]] for data in ("mrpc", "sst2") for split in ("dev", "test")]
    lines = table(["data", "split", *5 * ["number"]], rows, [False, False, *5 * [True]]).split("\n")
    assert [line.split()[:2] for line in lines if line.startswith("mrpc")] == [["mrpc", "dev"], ["mrpc", "test"]] * 3


def test_a_command_in_a_sentence_and_the_columns_of_a_line_stay() -> None:
    text = folded(f"    time   {'word ' * 15}{COMMAND} continues it")
    assert text.split("\n") == [f"    time   {'word ' * 15}".rstrip(), f"        {COMMAND} continues it"]
