"""Data given in Python: a run on a table is a run on a stored file of it."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dice_ray
from analysis.statistics.new_data import item_parts
from dice_ray import Tables, api
from dice_ray.api.library import preset_of
from dice_ray.data import sources
from dice_ray.errors import DataError, InputError, UnknownNameError
from dice_ray.files import runs_folder
from dice_ray.run import trained
from dice_ray.run.folder import stored_config
from dice_ray.tracking import schema

QUICK = {"training.epochs": 1, "training.evaluations": 1}


def messages(num: int, first: int = 0) -> pd.DataFrame:
    rows = range(first, first + num)
    texts = [f"the parcel {row} {'caught fire now' if row % 4 == 0 else 'came in time'}" for row in rows]
    return pd.DataFrame({"body": texts, "urgent": ["yes" if row % 4 == 0 else "no" for row in rows], "place": rows})


def test_a_run_on_frames_is_resumed_predicts_and_is_scored() -> None:
    data = Tables(messages(80), test=messages(40, 80))
    result = dice_ray.train(data, QUICK, name="first")
    assert dice_ray.train(data, QUICK, name="first").best == result.best
    config = stored_config(runs_folder() / "first")
    assert config is not None
    assert config.data_name == "table"
    assert not (runs_folder() / ".given").stat().st_mode & 0o077, "the texts are their owner's alone"
    assert config.task.positive_label() == "yes"
    frame = messages(8, 200)
    on_frame = dice_ray.predict("first", frame).plain()
    assert dice_ray.predict("first", list(frame["body"])).plain() == on_frame
    assert [row["id"] for row in on_frame] == [str(place) for place in range(1, 9)]
    with pytest.raises(DataError, match=r"a column named 'body', found 'urgent', 'place'"):
        dice_ray.predict("first", frame.drop(columns="body"))
    with pytest.raises(DataError, match=r"line 2 must be a text, as the run is not on pairs, got \('a', 'b'\)"):
        dice_ray.predict("first", ["a", ("a", "b")])
    assert dice_ray.evaluate("first", messages(40, 80)).scores.metrics == dice_ray.evaluate("first").scores.metrics


def test_a_data_set_of_the_library_keeps_the_names_of_its_labels() -> None:
    import datasets

    features = datasets.Features({"a": datasets.Value("string"), "b": datasets.Value("string")})
    features["same"] = datasets.ClassLabel(names=["different", "duplicate"])
    rows = [{"a": f"one text {row}", "b": f"other words {row % 7}", "same": row % 2} for row in range(40)]
    table = datasets.Dataset.from_list(rows, features=features).shuffle(seed=1)
    config = api.validate(preset_of(Tables(table, text_columns=["b", "a"], positive="different", name="pairs")))
    splits = sources.load(config.data)
    assert (config.task.name, config.task.positive_label()) == ("sentence_pair", "different")
    assert {record.label for record in splits.train} == {"different", "duplicate"}
    assert splits.train[0].first.startswith("other")


def test_a_table_takes_the_place_of_the_files_of_a_preset() -> None:
    """What the preset says of its own files must not be merged into the table's: a dev file, its columns, its name."""
    Path("mine.yaml").write_text(
        "task: {text_classification: {positive: 'no'}}\n"
        "data: {source: {files: {train: a.tsv, dev: b.tsv, reader: {tables: {quoting: true}}}}, dev_share: 0.3}\n"
        "tracking: {data: other}\nmodel: {dropout: 0.3}\n"
    )
    preset = preset_of(Tables(messages(80), preset="mine.yaml"))
    config = api.validate(preset)
    assert (config.data.dev_share, config.model.dropout, config.tracking.data) == (0.3, 0.3, None)
    assert config.task.positive_label() == "no"
    assert sources.load(config.data).report.sizes == {"train": 56, "dev": 24}
    assert preset_of(Tables(messages(80), preset="mine.yaml")) == preset
    assert preset_of(Tables(messages(81), preset="mine.yaml")) != preset


