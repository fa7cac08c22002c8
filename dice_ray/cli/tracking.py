"""Commands on what MLflow holds: runs, ui."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dice_ray.cli.options import JsonOption
from dice_ray.cli.printing import print_json, print_table

if TYPE_CHECKING:
    from dice_ray.tracking.compared import Compared, Experiment


def runs(
    experiment: Annotated[
        str | None, typer.Argument(help="A sweep, a study, or `train`: its runs are compared; else all are listed.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the experiments, or compare the runs of one: the best first, with the settings that differ."""
    from dice_ray import api

    send_waiting()
    if experiment is None:
        found = api.experiments()
        print_json(found) if as_json else _print_experiments(found)
    else:
        compared = api.runs(experiment)
        print_json(compared) if as_json else _print_runs(compared)


def ui(port: Annotated[int, typer.Option(min=1, max=65535, help="On 127.0.0.1.")] = 5000) -> None:
    """Serve MLflow's pages on this machine until Ctrl-C."""
    from dice_ray import api

    send_waiting()
    typer.echo(f"http://127.0.0.1:{port} shows the runs; Ctrl-C ends it.")
    api.ui(port)


def send_waiting() -> None:
    """Send what MLflow could not be told before; what still waits is told on stderr."""
    from dice_ray import api

    for waiting in api.send_waiting():
        typer.echo(f"MLflow lacks what waits in {waiting.file}: {waiting.why}", err=True)


def _print_experiments(found: list[Experiment]) -> None:
    rows = [
        (
            each.name,
            each.kind,
            ", ".join(f"{num} {status.lower()}" for status, num in each.runs.items()),
            "" if each.best is None else f"{each.metric} {each.best:.4f}",
            (each.began or "").replace("T", " ")[:16],
        )
        for each in found
    ]
    print_table(("experiment", "kind", "runs", "best", "last began (UTC)"), rows)


def _print_runs(compared: list[Compared]) -> None:
    metrics = {run.metric for run in compared if run.metric is not None}
    metric = metrics.pop() if len(metrics) == 1 else None
    rows = [
        (
            run.run,
            run.state,
            "" if run.score is None else f"{run.score:.4f}" if metric else f"{run.metric} {run.score:.4f}",
            "" if run.seed is None else str(run.seed),
            run.failure or " ".join(f"{path}={_short(value)}" for path, value in run.params.items()),
        )
        for run in compared
    ]
    print_table(("run", "state", metric or "score", "seed", "what differs"), rows)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
