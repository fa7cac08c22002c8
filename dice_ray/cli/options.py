"""Arguments and options that several commands share, and those of tune and ablate."""

from __future__ import annotations

from collections.abc import Sequence
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
NoteOption = Annotated[str | None, typer.Option(metavar="TEXT", help="A note that MLflow's pages show, in Markdown.")]
TagOption = Annotated[list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="A tag in MLflow; repeatable.")]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Address of the head of a Ray cluster.",
        show_default="RAY_ADDRESS, or a Ray on this machine alone",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
SpaceOption = Annotated[
    str | None,
    typer.Option(help="Search space: its name, module:function or file.py:function.", show_default="loss_tuning"),
]
ObjectivesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--objective",
        metavar="METRIC",
        help="Metric to optimise (of dev, or `seconds`); give the option at least twice. To optimise a single metric, "
        "set `task.TASK.score`.",
        show_default="the metric of the task",
    ),
]
SamplerOption = Annotated[
    str | None,
    typer.Option(
        help="tpe, random, brute_force, nsga2, or file.py:function that makes an Optuna sampler from a seed.",
        show_default="tpe, nsga2 for several objectives",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        help="Early stopping: asha, median, none, or file.py:function that makes an Optuna pruner.",
        show_default="asha, none for several objectives",
    ),
]
WarmStartOption = Annotated[
    str | None,
    typer.Option(
        metavar="published|NAME", help="Start from the settings published for the preset, or from the sweep NAME."
    ),
]
DataOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PRESET",
        help="Preset whose data the arms are compared on: a name or the path of a YAML file; repeatable.",
        show_default="the presets that the study names",
    ),
]
EncoderOption = Annotated[
    list[str] | None,
    typer.Option(help="Encoder of all arms, in place of the preset's model.encoder; repeatable."),
]
ArmOption = Annotated[
    list[str] | None, typer.Option(help="Arm of the study to run; repeatable.", show_default="all arms")
]
TuneSharedOption = Annotated[
    str | None,
    typer.Option(
        metavar="SWEEP",
        help="Sweep whose best trial gives all arms the same settings, except those of the loss.",
    ),
]
TunedFromOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SWEEP",
        help="Sweep whose best trial with the arm's loss gives the arm its hyperparameters; with --tune-shared, those "
        "of the loss alone; repeatable.",
    ),
]


def tags_of(written: Sequence[str] | None) -> dict[str, str]:
    """The tags that `--tag` was given."""
    pairs = [text.partition("=") for text in written or ()]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise typer.BadParameter(f"--tag must be KEY=VALUE, got {wrong[0]!r}")
    return {name: value for name, _, value in pairs}
