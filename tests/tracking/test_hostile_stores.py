"""Damaged spools and strange stores: they are read, or refused by an error of dice_ray's; and reports are safe."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sqlite3
import warnings
from contextlib import closing, suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import strategies as st

from analysis.report import Report
from analysis.tables.base import ReportTable
from dice_ray.api import reports
from dice_ray.errors import RunError
from dice_ray.tracking import reader, schema
from dice_ray.tracking.spool import Spool, unsent_spools
from dice_ray.tuning import overview
from tests.hostile import HOSTILE, altered, altered_bytes, hostile, scalars, texts
from tests.tracking.stores import copied, fill

STORE = "http://127.0.0.1:1"
ENTRIES: list[Any] = [
    {"experiment": "mine", "store": STORE},
    {"entry": "Open", "key": "a", "name": "a", "params": {"x": "1"}, "tags": {}, "parent": None, "at": 1},
    {"entry": "Points", "key": "a", "points": [{"metric": "m", "value": 0.5, "step": 1, "at": 2}]},
    {"entry": "Tags", "key": "a", "tags": {"t": "1"}},
    {"entry": "Text", "key": "a", "file": "test/items.csv", "content": "x"},
    {"entry": "Model", "key": "a", "folder": "model", "register": "mine"},
    {"entry": "End", "key": "a", "status": "FINISHED", "at": 3},
]
COLUMNS = [
    *(("runs", name) for name in ("name", "status", "start_time", "end_time", "artifact_uri", "lifecycle_stage")),
    *((table, name) for table in ("tags", "params") for name in ("key", "value", "value")),
    *((table, name) for table in ("latest_metrics", "metrics") for name in ("key", "value", "is_nan", "step")),
    ("experiments", "name"),
]
TAGS = [value for name, value in vars(schema).items() if name.isupper() and isinstance(value, str) and "." in value]


def _lines(entries: Any) -> bytes:
    lines = [json.dumps(part) for part in entries] if isinstance(entries, list) else [json.dumps(entries)]
    return "".join(f"{line}\n" for line in [*lines[:4], "sent", *lines[4:]]).encode()


@hostile(st.one_of(altered([ENTRIES]).map(_lines), altered_bytes([_lines(ENTRIES)])), num=6_000)
def test_spools(given: bytes) -> None:
    run = Path("runs/mine")
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    Spool(run, "mine", STORE).close(is_sent=False)
    (file,) = run.glob("unsent-*.jsonl")
    file.write_bytes(given)
    with suppress(RunError):
        [left.is_of_this_store for left in unsent_spools(Path("runs"))]
    Spool(run, "mine", STORE).close(is_sent=True)


@pytest.fixture(scope="module")
def whole(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a study."""
    uri = copied(migrated, tmp_path_factory.mktemp("whole"))
    fill(uri)
    return Path(uri.removeprefix("sqlite:///"))


def _altered_store(whole: Path, changes: Any, tags: Any) -> str:
    """The store with changed cells and other tags; values that SQLite refuses are left out."""
    uri = copied(whole, Path.cwd())
    with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as database:
        database.execute("pragma synchronous=off")
        for (table, column), number, value in changes:
            with suppress(sqlite3.Error, OverflowError, UnicodeError):
                (rows,) = database.execute(f"select count(*) from {table}").fetchone()
                row = f"(select rowid from {table} limit 1 offset {number % rows})"
                database.execute(f"update {table} set {column} = ? where rowid = {row}", [value])
        for number, name, value in tags:
            with suppress(sqlite3.Error, OverflowError, UnicodeError):
                insert = "insert or replace into tags select ?, ?, run_uuid from runs limit 1 offset ?"
                database.execute(insert, [name, value, number])
        database.commit()
    return uri


VALUE = st.one_of(scalars, st.binary(max_size=5), st.sampled_from(HOSTILE))
CHANGES = st.lists(st.tuples(st.sampled_from(COLUMNS), st.integers(0, 50), VALUE), max_size=3)
MORE = st.lists(st.tuples(st.integers(0, 8), st.sampled_from([*TAGS, "dice_ray.constant.dev/f1"]), VALUE), max_size=2)


@hostile(st.tuples(CHANGES, MORE), num=3_000)
def test_stores(whole: Path, given: Any) -> None:
    uri = _altered_store(whole, *given)
    for name in reader.experiments(uri):
        frame = reader.read(name, uri)
        reader.curves(name, uri)
        reader.ended(name, uri)
        overview.overview([name], uri)
        overview.compared(name, frame)


@hostile(st.tuples(CHANGES, MORE), num=200, few=2)
def test_reports_of_stores(whole: Path, monkeypatch: pytest.MonkeyPatch, given: Any) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", _altered_store(whole, *given))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _check(reports.report("study"))


OWN = texts.filter(lambda text: not re.search("[\ud800-\udfff]", text))  # pandas refuses lone surrogates
CELLS = st.one_of(OWN, st.text(max_size=8), st.floats(), st.sampled_from(["a", "-1", "+2", "[0, 1]"]))
TABLES = st.lists(OWN, min_size=1, max_size=3, unique=True).flatmap(
    lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, CELLS)), min_size=1, max_size=3)
)


@hostile(st.tuples(TABLES, OWN), num=3_000)
def test_tables(given: tuple[list[dict[str, Any]], str]) -> None:
    rows, title = given
    data, first = pd.DataFrame(rows), next(iter(rows[0]))
    table = ReportTable("t", title, data, data.map(str), (title,), marks={(0, first): "bold"}, tips={first: title})
    _check(Report(title, (table,), summary=(title,)))


class _Page(HTMLParser):
    """Collects the elements of a page, and what a browser would run or load."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.active = list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        links = [value for name, value in attrs if value and name in ("href", "src")]
        self.active += [name for name, _ in attrs if name.startswith("on")]
        self.active += [link for link in links if not link.startswith(("#", "data:image"))]


def _check(made: Report) -> None:
    """No string of the data is an element, a command or a formula in a format of the report."""
    page = _Page()
    page.feed(made.html())
    assert page.tags.count("script") == 1, "a script of the data"
    assert not page.active, page.active
    assert not {"img", "iframe", "object", "embed", "form", "link", "base"} & {*page.tags}
    markdown, latex = made.markdown(), "".join(table.latex() for table in made.tables)
    assert not re.search("<script|<img", markdown)
    assert r"\input{/" not in latex
    for table in made.tables:
        cells = [*csv.reader(io.StringIO(table.csv()))]
        assert len(cells) == len(table.data) + 1, "a row of the data is two of the file"
        assert not [cell for row in cells for cell in row if cell.startswith(("=", "@", "\t", "\r"))]
    for text in (made.text(), markdown, latex):
        text.encode()
        assert all(letter.isprintable() or letter == "\n" for letter in text), "a control character"
