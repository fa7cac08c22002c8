"""Golden files: what users keep in scripts and stores, as text beside the tests.

`pytest tests/golden --update-golden` rewrites the files, with `-m ray` those of the tests that start Ray; `git diff`
then shows what changed. Values that depend on the machine or the time are replaced by their types.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from dice_ray.cli import app

Golden: TypeAlias = Callable[[str, object], None]
Cli: TypeAlias = Callable[..., Any]


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text, or anything that JSON can hold, with the golden file of this name."""
    update = request.config.getoption("--update-golden")

    def compare(name: str, found: object) -> None:
        text = found if isinstance(found, str) else json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        file = Path(__file__).with_name(name)
        if update:
            file.write_text(text, encoding="utf-8")
        expected = file.read_text(encoding="utf-8") if file.exists() else ""
        changed = difflib.unified_diff(expected.splitlines(), text.splitlines(), name, "found", n=1, lineterm="")
        if lines := list(changed):
            rest = [f"and {len(lines) - 60} more lines"] if len(lines) > 60 else []
            pytest.fail("\n".join([*lines[:60], *rest, "On purpose? --update-golden"]), pytrace=False)

    return compare


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command in this process: the document that it prints with --json, or its text."""

    def run(*arguments: str) -> Any:
        monkeypatch.setattr("sys.argv", ["dice-ray", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as exited:
            app.main()
        printed = capfd.readouterr()
        assert exited.value.code == 0, printed.err
        return json.loads(printed.out) if "--json" in arguments else printed.out

    return run


def shape(value: object) -> object:
    """A JSON document with the type of each value in its place, and the different types of the items of each list."""
    if isinstance(value, dict):
        return {key: shape(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return list({json.dumps(each): each for each in map(shape, value)}.values())
    kinds: Sequence[tuple[type, str]] = ((bool, "bool"), (int | float, "number"), (str, "text"))  # type: ignore[assignment]
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")
