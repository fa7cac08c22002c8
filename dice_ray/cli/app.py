"""The command line: parses, calls the api, prints; here the app itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from dice_ray.cli.data import cache, init, inspect
from dice_ray.cli.known import list_names, losses, validate
from dice_ray.cli.results import report
from dice_ray.cli.searches import ablate, export_preset, tune
from dice_ray.cli.tracking import runs, ui
from dice_ray.cli.train import train
from dice_ray.cli.trained import evaluate, export, predict
from dice_ray.errors import DiceRayError

app = typer.Typer(
    name="dice-ray",
    help="Which loss, with which settings, on my data, and is the difference real?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show what Ray, Optuna, MLflow and transformers say.")
    ] = False,
) -> None:
    """Which loss, with which settings, on my data, and is the difference real?"""


COMMANDS: dict[str, Callable[..., None]] = {
    "train": train,
    "predict": predict,
    "evaluate": evaluate,
    "export": export,
    "tune": tune,
    "ablate": ablate,
    "report": report,
    "export-preset": export_preset,
    "runs": runs,
    "ui": ui,
    "init": init,
    "inspect": inspect,
    "list": list_names,
    "losses": losses,
    "cache": cache,
    "validate": validate,
}
"""In the order of the help."""
for name, command in COMMANDS.items():
    app.command(name)(command)


def main() -> None:
    """Run the command line; a user's mistake exits with 2, a run that failed with 1; a traceback only with --debug."""
    arguments = [argument for argument in sys.argv[1:] if argument not in ("--debug", "-v", "--verbose")]
    if {"-v", "--verbose"} & set(sys.argv[1:]):
        os.environ["DICE_RAY_VERBOSE"] = "1"
    try:
        app(args=arguments)
    except (DiceRayError, OSError) as error:
        if "--debug" in sys.argv[1:]:
            raise
        typer.echo(f"dice-ray: {error}", err=True)
        sys.exit(2 if isinstance(error, ValueError | LookupError | ImportError) else 1)
