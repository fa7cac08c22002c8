"""Commands on a trained run: predict, evaluate, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dice_ray.cli.options import JsonOption
from dice_ray.cli.printing import print_json

RunArgument = Annotated[
    str, typer.Argument(help="A run's name, SWEEP/TRIAL, STUDY/ARM/SEED, or the path of a run's folder.")
]


def predict(
    run: RunArgument,
    file: Annotated[Path, typer.Argument(help="Read as the run's data are; labels may be missing.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; else it is printed.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict a file with a run's best checkpoint, in the format of its task: TSV, CoNLL columns or JSON."""
    from dice_ray import api

    found = api.predict(run, file)
    if out is not None:
        out.write_text(found.text(), encoding="utf-8")
    if as_json:
        told = {"predictions": found.plain()} if out is None else {"written": out}
        print_json({"run": run, "file": file, **told})
    elif out is None:
        typer.echo(found.text(), nl=False)
    else:
        typer.echo(f"Written: {out}")


def evaluate(
    run: RunArgument,
    data: Annotated[str, typer.Argument(help="dev, test, or a file with labels.")] = "test",
    items: Annotated[
        Path | None, typer.Option(help="Write the counts of each record here: id, tp, fp, fn, as CSV.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score a run's best checkpoint, at a half and at the threshold that dev decided."""
    from dice_ray import api

    scored = api.evaluate(run, data, items=items)
    if as_json:
        scores = {"metrics": scored.scores.metrics, "collapsed": scored.scores.collapsed}
        print_json({"run": run, "data": data, "records": len(scored.scores.items), **scores, "untold": scored.untold})
        return
    typer.echo(f"{run} on {data}, {len(scored.scores.items)} records:")
    for name, value in scored.scores.metrics.items():
        typer.echo(f"  {name:24} {value:.4f}")
    if scored.scores.collapsed:
        typer.echo("  It predicts one class only.")
    if scored.untold is not None:
        typer.echo(f"{scored.untold}.")


def export(
    run: RunArgument,
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    as_json: JsonOption = False,
) -> None:
    """Write a run's best checkpoint as a plain Hugging Face folder, with its tokenizer."""
    from dice_ray import api

    name = api.export(run, folder)
    if as_json:
        print_json({"run": run, "written": folder, "loaded_by": name})
        return
    typer.echo(f"Written: {folder}, to be loaded by {name}.from_pretrained")
    if name == "AutoModel":
        typer.echo("No stock class has heads like this run's: heads.safetensors holds them, task.json their classes.")
    else:
        typer.echo("It gives the logits of the run.")
