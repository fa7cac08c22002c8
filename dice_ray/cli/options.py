"""Options of the command line, formed from the signatures and the Args sections of the api's functions.

An option is written once, in the api: its name, type, default and help are those of the parameter. `_SPELLED` has what
a terminal spells differently, by the parameter's name, or by function and name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer

from dice_ray import api

Arguments: TypeAlias = dict[str, Any]
"""The arguments of a function of the api that were given, by their names."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
PriceOption = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="PRICE", help="Price of the machines per hour: with --dry-run, the cost is estimated too."
    ),
]


@dataclass(frozen=True)
class _Spelling:
    """How a parameter of the api is spelled on the command line, where its name and its sentence do not serve."""

    option: str | None = None
    metavar: str | None = None
    least: float | None = None
    help: str | None = None
    kind: Any = None


_SPELLED: Final = {
    "preset": _Spelling(help="Name of a preset (see `dice-ray list`), or path of a YAML file."),
    "settings": _Spelling("--set", "PATH=VALUE", help="Override a value of the preset, e.g. loss.focal.gamma=3."),
    "space": _Spelling(help="Search space: its name, module:function or file.py:function."),
    "trials": _Spelling(least=1),
    "more_trials": _Spelling("--trials", "N", least=0),
    "seed": _Spelling(least=0),
    "seeds": _Spelling(least=0),
    "top": _Spelling(least=1),
    "num_settings": _Spelling("--settings", "N", least=1),
    "budget": _Spelling(metavar="N", least=1),
    "objectives": _Spelling("--objective", "METRIC"),
    "warm_start": _Spelling(metavar="published|NAME"),
    "trial_timeout": _Spelling(metavar="SECONDS", least=1),
    "max_hours": _Spelling(metavar="HOURS"),
    "register": _Spelling(metavar="NAME"),
    "note": _Spelling(metavar="TEXT"),
    "tags": _Spelling("--tag", "KEY=VALUE", help="A tag in MLflow."),
    "address": _Spelling(metavar="HOST:PORT"),
    "encoders": _Spelling("--encoder", "ENCODER"),
    "arms": _Spelling("--arm", "ARM"),
    "tune_shared": _Spelling(metavar="SWEEP"),
    "tuned_from": _Spelling(metavar="SWEEP"),
    "presets": _Spelling(metavar="NAME..."),
    "names": _Spelling(metavar="NAME..."),
    "text_columns": _Spelling("--text-column", "COLUMN"),
    "label_column": _Spelling(metavar="COLUMN"),
    "id_column": _Spelling(metavar="COLUMN"),
    "group_column": _Spelling("--group", "COLUMN"),
    "time_column": _Spelling("--time", "COLUMN"),
    "positive": _Spelling(metavar="LABEL"),
    "format": _Spelling("--as", "READER"),
    "on_bad_row": _Spelling(kind=Literal["error", "skip"]),
    "threshold": _Spelling(metavar="auto|tuned|NUMBER"),
    "prior": _Spelling(metavar="auto|SHARE"),
    "ablate.threshold": _Spelling(metavar="tuned|untuned", kind=Literal["tuned", "untuned"]),
    "care": _Spelling(metavar="POINTS"),
    "push": _Spelling(metavar="ORG/NAME"),
    "ablate.data": _Spelling(
        metavar="PRESET", help="Preset whose data are used; by default those that the study names."
    ),
    "ablate.seeds": _Spelling(least=1),
    "compare.arm": _Spelling(metavar="COLUMN"),
    "compare.seed": _Spelling(metavar="COLUMN"),
    "compare.name": _Spelling(help="Name of the comparison; by default that of the source, with -compared."),
    "baseline": _Spelling(metavar="ARM"),
    "predictions": _Spelling(metavar="ARM=FILE"),
    "dev_predictions": _Spelling(metavar="ARM=FILE"),
    "by": _Spelling(metavar="COLUMN"),
    "where": _Spelling(metavar="COLUMN=VALUE"),
    "evaluate.data": _Spelling(metavar="dev|test|FILE", help="A split, or a file with labels or its URL."),
    "doctor.preset": _Spelling(
        help="Preset whose data and encoder every machine must have: a name or the path of a YAML file; by default the "
        "cluster alone is checked."
    ),
    "predict.file": _Spelling(
        help="File in the format of the run's data, or its URL, labels not needed; or - for the lines of stdin, each a "
        "text, a pair with a tab between, or words."
    ),
}
EVERYWHERE: Final = ("--debug", "-v", "--verbose")
"""Options of `dice-ray` that may stand anywhere in a command."""
_PYTHON_ONLY: Final = ("loss", "losses", "callbacks", "show")
"""Parameters whose values no terminal can write."""


