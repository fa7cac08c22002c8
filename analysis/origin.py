"""Where the runs of an experiment came from: what was run, on what, and how it is run again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from analysis.found import Found
from analysis.scores import column

PLAN: Final = "plan.yaml"
VERSION: Final = "tags.version."


@dataclass(frozen=True)
class Origin:
    """What it takes to run it again.

    Attributes:
        name: Of the sweep or study.
        plan: The whole of it, as `dice-ray tune --resume` reads it; none where it was not stored.
        facts: What else is known, by a word for it: begin, hours of work, machine, versions.
    """

    name: str
    plan: str | None
    facts: dict[str, str]

    @property
    def file(self) -> str:
        """Where the report keeps the plan."""
        return f"{self.name}.{PLAN}"

    @property
    def commands(self) -> tuple[str, ...]:
        """What runs it again, in an empty folder that the plan was copied to; none without the plan."""
        if self.plan is None:
            return ()
        folder, name = shlex.quote(f"dice_ray_runs/{self.name}"), shlex.quote(self.name)
        return (
            f"mkdir -p {folder} && cp {shlex.quote(self.file)} {folder}/{PLAN}",
            f"dice-ray tune --resume {name}",
            f"dice-ray report {name}",
        )


def origins(found: Found) -> tuple[Origin, ...]:
    """Of each sweep and study that was found."""
    frame = found.frame
    parents = frame[frame["kind"].isin(["sweep", "study"])]
    plans = found.texts(parents, PLAN)
    return tuple(
        Origin(str(parent["id"]), plans.get(str(parent["id"])), _facts(parent, frame[frame["parent"] == parent["id"]]))
        for _, parent in parents.iterrows()
    )


def _facts(parent: pd.Series[Any], runs: pd.DataFrame) -> dict[str, str]:
    hours = (runs["end"] - runs["start"]).dt.total_seconds().sum() / 3600
    versions = sorted(str(name) for name in runs if str(name).startswith(VERSION))
    machines = [column(runs, f"tags.{name}") for name in ("cpu", "cores", "gpu")]
    found = {
        "begun": f"{parent['start']:%Y-%m-%d %H:%M} UTC",
        "work": f"{hours:.2f} hours in {len(runs)} runs",
        "data": _each(column(runs, "tags.data")),
        "digest of the data": _each(pd.Series([parent.get("params.digest")])),
        "encoder": _each(column(runs, "tags.encoder")),
        "version of the numbers": _each(pd.Series([parent.get("tags.results_version")])),
        "machine": "; ".join(filter(None, map(_each, machines))),
        "versions": ", ".join(
            f"{name.removeprefix(VERSION)} {_each(runs[name])}" for name in versions if _each(runs[name])
        ),
    }
    return {word: text for word, text in found.items() if text}


def _each(values: pd.Series[Any]) -> str:
    """The different values, joined."""
    return " and ".join(dict.fromkeys(str(value) for value in values.dropna()))
