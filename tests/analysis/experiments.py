"""Experiments that together have every table and figure of a report, with names that no format may take for markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from analysis.frames import Findings
from dice_ray.tracking import schema
from tests.analysis import frames
from tests.analysis.cells import drawn_settings

NASTY = "$x_1$ <script>alert(1)</script> & 50 %|*"
_METRICS = {
    "f1": 0.0,
    "precision": 0.1,
    "recall": -0.1,
    "f1_tuned": 0.05,
    "pr_auc": 0.08,
    "brier": -0.4,
    "threshold": -0.2,
}


def _cells(arms: Iterable[str], **columns: Any) -> list[dict[str, Any]]:
    """Cells of a task of two classes, each arm a little better than the one before."""
    return [
        {"arm": arm, "seed": seed, "params.loss": arm}
        | {f"metrics.test/{name}": 0.5 + place / 10 + seed / 100 + more for name, more in _METRICS.items()}
        | columns
        for place, arm in enumerate(arms)
        for seed in range(6)
    ]


def _with_files(findings: Findings) -> Findings:
    """The study with all files of its cells."""
    ids = findings.frame.loc[findings.frame["kind"] == "cell", "id"]
    items = ["id,tp,fp,fn,label_probability,calibrated_probability", "a,1,0,0,0.9,0.8", "b,0,1,0,0.4,0.5"]
    items += ["c,0,0,0,0.7,0.6", f'"{NASTY}",0,0,1,0.1,0.2']
    files = {
        f"test/{schema.ITEMS_FILE}": dict.fromkeys(ids, "\n".join(items)),
        f"test/{schema.CLASSES_FILE}": dict.fromkeys(ids, f'class,support,tp,fp,fn\nno,2,1,1,1\n"{NASTY}",2,1,1,1'),
        f"test/{schema.TEXTS_FILE}": dict.fromkeys(ids, f'id,text\nb,"{NASTY}"'),
        schema.LEFT_OUT_FILE: {"study": json.dumps([{"variant": None, "arm": NASTY, "reason": NASTY}])},
    }

    def texts(runs: Any, file: str) -> Mapping[str, str]:
        return {id_: files[file][id_] for id_ in runs["id"] if id_ in files.get(file, {})}

    points = frames.points(*((id_, step, "dev/f1", step / 10) for id_ in ids for step in (1, 2)))
    return replace(findings, texts=texts, read_curves=lambda: points)


def _trials() -> list[dict[str, Any]]:
    draw, trials = np.random.default_rng(0), []
    for number in range(50):
        loss = ("dice", NASTY)[number % 2]
        params = {"training.lr": 10 ** -draw.uniform(3, 6), "schedule": NASTY if draw.random() < 0.5 else "linear"}
        params |= {"loss.dice.gamma": draw.random()} if loss == "dice" else {}
        trial = {f"params.{path}": value for path, value in params.items()} | {"params.loss": loss}
        scores = {"metrics.dev/best_f1": draw.random(), "metrics.dev/f1": 0.5, "metrics.train/seconds": number}
        states = {"state": ("done", "pruned", "failed")[number % 5 // 2], "tags.failure": NASTY}
        if number == 49:
            trial["params.loss"] = None  # deleted in MLflow
        trials.append(trial | scores | states | {"tags.searched": " ".join(["loss", *params])})
    return trials


@cache
def experiments() -> dict[str, Findings]:
    """By what each is about."""
    paper = {"tags.data": "mrpc", "tags.published": "mrpc", "params.tracking.text": "true", "tags.encoder": NASTY}
    of_paper = _cells(["cross_entropy", "self_adjusting_dice", NASTY], **paper, **{"metrics.test/constant_f1": 0.4})
    of_paper[-1] |= {"state": "failed", "tags.failure": NASTY}
    of_paper += [cell | {"arm": "none", "tags.collapsed": "true"} for cell in of_paper[:3]]
    ratio = "params.data.imbalance.ratio.negatives"
    ratios = [_cells(["plain", NASTY], **{ratio: num, "tags.variant": f"1:{num}"}) for num in (1, 10, 100)]
    tversky = "params.loss.tversky"
    alphas = [
        cell | {f"{tversky}.alpha": alpha, f"{tversky}.beta": 1 - alpha, f"{tversky}.scope": NASTY}
        for alpha in (0.25, 0.5, 0.75)
        for cell in _cells([f"{alpha}"])
    ]
    data_sets = [_cells(["plain", NASTY], **{"tags.data": f"{NASTY} {number}"}) for number in range(6)]
    scores = np.random.default_rng(0).uniform(0.4, 0.6, (2, 5, 3))
    objectives = frames.sweep(_trials())
    of_sweep = objectives.frame["kind"].map({"sweep": "dev/f1 -train/seconds"})
    run = {"kind": "run", "tags.metric": "dev/f1", "tags.data": NASTY, "arm": "a", "seed": 1, "metrics.dev/f1": 0.5}
    points = frames.points(*((f"{number:04d}", step, "dev/f1", 0.5) for number in (1, 2) for step in (1, 2)))
    return {
        "paper": _with_files(frames.study(of_paper, baseline="cross_entropy")),
        "ratios": frames.study([cell for cells in ratios for cell in cells]),
        "alphas": frames.study(alphas, baseline="0.5"),
        "data sets": frames.study([cell for cells in data_sets for cell in cells]),
        "drawn settings": Findings(drawn_settings(scores, scores[::-1], ("plain", NASTY)).assign(parent="study")),
        "sweep": frames.sweep(_trials(), curves=points),
        "objectives": replace(objectives, frame=objectives.frame.assign(**{"tags.objectives": of_sweep})),
        "runs": frames.study([run]),
    }
