"""The origin of each sweep and study in a report: its plan, machine and versions, and the commands that rerun it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from analysis.frames import Findings, metric_values, of_kind, tag_values
from dice_ray.errors import counted
from dice_ray.tracking import schema
from dice_ray.tracking.schema import PLAN_FILE

_VERSION: Final = schema.tag_column(f"{schema.VERSION}.")


@dataclass(frozen=True)
class Origin:
    """What is needed to rerun a sweep or study.

    Attributes:
        name: The name of the sweep or study.
        plan: The text of its plan file, which `dice-ray resume` reads; None if it was not stored.
        facts: Other information by its label: start, training time, machine, versions.
        command: That makes a comparison of runs that other programs made again; it has no plan.
    """

    name: str
    plan: str | None
    facts: dict[str, str]
    command: str = ""

    @property
    def file(self) -> str:
        """The file name of the plan in the folder of the report."""
        stem = re.sub(r"[^\w.-]", "_", self.name)  # MLflow holds any name, also one that is a path to elsewhere
        return f"{stem[:200]}.{PLAN_FILE}"

    @property
    def commands(self) -> tuple[str, ...]:
        """Shell commands that rerun it, in an empty folder with a copy of the plan; empty without the plan."""
        if self.plan is None:
            return (self.command,) if self.command else ()
        name = shlex.quote(self.name)
        return (
            # The folder that `dice-ray resume` reads; where the variable is the URL of a store, plans are in the other.
            f"runs=${{DICE_RAY_RUNS##*://*}}; runs=${{runs:-dice_ray_runs}}/{name}",
            f'mkdir -p "$runs" && cp {shlex.quote(self.file)} "$runs/{PLAN_FILE}"',
            f"dice-ray resume {name}",
            f"dice-ray report {name}",
        )


def origins(findings: Findings) -> tuple[Origin, ...]:
    """The origin of each sweep and study."""
    frame = findings.frame
    parents = of_kind(frame, "sweep", "study")
    plans = findings.texts(parents, PLAN_FILE)
    made = []
    for _, parent in parents.iterrows():
        id_, source = str(parent["id"]), parent.get(schema.tag_column(schema.COMPARED))
        if isinstance(source, str):  # runs that other programs made
            made.append(Origin(id_, None, {"runs": source}, str(parent[schema.tag_column(schema.COMMAND)])))
        else:
            made.append(Origin(id_, plans.get(id_), _facts(parent, frame[frame["parent"] == id_])))
    return tuple(made)


def _facts(parent: pd.Series[Any], runs: pd.DataFrame) -> dict[str, str]:
    hours = metric_values(runs, "train/seconds").astype(float).sum() / 3600
    versions = sorted(str(name) for name in runs if str(name).startswith(_VERSION))
    machines = [tag_values(runs, tag) for tag in (schema.CPU, schema.CORES, schema.GPU)]
    facts = {
        "started": f"{parent['start']:%Y-%m-%d %H:%M} UTC",
        "training time": f"{hours:.2f} hours in {counted(len(runs), 'run')}",
        "data": _joined(tag_values(runs, schema.DATA)),
        "data digest": _joined(pd.Series([parent.get(schema.param_column("digest"))])),
        "encoder": _joined(tag_values(runs, schema.ENCODER)),
        "results version": _joined(pd.Series([parent.get(schema.tag_column(schema.RESULTS_VERSION))])),
        "machine": "; ".join(filter(None, map(_joined, machines))),
        "versions": ", ".join(
            f"{name.removeprefix(_VERSION)} {_joined(runs[name])}" for name in versions if _joined(runs[name])
        ),
    }
    return {label: text for label, text in facts.items() if text}


def _joined(values: pd.Series[Any]) -> str:
    """The distinct values, joined by "and"."""
    return " and ".join(dict.fromkeys(str(value) for value in values.dropna()))
