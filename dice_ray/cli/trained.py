"""Commands on a trained run: predict, evaluate, export."""

from __future__ import annotations

import io
import sys

import typer

from dice_ray import api
from dice_ray.cli.options import Arguments, JsonOption, with_options_of
from dice_ray.cli.printing import print_json, print_text


@with_options_of("predict")
def predict(given: Arguments, as_json: JsonOption = False) -> None:
    """Predict a file with a run's best checkpoint; the output is TSV, CoNLL columns or JSON, depending on the task."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # so that the line of a byte that is not text is named
    file, out = given["file"], given.get("out")
    predictions = api.predict(**given | ({"file": sys.stdin.read().split("\n")} if file == "-" else {}))
    if as_json:
        output = {"predictions": predictions.plain()} if out is None else {"written": out}
        print_json({"run": given["run"], "file": file, "threshold": predictions.threshold, **output})
        return
    if predictions.threshold is not None:  # on stderr: stdout is the predictions
        print_text(str(predictions.threshold), err=True)
    if out is None:
        typer.echo(predictions.text(), nl=False)
    else:
        typer.echo(f"Written: {out}")


@with_options_of("evaluate")
def evaluate(given: Arguments, as_json: JsonOption = False) -> None:
    """Score a run's best checkpoint, at the threshold 0.5 and at the one tuned on dev."""
    scored = api.evaluate(**given)
    run, data = given["run"], given["data"]
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
