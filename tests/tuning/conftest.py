"""A preset that trains in a moment, and Ray imported as dice_ray wants it."""

from __future__ import annotations

import pytest

from dice_ray.config.load import Layer, values_layer
from dice_ray.run import cluster

cluster.prepare("local")


@pytest.fixture(scope="session")
def layers() -> tuple[Layer, ...]:
    values = {"task": "sentence_pair", "data.source": "synthetic", "data.source.synthetic.size": 200}
    quick = {"training.epochs": 3, "training.lr": 1e-3, "training.batch_size": 32}
    return (values_layer("preset", values | quick),)
