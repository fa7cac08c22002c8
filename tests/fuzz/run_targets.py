"""The same for what runs leave behind: plans, ledgers, checkpoints, spools, stores, answers of MLflow, and reports."""

from __future__ import annotations

import csv
import io
import json
import pickle
import re
import shutil
import sqlite3
import threading
import warnings
from contextlib import closing, suppress
from functools import cache
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pandas as pd
import torch
import yaml
from hypothesis import strategies as st

from analysis.report import Report
from analysis.tables.base import ReportTable
from dice_ray.api import best, overview, reports
from dice_ray.config.load import values_layer
from dice_ray.errors import RunError
from dice_ray.run.folder import CONFIG, LEDGER, PLAN, TASK, stored_config, stored_digest
from dice_ray.tracking import reader, schema
from dice_ray.tracking.spool import Spool, unsent_spools
from dice_ray.tracking.writer import Writer
from dice_ray.training.checkpoint import BEST, LAST, Checkpoints
from dice_ray.tuning import plan_file, recorder
from dice_ray.tuning.ledger import TrialOutcome, TrialSpec, ledger_in
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from tests.fuzz.examples import BOMBS
from tests.fuzz.inputs import HOSTILE, altered, altered_bytes, scalars, texts
from tests.tracking.stores import fill

LAYERS: Final = (values_layer("preset", {"task": "sentence_pair", "data.source": "synthetic"}),)
SWEEP: Final = SweepPlan(
    name="mine", layers=LAYERS, space="search_spaces.loss_tuning:loss_tuning", trials=3, points=({"loss": "dice"},)
)
STUDY: Final = StudyPlan(
    name="mine",
    layers=LAYERS,
    arms={"ce": {"loss": "cross_entropy"}, "dice": {"loss": "dice"}},
    baseline="ce",
    seeds=(0, 1),
)
EVENTS: Final = [
    event.model_dump()
    for id_ in ("0001", "0002")
    for event in (
        TrialSpec(id=id_, params={"loss": "dice"}, seed=0),
        TrialOutcome(id=id_, state="done", curve=((1, 0.5), (2, 0.75)), metrics=({"dev/f1": 0.5}, {"dev/f1": 0.75})),
    )
] + [TrialSpec(id="0002-1001", params={"loss": "dice"}, seed=1001, rerun_of="0002").model_dump()]
WEIGHTS: Final = {"weight": torch.zeros(2, 3)}


def plans() -> st.SearchStrategy[Any]:
    stored = [json.loads(json.dumps(plan.model_dump(mode="json"))) for plan in (SWEEP, STUDY)]
    written = [plan_file.as_yaml(plan).encode() for plan in (SWEEP, STUDY)]
    in_yaml = altered(stored).map(lambda plan: yaml.safe_dump(plan, allow_unicode=True).encode(errors="replace"))
    return st.one_of(in_yaml, altered_bytes([*written, *BOMBS]))


def read_plan(given: bytes, folder: Path) -> None:
    run = _empty(folder / "runs/mine")
    (run / PLAN).write_bytes(given)
    plan = plan_file.read(run)
    if isinstance(plan, StudyPlan):
        plan.grid()
    else:
        plan.base()
    plan_file.store(plan, run)
    assert plan_file.read(run) == plan


def ledgers() -> st.SearchStrategy[Any]:
    whole = "".join(f"{json.dumps(event)}\n" for event in EVENTS).encode()
    lines = altered([EVENTS]).map(
        lambda events: "".join(
            f"{json.dumps(event)}\n" for event in (events if isinstance(events, list) else [events])
        ).encode()
    )
    return st.one_of(lines, altered_bytes([whole]))


def read_ledger(given: bytes, folder: Path) -> None:
    """What a resumed sweep does: it ranks the trials, and deletes the files of those that it does not keep."""
    run = _empty(folder / "runs/mine")
    (run / LEDGER).write_bytes(given)
    ledger = ledger_in(run)
    SWEEP.model_copy(update={"seeds": 1}).reruns(ledger)
    recorder._clean_up(SWEEP, ledger, run / "trials", [*ledger.outcomes])
    for spec in ledger.unfinished:
        with suppress(ValueError):
            SWEEP.config(spec)
        ledger.append(TrialOutcome(id=spec.id, state="failed", failure="killed"))
    assert ledger_in(run).outcomes == ledger.outcomes


