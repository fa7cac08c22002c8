"""What is wrong with runs that other programs made, in sentences: a comparison of them shows less than it seems to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pandas as pd

from analysis.frames import all_params
from dice_ray.errors import counted
from dice_ray.tracking import schema

MISSING: Final = ("", "nan", "na", "n/a", "none", "null", "-", "<na>")
"""How tables write that there is no value, in lower case."""
_IGNORED: Final = re.compile(r"(.*[_./ ])?(id|uuid|name|dir|path|file|host|user|time|date|start|end|version|notes?)")
"""Settings that may differ between arms: they name a run, or say where and when it ran."""
_NUM_NAMED: Final = 5


def differing(cells: pd.DataFrame) -> str:
    """The settings that differ between arms besides what is compared; empty for none.

    A setting that only one arm has is its own, as gamma is of one loss; and one of a new value in most runs names runs.
    """
    found = []
    for name, stored in all_params(cells).dropna(axis="columns", how="all").items():
        values = stored.mask(stored.str.lower().isin(MISSING)).dropna()
        by_arm = {str(arm): set(of) for arm, of in values.groupby(cells["arm"])}
        is_same = len({frozenset(of) for of in by_arm.values()}) == 1
        if len(by_arm) < 2 or is_same or _IGNORED.fullmatch(str(name).lower()):
            continue
        is_label = all(arm.lower() in value.lower() for arm, of in by_arm.items() for value in of)
        if not is_label and 2 * values.nunique() <= len(values):
            found.append(str(name))
    return _listed(found)


def faults(cells: pd.DataFrame, metric: str, baseline: str, names: pd.Series[Any], place: str) -> Iterator[str]:
    """What is wrong with the runs of one place."""
    on = f"On {place}: " if place else ""
    score = cells[schema.metric_column(metric)]
    if len(lost := cells[score.isna()]):
        by_arm = _listed(f"{num} of {arm}" for arm, num in lost["arm"].value_counts(sort=False).items())
        yield f"{on}Failed, not ended or without the score: {counted(len(lost), 'run')} ({by_arm})."
    scored = cells[score.notna()]
    repeated = scored[scored.duplicated(["arm", "seed"], keep=False)]
    if len(repeated):
        pairs = [f"{arm} with seed {names[where.index[0]]}" for (arm, _), where in repeated.groupby(["arm", "seed"])]
        varies = all_params(repeated).groupby([repeated["arm"], repeated["seed"]]).nunique().gt(1).any()
        differ = [name for name in map(str, varies[varies].index) if not _IGNORED.fullmatch(name.lower())]
        advice = f" They differ in {_listed(differ)}: --by or --where separates them." if differ else ""
        yield f"{on}Repeated: {_listed(pairs)}; of each the latest run with a score counts.{advice}"
    seeds = {str(arm): set(of) for arm, of in scored.groupby("arm")["seed"]}
    alone = [arm for arm, own in seeds.items() if arm != baseline and not own & seeds.get(baseline, set())]
    if alone:
        yield f"{on}Not paired, since they share no seed with {baseline}: {_listed(alone)}."


def _listed(names: Iterable[object]) -> str:
    """Names in a sentence, the first five of them."""
    given = [*map(str, names)]
    more = len(given) - _NUM_NAMED
    return ", ".join(given[:_NUM_NAMED]) + (f" and {more} more" if more > 0 else "")
