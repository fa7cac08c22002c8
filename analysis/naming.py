"""Names and titles of a study's tables and figures, one for each data set, encoder and variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

ItemT = TypeVar("ItemT")


def named(name: str, items: Sequence[ItemT]) -> list[tuple[str, ItemT]]:
    """Each item with the name of its table or figure, which has a number if there are several.

    >>> named("forest", ["mrpc"]), named("forest", ["mrpc", "qqp"])
    ([('forest', 'mrpc')], [('forest_1', 'mrpc'), ('forest_2', 'qqp')])
    """
    return [(f"{name}_{number}" if len(items) > 1 else name, item) for number, item in enumerate(items, start=1)]


def on_place(place: str) -> str:
    """The end of a title: ` on mrpc`; empty for a study that is on one place.

    >>> "Training curves" + on_place("mrpc"), "Training curves" + on_place("")
    ('Training curves on mrpc', 'Training curves')
    """
    return f" on {place}" if place else ""
