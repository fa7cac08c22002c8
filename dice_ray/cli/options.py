"""Arguments and options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

PresetArgument = Annotated[str, typer.Argument(help="A preset's name (`dice-ray list`), or a YAML file of your own.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Write a value over the preset; repeatable.")
]
TimeoutOption = Annotated[
    float | None, typer.Option(min=1, metavar="SECONDS", help="A trial that is still running after so long has failed.")
]
HoursOption = Annotated[
    float | None,
    typer.Option(min=0, metavar="HOURS", help="Stop after so long; --resume or the same command goes on."),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Run a few steps, say what the whole would take, leave nothing.")
]
PriceOption = Annotated[
    float | None, typer.Option(min=0, metavar="PRICE", help="Of the machines: a dry run then says the cost.")
]
RegisterOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Register the best model in MLflow, as the next version of this name."),
]
AddressOption = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Of a Ray cluster's head; else Ray runs on this machine alone.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
