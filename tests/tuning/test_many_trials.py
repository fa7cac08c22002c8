"""A driver does the same for each trial, counted in calls, however many have ended; its files and threads stay few."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import pytest

from dice_ray.config.load import Layer, as_yaml, resolve
from dice_ray.run.driver import Driver
from dice_ray.tracking.writer import Writer
from dice_ray.tuning import ranking, recorder, runner
from dice_ray.tuning.ledger import History, Ledger, TrialSpec
from dice_ray.tuning.recorder import Recorder
from dice_ray.tuning.search import SweepSearcher
from dice_ray.tuning.sweep import SweepPlan
from tests.benchmarks.scale import RATE, Marks, no_work, with_ended
from tests.tuning.trials import note


def num_calls(run: Callable[[], Any]) -> int:
    """How many functions a call of this one calls in the end, those that are written in C included."""
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def num_instructions(run: Callable[[], Any]) -> int:
    """How many instructions of Python a call takes in the end, also those of loops that call nothing."""
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def ledger_with(history: History, path: Path) -> Ledger:
    """A ledger of these trials, which is not written."""
    ledger = Ledger(path)
    for spec in history.specs.values():
        ledger._add(spec)
        ledger._add(history.outcomes[spec.id])
    return ledger


@pytest.fixture
def plan(layers: tuple[Layer, ...]) -> SweepPlan:
    return SweepPlan(name="sweep", layers=layers, space=RATE, trials=2000)


def test_a_resumed_sweep_looks_at_each_ended_trial_once(plan: SweepPlan) -> None:
    """Finds that restoring a trial goes through all that were restored before it, as ASHA does when it is asked."""
    few, many = (num_calls(partial(SweepSearcher, plan, with_ended(num))) for num in (100, 400))
    assert many < 4.4 * few


def test_a_suggestion_costs_the_same_after_many_trials(plan: SweepPlan) -> None:
    """Finds that TPE models every ended trial."""
    calls = []
    for num in (300, 1200):
        searcher = SweepSearcher(plan, with_ended(num))
        searcher.suggest("first")  # leaves out what is not modelled
        calls.append(num_calls(partial(searcher.suggest, "next")))
    few, many = calls
    assert many < 1.3 * few


def test_the_end_of_a_trial_ranks_those_alone_that_may_be_retained(plan: SweepPlan, tmp_path: Path) -> None:
    """Finds that all trials are ranked, or cleaned up, each time that one ends."""
    calls = []
    for objectives in ((), ("recall", "seconds")):
        of_objectives = plan.model_copy(update={"objectives": objectives, "scheduler": "none"})
        for num in (100, 400):
            ledger = ledger_with(with_ended(num), tmp_path / f"{num}")
            retained = recorder._clean_up(of_objectives, ledger, tmp_path, ledger.outcomes)
            if not objectives:
                assert retained == plan.retained(ledger)
            calls.append(num_calls(partial(recorder._clean_up, of_objectives, ledger, tmp_path, {"0001"} | retained)))
    assert max(calls) < 1.3 * min(calls[:2])


def test_the_records_of_a_trial_take_the_same_after_many_trials(plan: SweepPlan, tmp_path: Path) -> None:
    """Finds a look at each ended trial when one starts, reports, ends, or the progress is shown."""
    fewer, more = 100, 600
    instructions = []
    with Writer(plan.name) as writer:
        for num in (fewer, more):
            ledger = ledger_with(with_ended(num), tmp_path / f"{num}")
            recorder = Recorder(plan, ledger, writer, plan.ids)
            recorder.open(ledger.outcomes)

            def a_trial(recorder: Recorder, id_: str) -> None:
                recorder.started(TrialSpec(id=id_, params={"training.lr": 1e-3}, seed=0))
                recorder.reported(id_, {"score": 0.0, "step": 1, "metrics": {"dev/f1": 0.0}})
                assert recorder.counts.running == 1
                recorder.ended(id_, {"score": 0.0, "step": 1, "finished": True})
                assert recorder.counts.done + recorder.counts.pruned == len(recorder._ledger.outcomes)

            a_trial(recorder, f"{num + 1:04d}")  # fills caches
            instructions.append(num_instructions(partial(a_trial, recorder, f"{num + 2:04d}")))
    few, many = instructions
    assert many - few < more - fewer  # less than one for each trial


def test_what_is_retained_among_the_retained_and_the_last_is_what_is_retained_of_all(
    plan: SweepPlan, tmp_path: Path
) -> None:
    """Finds that a trial is lost or kept because not all are ranked when one ends: equal settings, reruns, ties."""
    plan = plan.model_copy(update={"seeds": 1, "top": 3})
    ledger, retained = Ledger(tmp_path / "ledger.jsonl"), set[str]()
    scores = [0.1, 0.5, 0.5, 0.3, 0.9, 0.2, 0.95, 0.5, 0.05]
    searched = [
        TrialSpec(id=f"{number:04d}", params={"training.lr": number % 4}, seed=0) for number in range(len(scores))
    ]
    for spec, score in zip(searched, scores, strict=True):
        retained = _ended(plan, ledger, spec, score, retained)
        assert retained == plan.retained(ledger)
    for number, spec in enumerate(plan.reruns(ledger)):
        retained = _ended(plan, ledger, spec, 0.3 + number / 10, retained)
        assert retained == plan.retained(ledger)
    assert len(retained) == plan.top, "also where more seeds may make another of them the best"
    assert ranking.best_in(ledger) in retained


def _ended(plan: SweepPlan, ledger: Ledger, spec: TrialSpec, score: float, retained: set[str]) -> set[str]:
    note(ledger, spec, score)
    return recorder._clean_up(plan, ledger, ledger.path.parent, {spec.id} | retained)


def test_a_configuration_is_written_by_libyaml(layers: tuple[Layer, ...]) -> None:
    """Finds that PyYAML writes it itself, with ten times as many calls: seconds where MLflow lacks many trials."""
    config = resolve(layers)
    assert num_calls(lambda: as_yaml(config)) < 60 * len(as_yaml(config).splitlines())


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray")
def test_the_driver_does_not_grow_with_its_trials(plan: SweepPlan, tmp_path: Path) -> None:
    """Finds what a driver keeps of each ended trial: memory, threads, open files, lines in the log."""
    marks = Marks()
    with mock.patch("dice_ray.tuning.trial.TrialActor", no_work()):
        runner.run(plan.model_copy(update={"trials": 200}), tmp_path / "sweep", Driver(num_cpus=1, show=marks.screen))
    early, late = (marks.at[min(marks.at, key=lambda num: abs(num - wanted))] for wanted in (50, 200))
    assert late.memory - early.memory < 150 * 100e3
    assert late.threads == early.threads
    assert late.files <= early.files + 4
    assert (tmp_path / "sweep/ledger.jsonl").stat().st_size < 200 * 500
    log = (tmp_path / "sweep/log.txt").read_text()
    assert len(log) < 10_000, log[:2000]
    assert "FileNotFoundError" not in log
