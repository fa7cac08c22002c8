"""Commands on results (report, compare, runs, ui, exports), and predict, evaluate and export of a run."""

from __future__ import annotations

import io
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dice_ray import api
from dice_ray.api.presets import without_defaults
from dice_ray.cli.layout import table
from dice_ray.cli.options import Arguments, JsonOption, with_options_of
from dice_ray.cli.printing import print_commands, print_json, print_report, print_text
from dice_ray.errors import counted, one_line, shortened

if TYPE_CHECKING:
    from analysis.report import Report
    from analysis.verdict.requirement import Ruling
    from dice_ray.tuning.overview import ComparedRun, Experiment


_STATES = {"done": "finished", "killed": "interrupted", "pruned": "stopped early"}
"""What the states of runs are called where MLflow and JSON documents have names of their own."""


@with_options_of("report")
def report(
    given: Arguments,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write to.",
            show_default="report/ in the folder of the sweep or study, or of A_and_B for several; with --json nothing "
            "is written",
        ),
    ] = None,
    in_browser: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
    require: Annotated[
        str | None,
        typer.Option(
            metavar="VERDICT",
            help="For CI: better, not-worse[:MARGIN] or different. Ends with status 0 if a study shows this of its "
            "arms, 1 if not, 3 if it cannot say yet.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the tables of sweeps, studies or comparisons, and write them with the figures as one page."""
    if in_browser and as_json:
        raise typer.BadParameter("--open and --json exclude each other")
    _send_waiting()
    names = given.pop("names")
    made = api.report(*names, **given)
    ruling = None if require is None else api.ruling(made, require)  # first: nothing is written for a wrong one
    _show_report(made, names, out, ruling, in_browser=in_browser, as_json=as_json)
    if ruling is not None:
        raise typer.Exit(ruling.status)


@with_options_of("compare")
def compare(given: Arguments, as_json: JsonOption = False) -> None:
    """Compare runs that other programs made, from a table or MLflow, and write the same report as of a study."""
    name = given.setdefault("name", f"{api.valid_name(Path(given['source']).stem)}-compared")
    made = api.compare(**given).report()
    _show_report(made, [name], as_json=as_json)


def _show_report(
    made: Report,
    names: list[str],
    out: Path | None = None,
    ruling: Ruling | None = None,
    *,
    in_browser: bool = False,
    as_json: bool,
) -> None:
    """Write a report and print it with the ruling, if there is one; or print both as JSON."""
    if as_json:
        tables = []
        for each in made.tables:
            rows = each.data.astype(object).where(each.data.notna(), None).to_dict("records")
            tables.append({"name": each.name, "title": each.title, "rows": rows, "notes": each.notes})
        written = api.write_report(made, names, out) if out else []
        required = {} if ruling is None else {"required": ruling}
        print_json(
            {"title": made.title, "cards": made.cards, "summary": made.summary, "tables": tables, "written": written}
            | required
        )
        return
    try:  # before it is printed: what is piped to `head` ends this process
        page, *others = api.write_report(made, names, out)
    finally:  # also where it cannot be written
        print_report(made)
    typer.echo(f"\nWritten: {page}\nand {len(others)} files with its tables and figures in the same folder")
    if in_browser and not webbrowser.open(page.resolve().as_uri()):
        print_text(
            "This machine has no browser to open the page with: open it on one that has, it needs no other file."
        )
    print_commands("Next:", *(["runs", name] for name in names), ["ui"])
    if ruling is not None:
        print_text("\n".join(["", *map(one_line, ruling.sentences)]), hanging=2)


def runs(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="A sweep or study, or `train` for all runs of `dice-ray train`: its runs are compared.",
            show_default="all experiments are listed",
        ),
    ] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the whole frame of an experiment's runs, for other programs.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the experiments, or compare the runs of one: best first, with the settings that differ between them."""
    if as_csv and (experiment is None or as_json):
        raise typer.BadParameter("--csv needs the name of an experiment, and excludes --json")
    _send_waiting()
    if as_csv and experiment is not None:
        typer.echo(api.Result(experiment, experiment).frame.to_csv(index=False), nl=False)
    elif experiment is None:
        experiments = api.experiments()
        print_json(experiments) if as_json else _print_experiments(experiments)
    else:
        compared = api.runs(experiment)
        print_json(compared) if as_json else _print_runs(compared)


def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on the host.")] = 5000,
    host: Annotated[str, typer.Option(help="Address to serve on; others than this machine need --allow-remote.")] = (
        "127.0.0.1"
    ),
    allow_remote: Annotated[
        bool,
        typer.Option("--allow-remote", help="Let everybody who reaches this machine read, change and delete all runs."),
    ] = False,
) -> None:
    """Serve MLflow's pages on this machine until Ctrl-C, and print the address of the page of experiments."""
    _send_waiting()  # first, as it may create the store
    page = api.ui_page(port, host, allow_remote=allow_remote)
    typer.echo(f"{page} shows the runs; Ctrl-C stops the server.")
    api.ui(port, host, allow_remote=allow_remote)


@with_options_of("export_preset")
def export_preset(given: Arguments, as_json: JsonOption = False) -> None:
    """Write the best configuration of a sweep as a preset for `dice-ray train`."""
    file, preset = given.get("out"), api.export_preset(**given)
    if as_json:
        print_json({"sweep": given["sweep"], **({"preset": preset} if file is None else {"written": file})})
    elif file is None:
        typer.echo(preset, nl=False)
    else:
        typer.echo(f"Written: {file}")


