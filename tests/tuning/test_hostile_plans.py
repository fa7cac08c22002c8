"""Damaged plans, ledgers and checkpoints: they are read, or refused by an error of dice_ray's."""

from __future__ import annotations

import io
import json
import pickle
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import yaml
from hypothesis import strategies as st

from dice_ray.config.load import values_layer
from dice_ray.errors import RunError
from dice_ray.run.folder import CONFIG, LEDGER, PLAN, TASK, stored_config, stored_digest
from dice_ray.training.checkpoint import BEST, LAST, Checkpoints
from dice_ray.tuning import plan_file, recorder
from dice_ray.tuning.ledger import TrialOutcome, TrialSpec, ledger_in
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from tests.hostile import BOMBS, altered, altered_bytes, hostile

LAYERS = (values_layer("preset", {"task": "text_classification", "data.source": "synthetic"}),)
SPACE = "search_spaces.loss_tuning:loss_tuning"
SWEEP = SweepPlan(name="mine", layers=LAYERS, space=SPACE, trials=3, points=({"loss": "dice"},))
ARMS: dict[str, Any] = {"ce": {"loss": "cross_entropy"}, "dice": {"loss": "dice"}}
STUDY = StudyPlan(name="mine", layers=LAYERS, arms=ARMS, baseline="ce", seeds=(0, 1))
PLANS = [json.loads(json.dumps(plan.model_dump(mode="json"))) for plan in (SWEEP, STUDY)]
EVENTS = [
    TrialSpec(id="0001", params={"loss": "dice"}, seed=0).model_dump(),
    TrialOutcome(id="0001", state="done", curve=((1, 0.5),), metrics=({"dev/f1": 0.5},)).model_dump(),
    TrialSpec(id="0002", params={"loss": "dice"}, seed=0).model_dump(),
    TrialSpec(id="0001-1001", params={"loss": "dice"}, seed=1001, rerun_of="0001").model_dump(),
]
WEIGHTS = {"weight": torch.zeros(2, 3)}
STATE: dict[str, Any] = dict.fromkeys(("optimizer", "scaler", "step", "history", "rng", "tally", "decisions"), 1)


def _run(**files: bytes) -> Path:
    """The folder of a run with these files."""
    run = Path("dice_ray_runs/mine")
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    for name, content in files.items():
        (run / name).write_bytes(content)
    return run


IN_YAML = altered(PLANS).map(lambda plan: yaml.safe_dump(plan, allow_unicode=True).encode(errors="replace"))


@hostile(st.one_of(IN_YAML, altered_bytes([*(yaml.safe_dump(plan).encode() for plan in PLANS), *BOMBS])), num=6_000)
def test_plans(given: bytes) -> None:
    run = _run(**{PLAN: given})
    plan = plan_file.read(run)
    if isinstance(plan, StudyPlan):
        plan.grid()
    else:
        plan.base()
    plan_file.store(plan, run)
    assert plan_file.read(run) == plan


def _lines(events: Any) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in (events if isinstance(events, list) else [events])).encode()


@hostile(st.one_of(altered([EVENTS]).map(_lines), altered_bytes([_lines(EVENTS)])), num=8_000)
def test_ledgers(given: bytes) -> None:
    """What a resumed sweep does: it ranks the trials, and deletes the files of those that it does not keep."""
    run = _run(**{LEDGER: given})
    ledger = ledger_in(run)
    SWEEP.model_copy(update={"seeds": 1}).reruns(ledger)
    recorder._clean_up(SWEEP, ledger, run / "trials", [*ledger.outcomes])
    for spec in ledger.unfinished:
        with suppress(ValueError):
            SWEEP.config(spec)
        ledger.append(TrialOutcome(id=spec.id, state="failed", failure="killed"))
    assert ledger_in(run).outcomes == ledger.outcomes


def _saved(content: Any) -> bytes:
    sink = io.BytesIO()
    torch.save(content, sink)
    return sink.getvalue()


OBJECTS = [pickle.dumps(Path("x"), protocol) for protocol in range(6)] + [_saved({"model": WEIGHTS, "step": Path("x")})]


@hostile(
    st.one_of(
        altered([STATE]).map(lambda state: _saved({"model": WEIGHTS, **state} if isinstance(state, dict) else state)),
        altered_bytes([_saved({"model": WEIGHTS, **STATE}), *OBJECTS]),
    ),
    num=6_000,
)
def test_checkpoints(given: bytes) -> None:
    run = _run(**{LAST: given, BEST: given})
    with suppress(RunError):
        Checkpoints(run).best()
    Checkpoints(run).last(WEIGHTS)


TASK_JSON = {"classes": ["no", "yes"], "facts": [], "data": "ab12"}


@hostile(
    st.one_of(
        altered([TASK_JSON]).map(lambda task: json.dumps(task).encode()),
        altered_bytes([json.dumps(TASK_JSON).encode()]),
    ),
    num=3_000,
)
def test_files_of_a_run(given: bytes) -> None:
    run = _run(**{CONFIG: given, TASK: given})
    with suppress(ValueError):
        stored_config(run)
    stored_digest(run)