def with_options_of(function: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the parameters of a function of the api as arguments and options, before its own.

    The command's first parameter receives those that were given, as a dictionary to call the function with.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        inherited = _parameters(function)
        _, *own = inspect.signature(command, eval_str=True).parameters.values()

        @wraps(command)
        def run(**values: Any) -> None:
            given = {each.name: values.pop(each.name) for each in inherited}
            given = {name: value for name, value in given.items() if value not in (None, [])}
            command(given, **values)

        all_of_them = [*inherited, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own)]
        run.__signature__ = inspect.Signature(all_of_them)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in all_of_them}
        return run

    return decorate


def _parameters(function: str) -> list[inspect.Parameter]:
    """The parameters of a function of the api, annotated for Typer."""
    signature, sentences = inspect.signature(getattr(api, function)), _sentences(function)
    return [
        _parameter(
            each,
            sentences.get(name, ""),
            _SPELLED.get(f"{function}.{name}", _SPELLED.get(name, _Spelling())),
            number == 0,
        )
        for number, (name, each) in enumerate(signature.parameters.items())
        if name not in _PYTHON_ONLY
    ]


def _parameter(of_api: inspect.Parameter, sentence: str, spelling: _Spelling, is_first: bool) -> inspect.Parameter:
    name, written = of_api.name, str(of_api.annotation)
    is_list = written.startswith(("Sequence", "Preset | Sequence", "Written", "Mapping", "Predicted"))
    is_list |= of_api.kind is of_api.VAR_POSITIONAL
    kind = spelling.kind or (list[str] if is_list else _KINDS.get(written.removesuffix(" | None"), str))
    is_required = of_api.default is of_api.empty or (is_first and of_api.default is not None)
    default = of_api.default if isinstance(of_api.default, bool | int | float | str) else None
    help_text = spelling.help or sentence
    assert help_text, f"{name} needs a sentence in the Args section"
    if of_api.kind is not inspect.Parameter.KEYWORD_ONLY and (is_first or not is_list):
        info: Any = typer.Argument(help=help_text, metavar=spelling.metavar)
    else:
        option = spelling.option or f"--{name.replace('_', '-')}"
        help_text = f"{help_text.rstrip('.')}; repeatable." if is_list else help_text
        info = typer.Option(option, help=help_text, metavar=spelling.metavar, min=spelling.least)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_required else default,
        annotation=Annotated[kind if is_required or default is not None else kind | None, info],
    )


_KINDS: Final = {"bool": bool, "int": int, "float": float, "Path": Path}


def _sentences(function: str) -> dict[str, str]:
    """The sentence on each parameter in the Args section of a function of the api.

    For "As in `f`" it is the sentence on the parameter of the function f. Parameters that it names become options.
    """
    section = (inspect.getdoc(getattr(api, function)) or "").partition("Args:\n")[2].partition("\n\n")[0]
    found = {}
    for name, text in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, re.MULTILINE):
        sentence = " ".join(text.split())
        if other := re.match(r"As in `(\w+)`(.*)", sentence):
            sentence = _sentences(other[1])[name].rstrip(".") + (other[2] or ".")
        found[name] = sentence
    options = re.compile("|".join(rf"\b{name}\b" for name in found if "_" in name) or "(?!)")
    return {name: options.sub(lambda name: f"--{name[0].replace('_', '-')}", text) for name, text in found.items()}
