"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

PRESET_HELP = "Name of a preset (see `dice-ray list`), or path of a YAML file."

PresetArgument = Annotated[str, typer.Argument(help=PRESET_HELP)]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Override a value of the preset, e.g. loss.focal.gamma=3; repeatable."
    ),
]
TimeoutOption = Annotated[
    float | None, typer.Option(min=1, metavar="SECONDS", help="Time limit of one trial; a longer one counts as failed.")
]
HoursOption = Annotated[
    float | None,
    typer.Option(min=0, metavar="HOURS", help="Stop after this time; `dice-ray resume NAME` continues later."),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Run only a few steps, print what the whole would take, and leave no files behind."),
]
PriceOption = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="PRICE", help="Price of the machines per hour: with --dry-run, the cost is estimated too."
    ),
]
RegisterOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Register the best model in MLflow as the next version of the model NAME."),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Address of the head of a Ray cluster; by default, Ray runs on this machine alone."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