def checkpoints() -> st.SearchStrategy[Any]:
    """Damaged files, whole ones with other content, and those of objects."""
    keys = ("optimizer", "scaler", "step", "history", "rng", "tally", "decisions")
    content = altered([{"model": {"weight": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]}, **dict.fromkeys(keys, 1)}]).map(_saved)
    objects = [pickle.dumps(Path("x"), protocol) for protocol in range(6)] + [
        _saved({"model": WEIGHTS, "step": Path("x")})
    ]
    legacy = io.BytesIO()
    torch.save({"model": WEIGHTS}, legacy, _use_new_zipfile_serialization=False)
    whole = _saved({"model": WEIGHTS, **dict.fromkeys(keys, 1)})
    return st.one_of(content, altered_bytes([whole, legacy.getvalue(), *objects]))


def _saved(content: Any) -> bytes:
    """As torch saves it; lists of numbers in `model` become weights."""
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        with suppress(ValueError, TypeError, RuntimeError, OverflowError):
            content = {**content, "model": {name: torch.as_tensor(value) for name, value in content["model"].items()}}
    sink = io.BytesIO()
    torch.save(content, sink)
    return sink.getvalue()


def load_checkpoint(given: bytes, folder: Path) -> None:
    run = _empty(folder / "runs/mine")
    for name in (LAST, BEST):
        (run / name).write_bytes(given)
    with suppress(RunError):
        Checkpoints(run).best()
    Checkpoints(run).last(WEIGHTS)


def run_files() -> st.SearchStrategy[Any]:
    task = altered([{"classes": ["no", "yes"], "facts": [], "data": "ab12"}]).map(
        lambda value: json.dumps(value).encode()
    )
    return st.one_of(task, altered_bytes([b'{"classes": [], "facts": [], "data": "ab12"}']))


def read_run(given: bytes, folder: Path) -> None:
    run = _empty(folder / "runs/mine")
    for name in (CONFIG, TASK):
        (run / name).write_bytes(given)
    with suppress(ValueError):
        stored_config(run)
    stored_digest(run)


def spools() -> st.SearchStrategy[Any]:
    entries: list[Any] = [
        {"experiment": "mine", "store": "http://127.0.0.1:1"},
        {"entry": "Open", "key": "a", "name": "a", "params": {"x": "1"}, "tags": {}, "parent": None, "at": 1},
        {"entry": "Points", "key": "a", "points": [{"metric": "m", "value": 0.5, "step": 1, "at": 2}]},
        {"entry": "Tags", "key": "a", "tags": {"t": "1"}},
        {"entry": "Text", "key": "a", "file": "test/items.csv", "content": "x"},
        {"entry": "Model", "key": "a", "folder": "model", "register": "mine"},
        {"entry": "End", "key": "a", "status": "FINISHED", "at": 3},
    ]

    def as_lines(parts: Any) -> bytes:
        lines = [json.dumps(part) for part in parts] if isinstance(parts, list) else [json.dumps(parts)]
        return "".join(f"{line}\n" for line in [*lines[:4], "sent", *lines[4:]]).encode()

    return st.one_of(altered([entries]).map(as_lines), altered_bytes([as_lines(entries)]))


def read_spool(given: bytes, folder: Path) -> None:
    run = _empty(folder / "runs/mine")
    Spool(run, "mine", "http://127.0.0.1:1").close(is_sent=False)
    (file,) = run.glob("unsent-*.jsonl")
    file.write_bytes(given)
    with suppress(RunError):
        [left.is_of_this_store for left in unsent_spools(folder / "runs")]
    Spool(run, "mine", "http://127.0.0.1:1").close(is_sent=True)


