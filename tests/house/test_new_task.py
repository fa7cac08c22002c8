"""A new task is one file and one entry: it holds the contract, and no other room names a task."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated, Any, Union

import pytest
from pydantic import create_model

from dice_ray.config.checks import check
from dice_ray.config.schema import RunConfig
from dice_ray.data.records import TextRecord
from dice_ray.settings import Choice, branches_of, flat
from dice_ray.tasks import TaskConfig
from dice_ray.tasks.base import TaskBranch
from dice_ray.tasks.text_classification import TextClassificationConfig
from tests.contracts import test_tasks as contract

NAMES = {*branches_of(TaskConfig)} - {"tagging", "mrc_ner"}
"""Without those that are also names of generated data and of a format of files."""


class TopicsConfig(TextClassificationConfig):
    name = "topics"
    records = (TextRecord,)


@pytest.mark.parametrize(
    "holds", [test for test in vars(contract).values() if getattr(test, "pytestmark", None) == [contract.EVERY.mark]]
)
def test_a_task_in_one_file_holds_the_contract(holds: Any) -> None:
    holds(TopicsConfig())


def test_a_task_is_chosen_and_checked_by_its_entry_alone() -> None:
    tasks: Any = Union[*branches_of(TaskConfig).values(), TopicsConfig]
    own = create_model("Own", __base__=RunConfig, task=(Annotated[tasks, Choice()], ...))
    config = own.model_validate(
        {"task": {"topics": {"positive": "a"}}, "data": {"source": {"synthetic": {"kind": "texts"}}}}
    )
    assert isinstance(config.task, TaskBranch)
    assert flat(config)["task.topics.positive"] == "a"
    assert check(config) == []


def test_no_other_room_names_a_task() -> None:
    named = set()
    for file in sorted(Path(__file__).parents[2].glob("dice_ray/**/*.py")):
        texts = {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}
        if texts & NAMES:
            named.add("/".join(file.parts[-2:]))
    assert {name for name in named if not name.startswith("tasks/")} <= {"data/task_of.py", "formats/texts.py"}
