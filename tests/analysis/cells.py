"""Cells of a study as the reader gives them, made without a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd


def study(
    arms: Mapping[str, Sequence[float]], metric: str = "test/f1", baseline: str = "cross_entropy", **tags: str
) -> pd.DataFrame:
    """A study and its cells: the scores of each arm by seed, NaN for a cell that failed."""
    rows: list[dict[str, Any]] = [
        {"id": "study", "name": "a study", "kind": "study", "tags.metric": metric, "tags.baseline": baseline}
    ]
    for arm, scores in arms.items():
        for seed, score in enumerate(scores):
            of_cell = {"id": f"{arm}-{seed}", "kind": "cell", "arm": arm, "seed": seed, "params.loss": arm}
            state = "failed" if np.isnan(score) else "done"
            rows.append(
                of_cell | {"state": state, f"metrics.{metric}": score} | {f"tags.{n}": v for n, v in tags.items()}
            )
    return pd.DataFrame(rows).astype({"seed": "Int64"})


def items(rights: Mapping[str, np.ndarray]) -> dict[str, str]:
    """`test/items.csv` of cells by their id: which items of one of several labels were right."""
    return {
        id_: "id,tp,fp,fn\n" + "".join(f"i{n},{int(ok)},{int(not ok)},{int(not ok)}\n" for n, ok in enumerate(right))
        for id_, right in rights.items()
    }
