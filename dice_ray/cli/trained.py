"""Commands on a trained run: predict, evaluate, export."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from dice_ray.cli.options import JsonOption
from dice_ray.cli.printing import print_json, print_text

STDIN = "-"
RunArgument = Annotated[
    str,
    typer.Argument(
        help="Name of a run, SWEEP/TRIAL, STUDY/ARM/SEED, STUDY/VARIANT/ARM/SEED, or the path of a run's folder."
    ),
]


def predict(
    run: RunArgument,
    file: Annotated[
        str,
        typer.Argument(
            help="File in the format of the run's data, or its URL, labels not needed; or - for the lines of stdin, "
            "each a text, a pair with a tab between, or words."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="File to write.", show_default="the predictions are printed")] = None,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="auto|tuned|NUMBER",
            help="Threshold above which a record is positive: the one tuned on dev, or a number; `auto` is the tuned "
            "one if the run's score is an F1 or a ranking, and dev shows that its F1 is higher; else 0.5.",
        ),
    ] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Predict a file with a run's best checkpoint; the output is TSV, CoNLL columns or JSON, depending on the task."""
    from dice_ray import api

    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # so that the line of a byte that is not text is named
    lines = sys.stdin.read().split("\n") if file == STDIN else None
    predictions = api.predict(run, file if lines is None else lines, threshold=threshold, out=out)
    if as_json:
        output = {"predictions": predictions.plain()} if out is None else {"written": out}
        print_json({"run": run, "file": file, "threshold": predictions.threshold, **output})
        return
    if predictions.threshold is not None:  # on stderr: stdout is the predictions
        print_text(str(predictions.threshold), err=True)
    if out is None:
        typer.echo(predictions.text(), nl=False)
    else:
        typer.echo(f"Written: {out}")


def evaluate(
    run: RunArgument,
    data: Annotated[str, typer.Argument(help="dev, test, or a file with labels or its URL.")] = "test",
    items: Annotated[
        Path | None, typer.Option(help="Also write the counts of each record (id, tp, fp, fn) to this CSV file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score a run's best checkpoint, at the threshold 0.5 and at the one tuned on dev."""
    from dice_ray import api

    scored = api.evaluate(run, data, items=items)
    if as_json:
        scores = {"metrics": scored.scores.metrics, "collapsed": scored.scores.collapsed}
        print_json(
            {"run": run, "data": data, "records": len(scored.scores.items), **scores, "not_stored": scored.not_stored}
        )
        return
    typer.echo(f"{run} on {data}, {len(scored.scores.items)} records:")
    for name, value in scored.scores.metrics.items():
        typer.echo(f"  {name:24} {value:.4f}")
    if scored.scores.collapsed:
        typer.echo("  The model predicts one class only.")
    if scored.not_stored is not None:
        print_text(f"{scored.not_stored}.")


def export(
    run: RunArgument,
    folder: Annotated[
        Path | None, typer.Argument(help="New or empty folder to write to; it may be left out with --push.")
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(
            metavar="ORG/NAME",
            help="Upload the model to this repository of the Hugging Face hub; a new one is private. It needs a token: "
            "`hf auth login`, or HF_TOKEN.",
        ),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Make the new repository of --push public.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a run's best checkpoint and its tokenizer as a plain Hugging Face folder, or push them to the hub."""
    from dice_ray import api

    name = api.export(run, folder, push=push, public=public)
    if as_json:
        print_json({"run": run, "written": folder, "pushed": push, "loaded_by": name})
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
