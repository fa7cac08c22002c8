"""The command line: parses, calls the api, prints."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from dice_ray.api.presets import settings_named
from dice_ray.cli.data import cache, init, inspect, list_names, losses, validate
from dice_ray.cli.layout import WIDTH
from dice_ray.cli.options import EVERYWHERE
from dice_ray.cli.printing import print_text
from dice_ray.cli.results import compare, evaluate, export, export_optuna, export_preset, predict, report, runs, ui
from dice_ray.cli.training import SUBMITTED, ablate, doctor, resume, submit, train, tune
from dice_ray.errors import DiceRayError, cut, reason_of
from dice_ray.files import disk_error
from dice_ray.run.signals import interrupt

app = typer.Typer(
    name="dice-ray",
    help="Which loss, with which settings, on my data, and is the difference real?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"dice-ray {version('dice-ray')}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v", "--verbose", help="Print the output of Ray, Optuna, MLflow and transformers instead of logging it."
        ),
    ] = False,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Which loss, with which settings, on my data, and is the difference real?"""


_COMMANDS: Final[dict[str, dict[str, tuple[Callable[..., None], str, str]]]] = {
    "Your data": {
        "init": (
            init,
            "dice-ray init train.tsv --test test.tsv --out mine.yaml",
            "dice-ray init tickets.csv --text-column body --label-column urgent",
        ),
        "inspect": (
            inspect,
            "dice-ray inspect mine.yaml  # also writes CSV files and a plot",
            "dice-ray inspect synthetic_texts mine.yaml --out counts",
        ),
        "validate": (
            validate,
            "dice-ray validate mine.yaml",
            "dice-ray validate synthetic_pairs --set loss.focal.gamma=3",
        ),
    },
    "Train, search, compare": {
        "train": (
            train,
            "dice-ray train mine.yaml --set loss=dice --name first",
            "dice-ray train synthetic_pairs --set training.epochs=5 --dry-run",
        ),
        "tune": (
            tune,
            "dice-ray tune mine.yaml --trials 32 --max-hours 2 --name search",
            "dice-ray tune synthetic_pairs --space joint_tuning:focal --seeds 3",
        ),
        "ablate": (
            ablate,
            "dice-ray ablate loss_comparison --data mine.yaml --seeds 10 --name losses",
            "dice-ray ablate mining --data synthetic_pairs --arm cross_entropy --dry-run",
        ),
        "resume": (
            resume,
            "dice-ray resume search",
            "dice-ray resume search --trials 32  # 32 more",
        ),
    },
    "On a cluster": {
        "doctor": (
            doctor,
            "dice-ray doctor --address head:6379",
            "dice-ray doctor mine.yaml --set launch.gpus=1",
        ),
        "submit": (
            submit,
            "dice-ray submit -- tune mine.yaml --trials 256 --name search",
            "dice-ray submit --runs /shared/runs --follow -- resume search",
        ),
    },
    "Results": {
        "report": (
            report,
            "dice-ray report losses --open",
            "dice-ray report losses search --out both  # side by side",
        ),
        "compare": (
            compare,
            "dice-ray compare scores.csv --metric test_f1 --arm loss --seed seed",
            "dice-ray compare my_experiment --metric test_f1 --by data --where split=test",
        ),
        "runs": (
            runs,
            "dice-ray runs  # all experiments",
            "dice-ray runs search --json",
        ),
        "ui": (
            ui,
            "dice-ray ui",
            "dice-ray ui --port 8080",
        ),
        "export-preset": (
            export_preset,
            "dice-ray export-preset search best.yaml",
            "dice-ray export-preset search/0003 third.yaml  # one of its trials",
        ),
        "export-optuna": (
            export_optuna,
            "dice-ray export-optuna search study.db",
            "dice-ray export-optuna search study.db --json",
        ),
    },
    "Trained models": {
        "predict": (
            predict,
            "dice-ray predict first new.tsv --out predicted.tsv",
            "cat new.txt | dice-ray predict first - --threshold 0.3",
        ),
        "evaluate": (
            evaluate,
            "dice-ray evaluate first test --items items.csv",
            "dice-ray evaluate losses/dice/1 labelled.tsv",
        ),
        "export": (
            export,
            "dice-ray export first model",
            "dice-ray export search/0003 --push my-org/model  # to the Hugging Face hub",
        ),
    },
    "Reference": {
        "list": (
            list_names,
            "dice-ray list",
            "dice-ray list --json",
        ),
        "losses": (
            losses,
            "dice-ray losses self_adjusting_dice",
            "dice-ray losses --plot derivatives.png",
        ),
        "cache": (
            cache,
            "dice-ray cache",
            "dice-ray cache --clear --older-than 30d",
        ),
    },
}
"""Every command by its heading and name, in the order in which a user needs them, with two examples for its help.

In the examples `mine.yaml` is what `init` writes, `first` is a run, `search` a sweep and `losses` a study.
"""


class _Command(TyperCommand):
    """A command that says how a setting is written which was given as an option of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as raised:
            error: Any = raised  # of a class that is Typer's own or click's, depending on the version
            if type(error).__name__ == "NoSuchOption" and any(each.name == "settings" for each in self.params):
                found = settings_named(error.option_name.strip("-").replace("-", "_"))
                error.possibilities = [f"--set {path}=VALUE" for path in found[:3]] or error.possibilities
            raise


for _heading, _commands in _COMMANDS.items():
    for _name, (_command, *_examples) in _commands.items():
        app.command(
            _name,
            cls=_Command,
            rich_help_panel=_heading,
            epilog="\n\n".join(["Examples:", *_examples]),  # a paragraph each, since Typer joins single lines
            # Options behind the command that is submitted are its own.
            context_settings={"allow_interspersed_args": _name != "submit"},
        )(_command)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments of this process, and the command that `submit` passes on with its own --debug and --verbose."""
    number = next((n for n, each in enumerate(arguments) if each in SUBMITTED and "submit" in arguments[:n]), None)
    return (arguments, []) if number is None else (arguments[:number], arguments[number:])


def main() -> None:
    """Run the command line.

    The exit status is 2 for an error in the user's input, 1 for a run that failed or a report that does not show what
    --require asks for, 3 for one that cannot say yet, 130 for one that was interrupted
    by Ctrl-C or at the end of --max-hours, 143 by SIGTERM, and 129 by SIGHUP.
    A traceback is printed only with --debug, which may stand anywhere in the command, as may --verbose.
    """
    # The help and the errors of usage, which Typer prints as wide as the terminal.
    os.environ.setdefault("TERMINAL_WIDTH", str(min(WIDTH, shutil.get_terminal_size().columns)))
    own, submitted = _split(sys.argv[1:])
    if {"-v", "--verbose"} & set(own):
        os.environ["DICE_RAY_VERBOSE"] = "1"
    # The exit would go through all objects again: 1.4 of its 1.6 s of CPU once torch is imported. On a busy machine a
    # driver that was refused lived for up to 88 s after its message.
    atexit.register(gc.freeze)
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        app(args=[each for each in own if each not in EVERYWHERE] + submitted)
    except Exception as error:
        from dice_ray.user_code import raised_at

        place = None if isinstance(error, DiceRayError) else raised_at(error)
        if "--debug" in own or not (place or isinstance(error, DiceRayError | OSError)):
            raise
        message = disk_error(error) if isinstance(error, OSError) else reason_of(error)
        if place:
            message = f"{place}, raised {message} (--debug prints the traceback)"
        print_text(f"dice-ray: {cut(message)}", err=True)
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