@cache
def store() -> sqlite3.Connection:
    """A store with a study and a sweep, in memory."""
    file = Path("first.db").absolute()
    fill(f"sqlite:///{file}")
    with Writer("sweep", f"sqlite:///{file}") as writer:
        writer.open(
            "sweep", name="sweep", params={"digest": "ab"}, tags={schema.KIND: "sweep", schema.METRIC: "dev/f1"}
        )
        for number in range(3):
            params = {"loss": ["dice", "focal", "dice"][number], "training.lr": 10.0**-number, "training.seed": 0}
            tags = {schema.KIND: "trial", schema.SEED: "0", schema.STATE: "done", schema.SEARCHED: "loss training.lr"}
            writer.open(f"000{number}", name=f"000{number}", params=params, tags=tags, parent="sweep")
            writer.metrics(f"000{number}", 1, {"dev/f1": number / 4, "dev/best_f1": number / 4})
            writer.end(f"000{number}", "FINISHED")
        writer.end("sweep", "FINISHED")
    memory = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(sqlite3.connect(file)) as database:
        database.backup(memory)
    return memory


COLUMNS: Final = [
    *(("runs", name) for name in ("name", "status", "start_time", "end_time", "artifact_uri", "lifecycle_stage")),
    *(("tags", name) for name in ("key", "value", "value", "value")),
    *(("params", name) for name in ("key", "value", "value")),
    *(("latest_metrics", name) for name in ("key", "value", "is_nan", "step")),
    *(("metrics", name) for name in ("key", "value", "is_nan", "step")),
    ("experiments", "name"),
]
TAGS: Final = [
    value for name, value in vars(schema).items() if name.isupper() and isinstance(value, str) and "." in value
]


def stores() -> st.SearchStrategy[Any]:
    value = st.one_of(scalars, st.binary(max_size=5), st.sampled_from(HOSTILE))
    change = st.tuples(st.sampled_from(COLUMNS), st.integers(0, 50), value)
    tag = st.tuples(st.integers(0, 8), st.sampled_from([*TAGS, "dice_ray.constant.dev/f1"]), value)
    return st.tuples(st.lists(change, max_size=3), st.lists(tag, max_size=2), st.sampled_from(["study", "sweep"]))


def strange_store(given: Any, folder: Path) -> str:
    """The store with changed cells and other tags; values that SQLite refuses are left out."""
    changes, tags, _ = given
    file = folder / "mlflow.db"
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as database:
        store().backup(database)
        database.execute("pragma synchronous=off")
        for (table, column), number, value in changes:
            with suppress(sqlite3.Error, OverflowError, UnicodeError):
                (rows,) = database.execute(f"select count(*) from {table}").fetchone()
                row = f"(select rowid from {table} limit 1 offset {number % rows})"
                database.execute(f"update {table} set {column} = ? where rowid = {row}", [value])
        for number, name, value in tags:
            with suppress(sqlite3.Error, OverflowError, UnicodeError):
                database.execute(
                    "insert or replace into tags select ?, ?, run_uuid from runs limit 1 offset ?",
                    [name, value, number],
                )
        database.commit()
    return f"sqlite:///{file}"


def read_store(given: Any, folder: Path) -> None:
    uri = strange_store(given, folder)
    for name in reader.experiments(uri):
        frame = reader.read(name, uri)
        reader.curves(name, uri)
        reader.ended(name, uri)
        overview.overview([name], uri)
        overview.compared(name, frame)


def report_store(given: Any, folder: Path) -> None:
    """The report of a strange store, in all its formats."""
    uri = strange_store(given, folder)
    with _uri(uri), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = given[2]
        made = reports.report(name)
        _check(made)
        made.write(folder / "report")
        best.best_of(name, reports.findings(name))


