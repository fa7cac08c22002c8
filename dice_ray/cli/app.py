"""The command line: parses, calls the api, prints."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from dice_ray.cli.cluster import SUBMITTED, doctor, submit
from dice_ray.cli.data import cache, init, inspect, list_names, losses, validate
from dice_ray.cli.examples import epilog
from dice_ray.cli.layout import WIDTH
from dice_ray.cli.options import EVERYWHERE
from dice_ray.cli.printing import print_text
from dice_ray.cli.results import export_optuna, export_preset, report, runs, ui
from dice_ray.cli.search import ablate, resume, train, tune
from dice_ray.cli.trained import evaluate, export, predict
from dice_ray.errors import DiceRayError, cut
from dice_ray.run.signals import interrupt

app = typer.Typer(
    name="dice-ray",
    help="Which loss, with which settings, on my data, and is the difference real?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"dice-ray {version('dice-ray')}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v", "--verbose", help="Print the output of Ray, Optuna, MLflow and transformers instead of logging it."
        ),
    ] = False,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Which loss, with which settings, on my data, and is the difference real?"""


COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Your data": {"init": init, "inspect": inspect, "validate": validate},
    "Train, search, compare": {"train": train, "tune": tune, "ablate": ablate, "resume": resume},
    "On a cluster": {"doctor": doctor, "submit": submit},
    "Results": {
        "report": report,
        "runs": runs,
        "ui": ui,
        "export-preset": export_preset,
        "export-optuna": export_optuna,
    },
    "Trained models": {"predict": predict, "evaluate": evaluate, "export": export},
    "Reference": {"list": list_names, "losses": losses, "cache": cache},
}
"""Every command by its heading and name, in the order of `dice-ray --help`: that in which a user needs them."""
for heading, commands in COMMANDS.items():
    for name, command in commands.items():
        # Options behind the command that is submitted are its own.
        settings = {"allow_interspersed_args": name != "submit"}
        app.command(name, rich_help_panel=heading, epilog=epilog(name), context_settings=settings)(command)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments of this process, and the command that `submit` passes on with its own --debug and --verbose."""
    number = next((n for n, each in enumerate(arguments) if each in SUBMITTED and "submit" in arguments[:n]), None)
    return (arguments, []) if number is None else (arguments[:number], arguments[number:])


def main() -> None:
    """Run the command line.

    The exit status is 2 for an error in the user's input, 1 for a run that failed, 130 for one that was interrupted
    by Ctrl-C or at the end of --max-hours, 143 by SIGTERM, and 129 by SIGHUP.
    A traceback is printed only with --debug, which may stand anywhere in the command, as may --verbose.
    """
    # The help and the errors of usage, which Typer prints as wide as the terminal.
    os.environ.setdefault("TERMINAL_WIDTH", str(min(WIDTH, shutil.get_terminal_size().columns)))
    own, submitted = _split(sys.argv[1:])
    if {"-v", "--verbose"} & set(own):
        os.environ["DICE_RAY_VERBOSE"] = "1"
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        app(args=[each for each in own if each not in EVERYWHERE] + submitted)
    except (DiceRayError, OSError) as error:
        if "--debug" in own:
            raise
        print_text(f"dice-ray: {cut(str(error))}", err=True)
        sys.exit(2 if isinstance(error, ValueError | LookupError | ImportError) else 1)
    except KeyboardInterrupt:  # before a command, or while it ends
        sys.exit(130)
    except SystemExit as ended:
        if ended.code in (129, 143):  # Python would free all modules first: a machine may not have the seconds left
            sys.stdout.flush()
            os._exit(ended.code)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
