"""The cells of a study: its variants, which cells were asked for, and the identity of each.

The identity is a digest of the configuration that decides a cell's numbers, so a study is resumed and extended without
running a cell twice, whatever its arms are called and wherever it runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from dice_ray.config.schema import NEUTRAL_SECTIONS
from dice_ray.errors import Problem
from dice_ray.settings import Flat
from dice_ray.tuning.addresses import StoredLayer, StoredValues, address_paths
from dice_ray.tuning.ledger import TrialSpec
from dice_ray.tuning.plan import LeftOutArm

AGAIN = "control_again"
"""The arm that is the baseline with other seeds."""
OTHER_SEEDS = 10_000
"""What its seeds are larger by: no study has so many, and those from 1,001 on are of the reruns of sweeps."""
RESULTS_VERSION = 3
"""Raised when the numbers of a run change: cells of another version run again."""
VariantsAre: TypeAlias = Literal["data", "settings"]
"""What the variants of a study are: data sets, encoders or altered training sets, each with a result of its own; or
settings drawn from a search space, which all arms are tuned by."""


class Variant(BaseModel):
    """A data set, encoder, altered training set or drawn setting that all arms of a study are run on.

    Attributes:
        layers: The layers below the arms, in place of the study's own.
        digest: Digest of the data; empty before they are read.
        seed: The only seed that its cells are run with, of a drawn setting; None for all seeds of the study.
        arms: What was drawn from the own space of an arm, by its name: settings above those of the arm.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    layers: tuple[StoredLayer, ...]
    digest: str = ""
    seed: int | None = None
    arms: dict[str, StoredValues] = Field(default_factory=dict)


class Asked(BaseModel):
    """The cells that were asked for last: these arms by these seeds, on these variants where there are any."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    variants: tuple[str, ...] = ()

    def __contains__(self, cell: TrialSpec) -> bool:
        on_variant = cell.variant is None or cell.variant in self.variants
        return on_variant and cell.arm in self.arms and cell.seed % OTHER_SEEDS in self.seeds


@dataclass(frozen=True)
class Grid:
    """The cells of a study, all of a seed before the next seed, and the arms that are left out of a variant."""

    cells: list[TrialSpec]
    left_out: list[LeftOutArm]


def identity(values: Flat, code: Mapping[str, str], content: str) -> str:
    """The id of a cell.

    Args:
        values: Its settings that are not defaults, by path.
        code: The digest of the user's own code by its address: the source decides, not where its file lies.
        content: The digests of the data and the encoder.
    """
    decisive = {path: value for path, value in values.items() if path.partition(".")[0] not in NEUTRAL_SECTIONS}
    for path in address_paths():
        if (address := values.get(path, "")) in code:
            decisive[path] = f"{address.rpartition(':')[2]} {code[address]}"
    # In half precision one more: since version 3, heads compute in fp32 there too.
    version = RESULTS_VERSION + (values.get("training.precision") in ("bf16", "fp16"))
    parts = json.dumps([decisive, content, version], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()[:12]


def problems_of_values(arm: str, values: Flat) -> Iterator[Problem]:
    """Values of an arm that cannot be stored in a plan."""
    for path, value in values.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            yield Problem(path, "must be a number, text, list or mapping of such", f"{value!r:.60}", f"arm {arm}")