class _Page(HTMLParser):
    """Collects what a browser would run or load, and its headings."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.active: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.active += [name for name, _ in attrs if name.startswith("on")]
        self.active += [
            value
            for name, value in attrs
            if value and name in ("href", "src") and not value.startswith(("#", "data:image"))
        ]


def _check(made: Report) -> None:
    """No string of the data is an element, a command or a formula in a format of the report."""
    page = _Page()
    page.feed(made.html())
    assert page.tags.count("script") == 1, "a script of the data"
    assert not page.active, page.active
    assert not {"img", "iframe", "object", "embed", "form", "link", "base"} & {*page.tags}, page.tags
    markdown = made.markdown()
    assert "<script" not in markdown
    assert "<img" not in markdown
    latex = "".join(table.latex() for table in made.tables)
    assert r"\input{/" not in latex
    for table in made.tables:
        cells = [*csv.reader(io.StringIO(table.csv()))]
        assert len(cells) == len(table.data) + 1, "a row of the data is two of the file"
        assert not [cell for row in cells for cell in row if cell.startswith(("=", "@", "\t", "\r"))]
    for text in (made.text(), markdown, latex):
        text.encode()
        assert all(letter.isprintable() or letter == "\n" for letter in text), "a control character"


def tables() -> st.SearchStrategy[Any]:
    # pandas refuses lone surrogates, so no table of a report holds one.
    own = texts.filter(lambda text: not re.search("[\ud800-\udfff]", text))
    cells = st.one_of(own, st.text(max_size=8), st.floats(), st.sampled_from(["a", "-1", "+2", "[0, 1]"]))
    names = st.lists(own, min_size=1, max_size=3, unique=True)
    return names.flatmap(
        lambda names: st.tuples(
            st.just(names),
            st.lists(st.lists(cells, min_size=len(names), max_size=len(names)), min_size=1, max_size=3),
            own,
        )
    )


def write_table(given: Any, folder: Path) -> None:
    names, rows, title = given
    data = pd.DataFrame(rows, columns=names)
    table = ReportTable(
        "hostile", title, data, data.map(str), (title,), marks={(0, names[0]): "bold"}, tips={names[0]: title}
    )
    made = Report(title, (table,), summary=(title,))
    _check(made)


def answers() -> st.SearchStrategy[Any]:
    run = {
        "info": {
            "run_id": "r",
            "run_name": "n",
            "status": "FINISHED",
            "start_time": 1,
            "end_time": 2,
            "artifact_uri": "/x",
            "lifecycle_stage": "active",
            "experiment_id": "1",
        },
        "data": {
            "metrics": [{"key": "dev/f1", "value": 0.5, "step": 1, "timestamp": 1}],
            "params": [{"key": "loss", "value": "dice"}],
            "tags": [{"key": schema.ID, "value": "a"}, {"key": schema.KIND, "value": "run"}],
        },
        "inputs": {},
    }
    experiment = {"experiment_id": "1", "name": "mine", "artifact_location": "/x", "lifecycle_stage": "active"}
    whole = [[{"experiments": [experiment]}, {"runs": [run]}, {"metrics": run["data"]["metrics"]}]]
    body = altered(whole).map(
        lambda value: (
            [json.dumps(part).encode() for part in value]
            if isinstance(value, list) and len(value) == 3
            else [json.dumps(value).encode()] * 3
        )
    )
    raw = altered_bytes([json.dumps(part).encode() for part in whole[0]]).map(
        lambda part: [json.dumps(whole[0][0]).encode(), part, part]
    )
    return st.tuples(st.one_of(body, raw), st.sampled_from([200, 200, 200, 200, 204, 400, 404, 500]))


ANSWER: dict[str, Any] = {}


@cache
def server() -> str:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            part = 0 if "experiments/" in self.path else 2 if "get-history" in self.path else 1
            self.send_response(ANSWER["status"])
            self.send_header("content-length", str(len(ANSWER["parts"][part])))
            self.end_headers()
            self.wfile.write(ANSWER["parts"][part])

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def read_answers(given: Any, folder: Path) -> None:
    ANSWER["parts"], ANSWER["status"] = given
    frame = reader.read("mine", server())
    reader.curves("mine", server())
    overview.compared("mine", frame)


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _uri(uri: str) -> Any:
    from unittest import mock

    return mock.patch.dict("os.environ", {"MLFLOW_TRACKING_URI": uri})