@with_options_of("export_optuna")
def export_optuna(given: Arguments, as_json: JsonOption = False) -> None:
    """Write a sweep as an Optuna study in an SQLite file, which optuna-dashboard opens."""
    num_trials = api.export_optuna(**given)
    if as_json:
        print_json({"sweep": given["sweep"], "written": given["file"], "trials": num_trials})
        return
    typer.echo(f"Written: {given['file']}, with {num_trials} trials")


@with_options_of("predict")
def predict(given: Arguments, as_json: JsonOption = False) -> None:
    """Predict a file with a run's best checkpoint; the output is TSV, CoNLL columns or JSON, depending on the task."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # so that the line of a byte that is not text is named
    file, out = given["file"], given.get("out")
    predictions = api.predict(**given | ({"file": sys.stdin.read().split("\n")} if file == "-" else {}))
    if as_json:
        output = {"predictions": predictions.plain()} if out is None else {"written": out}
        applied = {"threshold": predictions.threshold, "notes": predictions.notes}
        print_json({"run": given["run"], "file": file, **applied, **output})
        return
    for note in (predictions.threshold, *predictions.notes):  # on stderr: stdout is the predictions
        if note is not None:
            print_text(str(note), err=True)
    if out is None:
        typer.echo(predictions.text(), nl=False)
    else:
        typer.echo(f"Written: {out}")


@with_options_of("evaluate")
def evaluate(given: Arguments, as_json: JsonOption = False) -> None:
    """Score a run's best checkpoint, untuned (at the threshold 0.5) and with the decision fitted on dev."""
    scored = api.evaluate(**given)
    run, data = given["run"], given["data"]
    if as_json:
        scores = {"metrics": scored.scores.metrics, "collapsed": scored.scores.collapsed}
        print_json(
            {"run": run, "data": data, "records": len(scored.scores.items), **scores, "not_stored": scored.not_stored}
        )
        return
    metrics = scored.scores.metrics
    typer.echo(f"{run} on {data}, {len(scored.scores.items)} records:")
    used, note = metrics.get("threshold_used"), ""
    if used is not None and used != metrics["threshold"]:
        positives = counted(int(metrics["threshold_support"]), "positive")
        note = f"  (tuned on {positives} of dev, predictions use {used:g})"
    for name, value in metrics.items():
        typer.echo(f"  {name:24} {value:.4f}{note if name == 'threshold' or name.endswith('_tuned') else ''}")
    if scored.scores.collapsed:
        has_decision = any(name.endswith("_tuned") for name in metrics)
        typer.echo(f"  {'Untuned, the' if has_decision else 'The'} model predicts one class only.")
    if scored.not_stored is not None:
        print_text(f"{scored.not_stored}.")


@with_options_of("export")
def export(given: Arguments, as_json: JsonOption = False) -> None:
    """Write a run's best checkpoint and its tokenizer as a plain Hugging Face folder, or push them to the hub."""
    name = api.export(**given)
    folder, push = given.get("folder"), given.get("push")
    if as_json:
        print_json({"run": given["run"], "written": folder, "pushed": push, "loaded_by": name})
        return
    if folder is not None:
        typer.echo(f"Written: {folder}; load it with {name}.from_pretrained")
    if push is not None:
        typer.echo(f'Pushed: {push}; load it with {name}.from_pretrained("{push}")')
    if name == "AutoModel":
        print_text(
            "No Hugging Face class has the heads of this run: heads.safetensors holds them, task.json their classes."
        )
    else:
        typer.echo("The exported model gives the same logits as the run, up to the length that its README.md names.")


def _send_waiting() -> None:
    """Send to MLflow what earlier commands could not send; what still waits is listed on stderr."""
    for file, why in api.send_waiting().items():
        print_text(f"MLflow has not received {file}: {why}", err=True)


def _print_experiments(experiments: list[Experiment]) -> None:
    rows = [
        (
            experiment.name,
            experiment.kind,
            ", ".join(f"{num} {_STATES.get(status.lower(), status.lower())}" for status, num in experiment.runs.items())
            or "none yet",
            "" if experiment.best is None else f"{experiment.metric} {experiment.best:.4f}",
            (experiment.began or "").replace("T", " ")[:16],
        )
        for experiment in experiments
    ]
    header = ("experiment", "kind", "runs", "best", "last started (UTC)")
    typer.echo(table(header, rows))


def _print_runs(compared: list[ComparedRun]) -> None:
    metrics = {run.metric for run in compared if run.metric is not None}
    metric = metrics.pop() if len(metrics) == 1 else None
    rows = []
    for run in compared:
        score = "" if run.score is None else f"{run.score:.4f}" if metric else f"{run.metric} {run.score:.4f}"
        params = run.params if "/" in run.run else without_defaults(run.params)  # of runs alone, nearly all may differ
        written = (f"{path}={shortened(value, 4)}" for path, value in params.items())
        settings = " ".join(each if len(each) <= 60 else f"{each[:60]}..." for each in written)
        state = _STATES.get(run.state, run.state)
        state = f"rerun, {state}" if run.rerun_of else state
        score += f" (mean of {run.reruns} reruns)" if run.reruns else ""
        seed = "" if run.seed is None else str(run.seed)
        rows.append((run.run, state, score, seed, one_line(run.failure or settings)))
    typer.echo(table(("run", "state", metric or "score", "seed", "settings that differ"), rows))
