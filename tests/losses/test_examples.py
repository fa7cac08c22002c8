"""The examples in the docstrings of the losses are executed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import dice_ray.losses

MODULES = [f"dice_ray.losses.{module.name}" for module in pkgutil.iter_modules(dice_ray.losses.__path__)]


@pytest.mark.parametrize("name", [name for name in MODULES if name != "dice_ray.losses.hf"])
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_loss_has_an_example() -> None:
    losses = [getattr(dice_ray.losses, name) for name in dice_ray.losses.__all__ if name.endswith("Loss")]
    assert len(losses) > 7
    assert [loss.__name__ for loss in losses if ">>>" not in (loss.__doc__ or "")] == []


def test_the_example_of_the_trainer() -> None:
    module = importlib.import_module("dice_ray.losses.hf")
    (example,) = (test for test in doctest.DocTestFinder().find(module) if test.examples)
    printed: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=printed.append)
    assert results.attempted > 10
    assert results.failed == 0, "".join(printed)
