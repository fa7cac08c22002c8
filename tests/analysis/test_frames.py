"""What was found: files of runs as frames, read when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pandas as pd
import pytest

from analysis.frames import Findings, constant
from analysis.statistics.intervals import t_interval
from dice_ray.errors import RunError
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema
from tests.analysis.frames import study

FRAME = pd.DataFrame({"id": ["study", "c0", "c1", "t0"], "kind": ["study", "cell", "cell", "trial"]})
LEFT_OUT = [{"variant": None, "arm": "asymmetric", "reason": "sigmoid heads only"}]
FILES = {
    ("c0", "test/items.csv"): "id,tp,fp,fn,tuned_tp,tuned_fp,tuned_fn\n007,1,0,0,0,0,1\nNA,0,1,0,0,0,0\n",
    ("c1", "test/items.csv"): "id,tp,fp,fn,document\nq1,1,0,0,007\n",
    ("c1", "test/classes.csv"): "class,support,tp,fp,fn\nnull,3,1,0,2\n",
    ("study", "left_out.json"): json.dumps(LEFT_OUT),
}


def texts(runs: pd.DataFrame, file: str) -> Mapping[str, str]:
    return {id_: FILES[id_, file] for id_ in runs["id"] if (id_, file) in FILES}


def test_files_are_frames_by_the_id_of_their_cell() -> None:
    findings = Findings(FRAME, texts)
    assert list(findings.items) == ["c0", "c1"]
    assert findings.items["c1"].loc["q1", "document"] == "007"
    assert findings.items["c0"].to_dict("index") == {
        "007": {"tp": 1, "fp": 0, "fn": 0, "tuned_tp": 0, "tuned_fp": 0, "tuned_fn": 1},
        "NA": {"tp": 0, "fp": 1, "fn": 0, "tuned_tp": 0, "tuned_fp": 0, "tuned_fn": 0},
    }
    assert findings.classes["c1"].loc["null"].to_dict() == {"support": 3, "tp": 1, "fp": 0, "fn": 2}
    assert findings.left_out == LEFT_OUT


def test_nothing_is_read_before_it_is_asked_for() -> None:
    asked: list[str] = []

    def asking(runs: pd.DataFrame, file: str) -> Mapping[str, str]:
        asked.append(file)
        return {}

    findings = Findings(FRAME, asking)
    assert not asked
    assert findings.items == findings.items == {}
    assert asked == ["test/items.csv"]


@pytest.mark.parametrize("metric", ["test/log_loss", "test/mcc"])
def test_the_interval_of_the_constant_predictor_has_the_limits_of_its_metric(metric: str) -> None:
    """Finds a log loss that never exceeds 1, and an MCC above chance: each was a share."""
    stored = [0.85, 0.99, 0.85]
    cells = [
        {"arm": "plain", "seed": seed, schema.sibling(f"metrics.{metric}", "constant"): of}
        for seed, of in enumerate(stored)
    ]
    assert constant(study(cells, metric=metric).cells, metric) == t_interval(
        stored, limits=catalogue.metric(metric).limits
    )


def test_without_files_there_is_nothing() -> None:
    findings = Findings(FRAME)
    assert findings.items == findings.classes == {}
    assert findings.left_out == []
    assert list(findings.curves) == ["id", "step", "metric", "value"]


def test_a_file_without_its_columns_is_named() -> None:
    findings = Findings(FRAME, lambda runs, file: {"c1": "id,tp\na,1\n"})
    with pytest.raises(RunError, match=r"test/items\.csv of the run c1 must have the columns fn, fp, which it lacks"):
        _ = findings.items


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("test/items.csv", ""),
        ("test/items.csv", "id,tp,fp,fn\na,1,0,0\nb,0,"),
        ("test/items.csv", "id,tp,fp,fn,tuned_tp\na,1,0,0,1\nb,0,1,0"),
        ("test/items.csv", "id,tp,fp,fn\na,1"),
        ("test/items.csv", 'id,tp,fp,fn\na,1,0,0\n"b,0'),
        ("test/classes.csv", "class,support,tp,fp,fn\nnull,3,1,0,x\n"),
        ("left_out.json", '[{"variant": nu'),
        ("data.json", '{"sizes": {"dev"'),
    ],
)
def test_a_damaged_file_is_named_with_its_run(file: str, text: str) -> None:
    """A report ended with the traceback of the parser."""
    findings = Findings(FRAME, lambda runs, asked: dict.fromkeys(runs["id"], text) if asked == file else {})
    with pytest.raises(RunError, match=rf"{file} of the run (c0|study) must be as dice_ray wrote it, but is damaged: "):
        _ = (findings.items, findings.classes, findings.left_out, findings.data)
