"""The list of faults does not rot: each changes one place of the product, and its tests exist."""

from __future__ import annotations

import pytest

from tests.house.tree import REPOSITORY
from tests.mutations.faults import FAULTS, Fault

ROOMS = {
    *("settings.py", "terms.py", "tracking", "losses", "data", "metrics", "models", "tasks", "training", "config"),
    *("run", "tuning", "api", "cli"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_changes_one_place_and_names_tests_that_exist(fault: Fault) -> None:
    text = (REPOSITORY / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    assert fault.new != fault.old
    for test in fault.tests.split():
        file, _, name = test.partition("::")
        assert (REPOSITORY / "tests" / file).exists()
        assert not name or f"def {name}(" in (REPOSITORY / "tests" / file).read_text(encoding="utf-8")


def test_every_room_has_faults() -> None:
    parts = [fault.file.split("/") for fault in FAULTS]
    assert {path[1] for path in parts if path[0] == "dice_ray"} == ROOMS
    assert {path[0] for path in parts} == {"dice_ray", "search_spaces", "analysis"}
