"""The paper's arms are the paper's formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from dice_ray.losses import LossConfig
from dice_ray.losses.base import LossBranch
from dice_ray.settings import flat, nest
from dice_ray.terms import TermFacts
from search_spaces.arms import ARMS

RNG = np.random.default_rng(0)
Z = 3 * RNG.standard_normal(50)
P = 1 / (1 + np.exp(-Z))
Y = (RNG.random(50) < 0.3).astype(float)
U = P * (1 - P)
V = P * (1 - P) ** 0.01
FORMULAS = {
    "paper_dl": np.mean(1 - (2 * P * Y + 1) / (P**2 + Y**2 + 1)),
    "paper_tl": np.mean(1 - (P * Y + 1) / (P * Y + 0.5 * P * (1 - Y) + 0.5 * (1 - P) * Y + 1)),
    "paper_dsc": np.mean(1 - (2 * U * Y + 1) / (U + Y + 1)),
    "authors_code": 1 - (2 * np.sum(V * Y) + 1) / (np.sum(V**2) + np.sum(Y**2) + 1),
}


def config_of(name: str) -> LossBranch:
    config: LossBranch = TypeAdapter(LossConfig).validate_python(nest(ARMS[name])["loss"])
    return config


@pytest.mark.parametrize("name", ARMS)
def test_an_arm_is_its_formula(name: str) -> None:
    facts = TermFacts("label", "sigmoid", ("no", "yes"), (35, 15), 0)
    loss = config_of(name).build(facts)
    assert loss(torch.tensor(Z), torch.tensor(Y).long()).item() == pytest.approx(FORMULAS[name])


@pytest.mark.parametrize("name", ARMS)
def test_an_arm_writes_what_it_runs(name: str) -> None:
    config = config_of(name)
    resolved = {"loss": config.name} | {f"loss.{config.name}.{path}": value for path, value in flat(config).items()}
    assert ARMS[name].items() <= resolved.items()
