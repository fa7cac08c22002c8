"""Output that several commands share: JSON, tables, the estimate of a dry run, the end of a run."""

from __future__ import annotations

import json
import math
import os
import select
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import typer

from dice_ray.cli.layout import WIDTH, clock, folded, table
from dice_ray.errors import RunError, UnknownNameError, counted, gib, one_line

if TYPE_CHECKING:
    from analysis.report import Report
    from dice_ray.api import DryRun, Result
    from dice_ray.run.rehearsal import Rehearsal
    from dice_ray.tuning.estimate import Estimate


def print_text(text: str, hanging: int = 4, *, err: bool = False) -> None:
    """Print text for people, with long lines folded as `layout.folded` does."""
    typer.echo(folded(text, hanging), err=err)


def print_commands(heading: str, *commands: Sequence[str]) -> None:
    """Print commands of `dice-ray`, each given by its arguments, as a shell takes them: THE place for that."""
    typer.echo(heading)
    for arguments in commands:
        typer.echo(f"  {shlex.join(['dice-ray', *arguments])}")


def print_json(value: Any) -> None:
    """Print one JSON document on one line."""
    typer.echo(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """A value in JSON's types: dataclasses become objects, NaN and infinities null, anything unknown its `str`.

    >>> _plain({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def print_report(report: Report) -> None:
    """Print the title, the verdicts, the summary and the tables of a report."""
    typer.echo(one_line(report.title))
    for card in report.cards:
        print_text(f"\n{card.text()}", hanging=4)
    if report.summary:
        print_text("\n".join(["", *map(one_line, report.summary)]), hanging=2)
    for each in report.tables:
        header, *rows = each.cells
        title = folded(one_line(each.title), hanging=0)
        typer.echo(f"\n{title}\n{min(WIDTH, len(title)) * '-'}\n{table(header, rows, each.is_right)}")
        for note in each.notes:
            print_text(one_line(note), hanging=2)


def print_result(
    function: Callable[..., Result],
    given: Mapping[str, Any],
    next_commands: Callable[[Result], Sequence[Sequence[str]]] = lambda result: (),
    price_per_hour: float | None = None,
    *,
    as_json: bool,
) -> None:
    """Call a function of the api that trains; print where the results are, and the next commands for finished ones.

    Of a dry run, the estimate is printed.

    Raises:
        typer.Exit: The run was interrupted; the exit status is 130, 143 after SIGTERM, 129 after SIGHUP.
    """
    from dice_ray.api import Interrupted
    from dice_ray.cli.screen import TerminalScreen

    if price_per_hour is not None and not given["dry_run"]:
        raise typer.BadParameter("--price-per-hour needs --dry-run")
    status = 130  # of --max-hours
    try:
        try:
            result = function(**given, show=None if as_json else TerminalScreen)
        finally:
            _discard_unread()
    except Interrupted as interrupted:
        result, status = interrupted.result, interrupted.status
        if not result.can_be_resumed:
            typer.echo("Interrupted before anything was stored: give the command again.", err=True)
            raise typer.Exit(status) from None
    if result.rehearsal is not None:
        _print_dry_run(result.rehearsal, as_json=as_json)
        return
    if result.estimate is not None:
        _print_estimate(result.estimate, price_per_hour, as_json=as_json)
        return
    if as_json:
        best = None
        with suppress(RunError, UnknownNameError):  # MLflow is away, or a study has no winner or several data sets
            best = result.best if result.is_finished else None
        document = {"name": result.name, "experiment": result.experiment, "is_finished": result.is_finished}
        document |= {"best": best, "folder": result.folder, "log": result.log, "waiting": result.waiting}
        print_json(document | {"headlines": result.headlines})
    else:
        if result.trained is not None:
            split = "test" if result.has_test else "dev"
            commands = [["evaluate", result.name, split], ["predict", result.name, "FILE"], ["report", "train"]]
        else:
            commands = [list(command) for command in next_commands(result)]
        waiting = result.waiting
        places = f"{result.folder}{'' if waiting else ' and in MLflow'}"
        typer.echo(f"\n{result.name}: results in {places}; third-party output: {result.log}")
        if waiting:
            typer.echo(f"MLflow lacks the results in {waiting}: `dice-ray runs` sends them, or says why it cannot.")
        if result.is_finished:
            for line in _outcome(result):
                print_text(line)
            print_commands("Next:", *commands)
        else:
            # No plan stores these, and a resumed sweep or study needs them too.
            again = [word for name in ("register", "address") if name in given for word in (f"--{name}", given[name])]
            print_commands("Interrupted. To continue:", ["resume", result.name, *again])
    if not result.is_finished:
        raise typer.Exit(status)


def _discard_unread() -> None:
    """Send stdout and stderr of this process to /dev/null where nobody can read them any more.

    What a command prints at its end would otherwise raise, and its exit status would be that of an error.
    """
    streams = select.poll()
    for number in (1, 2):
        streams.register(number, 0)
    for number, _ in streams.poll(0):  # a hung up terminal, a pipe without a reader
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def _outcome(result: Result) -> Sequence[str]:
    """The outcome of a run, sweep or study; nothing where MLflow is away, and for several objectives."""
    if result.headlines:
        return result.headlines
    try:
        return [f"Best: {result.best.line}"]
    except (RunError, UnknownNameError):
        return []


def _print_dry_run(plan: DryRun, *, as_json: bool) -> None:
    """Print an estimate of what a run takes, and its configuration."""
    run = plan.rehearsal
    if as_json:
        print_json(plan)
        return
    sizes = ", ".join(f"{split} {counted(size, 'record')}" for split, size in run.records.items())
    rows = ", ".join(f"{split} {size}" for split, size in run.rows.items())
    _print_fact(f"data        {sizes}; rows: {rows}")
    trained = "" if run.num_trained == run.num_parameters else f", of which {run.num_trained:,} are trained"
    _print_fact(f"model       {run.num_parameters:,} parameters{trained}")
    _print_fact(f"steps       {run.num_steps}, with {counted(run.num_evaluations, 'evaluation')} on dev")
    _print_fact(f"time        about {clock(run.seconds)} ({run.seconds_a_step:.3f} s per step, {run.num_timed} timed)")
    _print_fact(f"memory      {_memory_per_process(run)}")
    _print_fact(f"results in  {plan.folder}, and in MLflow's experiment train")
    if run.few_items:
        _print_fact(run.few_items)
    typer.echo(f"\nThe settings, with all defaults:\n{plan.config}", nl=False)


def _print_estimate(estimate: Estimate, price_per_hour: float | None, *, as_json: bool) -> None:
    """Print an estimate of the remaining runs of a sweep or study, their cost only with a price, and its plan."""
    least, most = estimate.least_seconds, estimate.seconds
    hourly = None if price_per_hour is None else price_per_hour / 3600
    if as_json:
        costs = {"least_cost": hourly and hourly * least, "cost": hourly and hourly * most}
        print_json({**_plain(estimate), **costs})
        return
    run, needs = estimate.rehearsal, estimate.needs
    ended = f", {estimate.num_ended} finished before" if estimate.num_ended else ""
    processes = max(needs.workers, 1)
    cpus = counted(processes * needs.threads, "CPU")
    gpus = f" and {counted(processes * needs.gpus, 'GPU')}" if needs.gpus else ""
    workers = f" ({needs.workers} workers)" if needs.workers else ""
    less = ", less with early stopping" if estimate.stops_early else ""
    fewest, highest = sorted((estimate.fastest.num_steps, run.num_steps))
    each = (
        f"{_range(estimate.fastest.seconds, run.seconds, clock)} each, {_range(fewest, highest, str)} steps, "
        f"{clock(estimate.seconds_to_start)} to start"
    )
    _print_fact(f"runs        {estimate.num_runs}{ended}")
    _print_fact(f"at once     {estimate.num_at_once}, each with {cpus}{gpus}{workers}")
    _print_fact(f"time        about {_range(least, most, clock)}{less} ({each})")
    _print_fact(f"memory      {gib(estimate.memory)} of {gib(estimate.free_memory)} ({_memory_per_process(run)})")
    _print_fact(f"disk        {gib(estimate.disk)} of {gib(estimate.free_disk)}")
    if hourly is not None:
        cost = _range(hourly * least, hourly * most, "{:.2f}".format)
        _print_fact(f"cost        about {cost}{less} at {price_per_hour:g} per hour")
    experiment = f"MLflow's experiment {estimate.folder.name} in {estimate.store}"
    _print_fact(f"results in  {estimate.folder}, and in {experiment}")
    for note in estimate.notes:
        print_text(note)
    typer.echo(f"\nThe plan:\n{estimate.plan}", nl=False)


def _print_fact(line: str) -> None:
    """Print a line that opens with the name of a fact, in a column of 12."""
    print_text(line, hanging=12)


def _range(least: float, most: float, write: Callable[[Any], str]) -> str:
    """Both values, or one where they are written alike."""
    return " to ".join(dict.fromkeys((write(least), write(most))))


def _memory_per_process(run: Rehearsal) -> str:
    gpu = f", {gib(run.peak_gpu_memory)} of a GPU" if run.peak_gpu_memory else ""
    return f"{gib(run.peak_memory)} per process{gpu}"