@pytest.mark.parametrize(("cells", "label"), [((0, 1), 1), ((False, True), True), ((0.0, 1.0), 1.0)])
def test_labels_and_columns_may_be_numbers(cells: tuple[Any, Any], label: Any) -> None:
    """A positive label that was no text ended in a traceback, as did the name of a column."""
    frame = pd.DataFrame({0: messages(80)["body"], 1: [cells[row % 4 == 0] for row in range(80)]})
    config = api.validate(preset_of(Tables(frame, text_columns=[0], label_column=1, positive=label)))  # type: ignore[list-item, arg-type]
    assert config.task.positive_label() == json.dumps(label)
    frame.to_csv("data.csv", index=False)
    starter, _ = api.init("data.csv", positive=str(label) if label is True else label)
    assert f'positive: "{label}"' in starter.text


@pytest.mark.parametrize("columns", ["body", ["body", "urgent", "place"]])
def test_columns_of_texts_are_a_list_of_one_or_two(columns: Any) -> None:
    """A text was taken for its letters: "got 4 columns of texts"."""
    messages(20).to_csv("data.csv", index=False)
    match = re.escape(f"text_columns must be a list of one column or two, got {columns!r}")
    with pytest.raises(InputError, match=match):
        api.init("data.csv", text_columns=columns)
    with pytest.raises(InputError, match=match):
        preset_of(Tables(messages(20), text_columns=columns))


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        (Tables(messages(20), label_column="label"), UnknownNameError, "no column named 'label'.*body, place, urgent"),
        (Tables(messages(20), positive="maybe"), UnknownNameError, "no label named 'maybe'.*Known: no, yes"),
        (messages(20).drop(columns=["urgent", "place"]), DataError, r"^the table train: .* no column repeats 2 to 200"),
        ({"train": 1, "test": 2}, InputError, r"got dict: name its splits train, test, as in Tables\(train="),
        (pd.DataFrame({"text": ["a", 1], "label": ["x", "y"]}), InputError, "values of one type"),
        (pd.concat([messages(9), messages(9)], axis=1), InputError, "name of its own"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(data: Tables, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=f"(?s){match}"):
        dice_ray.train(data)
    assert list((runs_folder() / ".given").glob("*")) == [], "the texts of a refused table stay on the disk"


def test_a_refused_name_keeps_the_tables_that_another_call_uses() -> None:
    preset = Path(preset_of(Tables(messages(80))))
    with pytest.raises(InputError, match="a name must be"):
        preset_of(Tables(messages(80), name="a/b"))
    assert sorted(file.name for file in preset.parent.iterdir()) == ["table.yaml", "train.parquet"]


def test_intervals_of_a_run_on_a_frame_with_groups_are_over_its_groups() -> None:
    """Resampled by message, 40 messages of 10 customers would count as 40 independent ones."""
    frame = messages(160).assign(customer=[f"C{row // 4}" for row in range(160)])
    frame["day"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(frame["place"] // 20, unit="D")
    data = Tables(frame, label_column="urgent", group_column="customer")
    assert preset_of(data) != preset_of(Tables(frame, label_column="urgent"))
    dice_ray.train(data, QUICK | {"data.test_share": 0.25}, name="grouped")
    best = trained.load(runs_folder() / "grouped")
    split = best.labelled("test")
    scores = best.score(split)
    types = {"id": str, "document": str, schema.LABEL_PROBABILITY: str}
    table = pd.read_csv(io.StringIO(trained.items_csv(scores)), dtype=types).set_index("id")
    stored = table[schema.LABEL_PROBABILITY].map(float).to_dict()
    assert stored == scores.label_probabilities, "rounded, many near 1 would be equal"
    parts = item_parts({"run": table}, {"run": scores.metrics["f1"]}).parts["run"]
    assert len(parts) == len({record.document for record in split.records}) == 10
    by_time = sources.load(api.validate(preset_of(Tables(frame, time_column="day"))).data)
    assert "from 2024-03-08 on" in str(by_time.report)
