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
        | {"tags.threshold": "untuned"}
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


def drawn_settings(
    dev_ANR: np.ndarray,
    test_ANR: np.ndarray,
    names: Sequence[str] = ("cross_entropy", "dice"),
    *,
    one_seed: bool = False,
    **tags: str,
) -> pd.DataFrame:
    """A study of settings drawn from a space and its cells; a score of NaN is that of a cell that failed.

    With `one_seed`, R must be 1, and each setting has a seed of its own.
    """
    parent = {
        "id": "study",
        "name": "a study",
        "kind": "study",
        "tags.metric": "test/f1",
        "tags.variants_are": "settings",
    }
    rows: list[dict[str, Any]] = [parent | {"tags.baseline": names[0], "tags.command": "dice-ray ablate a_study"}]
    for arm, draw, seed in np.ndindex(test_ANR.shape):
        test = float(test_ANR[arm, draw, seed])
        own = {"arm": names[arm], "seed": draw + 1 if one_seed else seed}
        rows.append(
            {"id": f"{names[arm]}-{draw}-{seed}", "kind": "cell", **own}
            | {"tags.variant": f"{draw + 1:02d}", "state": "failed" if np.isnan(test) else "done"}
            | {"metrics.dev/best_f1": float(dev_ANR[arm, draw, seed]), "metrics.test/f1": test}
            | {f"tags.{name}": value for name, value in tags.items()}
        )
    return pd.DataFrame(rows).astype({"seed": "Int64"})
