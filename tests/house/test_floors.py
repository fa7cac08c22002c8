"""The floors of the house, from its real imports: few of them, and no circle between rooms or inside one."""

from __future__ import annotations

from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.house.imports import own_imports

MAX_FLOORS = 10


def room_of(module: str) -> str:
    """A first-level module or package of dice_ray, or another package as a whole; dice_ray's `__init__` is its own."""
    package, *inside = module.split(".")
    return inside[0] if package == "dice_ray" and inside else package


def rooms_of(imports: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """For each room, the rooms that it imports."""
    rooms: dict[str, set[str]] = {room_of(module): set() for module in imports}
    for module, imported in imports.items():
        rooms[room_of(module)] |= {room_of(name) for name in imported} - {room_of(module)}
    return rooms


def floors_of(rooms: Mapping[str, Set[str]]) -> list[list[str]]:
    """The rooms of each floor, the lowest first: a room stands one floor above the highest that it imports."""
    floor: dict[str, int] = {}
    for room in TopologicalSorter(rooms).static_order():
        floor[room] = 1 + max((floor[below] for below in rooms[room]), default=-1)
    return [sorted(room for room in floor if floor[room] == number) for number in range(max(floor.values()) + 1)]


def circle_in(imports: Mapping[str, Set[str]]) -> list[str]:
    """A circle of imports; empty where there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_rooms_import_each_other_in_a_circle() -> None:
    rooms = rooms_of(own_imports())
    assert len(rooms) > 15
    assert circle_in(rooms) == []


def test_the_house_has_few_floors() -> None:
    floors = floors_of(rooms_of(own_imports()))
    shown = "\n".join(f"{number:3} {' '.join(rooms)}" for number, rooms in reversed([*enumerate(floors, start=1)]))
    assert len(floors) <= MAX_FLOORS, (
        f"there must be at most {MAX_FLOORS} floors, and there are {len(floors)}:\n{shown}"
    )


@pytest.mark.parametrize("room", sorted(rooms_of(own_imports())))
def test_no_modules_of_a_room_import_each_other_in_a_circle(room: str) -> None:
    imports = own_imports()
    inside = {module for module in imports if room_of(module) == room}
    assert circle_in({module: imports[module] & inside for module in inside}) == []


def test_floors_and_circles_are_seen() -> None:
    imports = {"dice_ray.cli.app": {"dice_ray.api"}, "dice_ray.api": {"analysis.report"}, "analysis.report": set[str]()}
    assert floors_of(rooms_of(imports)) == [["analysis"], ["api"], ["cli"]]
    assert circle_in(rooms_of(imports)) == []
    imports["analysis.report"] = {"dice_ray.cli.app"}
    assert sorted(set(circle_in(rooms_of(imports)))) == ["analysis", "api", "cli"]
