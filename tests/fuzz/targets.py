"""What is fuzzed: for each target its inputs, and a function that does with one what dice_ray does with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st
from pydantic import TypeAdapter

from dice_ray.api import places
from dice_ray.api.presets import layers_of
from dice_ray.config.load import Layer, as_yaml, resolve, set_layer, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.data import inputs
from dice_ray.data.formats import ReaderConfig
from dice_ray.data.formats.base import Given
from dice_ray.data.guess import guess
from dice_ray.data.reading import SplitReader, SplitSource
from dice_ray.errors import DataError
from dice_ray.run.folder import check_config, stored_config
from dice_ray.settings import nested, paths
from tests.fuzz import examples
from tests.fuzz.inputs import HOSTILE, altered, altered_bytes, texts, values

READER: TypeAdapter[Any] = TypeAdapter(ReaderConfig)
PATHS: Final = tuple(paths(RunConfig))
BASE: Final = Layer("preset", {"task": "sentence_pair", "data": {"source": "synthetic"}})


@dataclass(frozen=True)
class Target:
    """One thing to fuzz.

    Attributes:
        inputs: The strategy of its inputs, made in the process that uses it.
        run: Does with an input what dice_ray does, in a folder. An error of dice_ray's is an answer.
        num: Inputs of a whole run.
    """

    inputs: Callable[[], st.SearchStrategy[Any]]
    run: Callable[[Any, Path], None]
    num: int


def settings() -> st.SearchStrategy[Any]:
    path = st.one_of(st.sampled_from(PATHS), st.builds(lambda a, b: f"{a}.{b}", st.sampled_from(PATHS), texts), texts)
    return st.dictionaries(
        path, st.one_of(values, st.sampled_from(PATHS).map(lambda path: path.rpartition(".")[2])), max_size=4
    )


def resolve_settings(given: Any, folder: Path) -> None:
    """What resolves is written as YAML that resolves to the same."""
    config = resolve([BASE, values_layer("settings", given)])
    (folder / "config.yaml").write_text(as_yaml(config), encoding="utf-8")
    assert stored_config(folder) == config
    check_config(config, folder)


def set_texts() -> st.SearchStrategy[Any]:
    path = st.one_of(st.sampled_from(PATHS), texts)
    value = st.one_of(
        texts,
        values.map(lambda value: json.dumps(value, ensure_ascii=False)),
        altered_bytes([b"[1, 2]", b"{a: b, c: [d]}", b"'x'", b"2020-01-01", b"0x10", b"1:30", *examples.BOMBS]).map(
            _decoded
        ),
    )
    return st.lists(st.one_of(st.builds(lambda path, value: f"{path}={value}", path, value), texts), max_size=3)


def resolve_set(given: Any, folder: Path) -> None:
    resolve([BASE, set_layer(given)])


def resolve_preset(given: bytes, folder: Path) -> None:
    file = folder / "mine.yaml"
    file.write_bytes(given)
    config = resolve(layers_of(file, ()))
    assert resolve([Layer("again", nested(config))]) == config


def name_run(given: str, folder: Path) -> None:
    """A name that is taken is one of a folder below that of the runs."""
    above = places.runs_folder().resolve()
    with suppress(ValueError):
        assert (above / places.check_name(given)).resolve().parent == above
    assert (above / places.check_name(places.valid_name(given))).resolve().parent == above
    places.place(given)


def reading() -> st.SearchStrategy[Any]:
    formats = {
        **{name: (reader, [each.encode() for each in texts]) for name, (reader, texts) in examples.TEXT.items()},
        **examples.columnar(),
    }
    readers = st.sampled_from(sorted(formats)).flatmap(
        lambda name: st.tuples(st.just(formats[name][0]), altered_bytes(formats[name][1]))
    )
    documents = st.sampled_from(sorted(examples.JSON)).flatmap(
        lambda name: st.tuples(st.just(examples.JSON[name][0]), altered(examples.JSON[name][1]).map(_as_json))
    )
    encoding = st.sampled_from(["utf-8", "utf-8", "utf-8", "latin-1", "utf-16", "gb18030", "cp1252", "utf-7"])
    return st.tuples(st.one_of(readers, documents), encoding, st.sampled_from(["read", "ignored"]))


def read_file(given: Any, folder: Path) -> None:
    """Each row is kept, dropped and counted, or the error of the file."""
    (reader, content), encoding, labels = given
    ((name, settings),) = reader.items()
    settings = settings if name in ("parquet", "arrow") else settings | {"encoding": encoding}
    path = folder / "data.txt"
    path.write_bytes(content)
    (folder / "tags.txt").write_bytes(content[::-1])
    made = READER.validate_python({name: settings})
    with suppress(DataError):
        _read(made, path, labels, "skip")
    _read(made, path, labels, "error")


def _read(reader: Any, path: Path, labels: Any, on_bad_row: Any) -> None:
    split = SplitReader(SplitSource(path.name, path, lambda: reader.read(path, labels), on_bad_row))
    num = sum(len(rows) for rows in split.chunks())
    report = split.report()
    assert num == report.kept
    assert report.rows == num + sum(tally.count for tally in report.dropped.values())


def guessing() -> st.SearchStrategy[Any]:
    contents = [text.encode() for _, texts in examples.TEXT.values() for text in texts]
    contents += [text for _, texts in examples.columnar().values() for text in texts]
    names = st.sampled_from(["data.txt", "data.csv", "data.json", "data.conllu", "data.parquet", "data.gz"])
    given = st.builds(
        Given,
        encoding=st.sampled_from([None, None, None, "latin-1", "utf-16", "x"]),
        positive=st.one_of(st.none(), st.none(), texts),
        format=st.sampled_from([None, None, None, "tables", "conll", "squad", "x"]),
    )
    return st.tuples(names, altered_bytes(contents), given)


def guess_file(given: Any, folder: Path) -> None:
    name, content, what = given
    file = folder / name
    file.write_bytes(content)
    try:
        guess(file, what)
    finally:
        file.unlink()


def read_archive(given: bytes, folder: Path) -> None:
    path = folder / "data.tsv.gz"
    path.write_bytes(given)
    with suppress(DataError):
        guess(path)
    _read(READER.validate_python(examples.TEXT["tsv"][0]), path, "read", "skip")


def rows() -> st.SearchStrategy[Any]:
    made: dict[str, tuple[str, dict[str, Any], Any]] = {
        "pairs": ("sentence_pair", {}, examples.PAIRS),
        "texts": ("text_classification", {}, examples.TEXTS),
        "tags": ("tagging", {}, examples.TAGGED),
        "questions": ("extractive_qa", {}, examples.QUESTIONS),
        "queries": ("mrc_ner", {}, examples.MRC),
    }
    lines = st.lists(st.one_of(texts, st.tuples(texts, texts)), max_size=3)
    return st.sampled_from(sorted(made)).flatmap(
        lambda name: st.tuples(st.just(made[name][0]), st.one_of(altered([made[name][2]]), lines))
    )


def read_rows(given: Any, folder: Path) -> None:
    """Rows and lines in memory, as a served model gets them."""
    task, made = given
    data = resolve([Layer("run", {"task": task, "data": {"source": "synthetic"}})]).data
    is_rows = isinstance(made, list) and all(isinstance(row, dict) for row in made)
    if is_rows:
        inputs.read_rows(data, made)
    elif isinstance(made, list) and all(
        isinstance(row, str) or (isinstance(row, tuple) and len(row) == 2) for row in made
    ):
        inputs.read_lines(data, made)


def _decoded(content: bytes) -> str:
    return content.decode(errors="replace")


def _as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def targets() -> dict[str, Target]:
    from tests.fuzz import run_targets as runs

    return {
        "settings": Target(settings, resolve_settings, 12_000),
        "set": Target(set_texts, resolve_set, 12_000),
        "presets": Target(lambda: altered_bytes([*examples.PRESETS, *examples.BOMBS]), resolve_preset, 6_000),
        "names": Target(lambda: st.one_of(texts, st.lists(st.sampled_from(HOSTILE)).map("/".join)), name_run, 6_000),
        "readers": Target(reading, read_file, 25_000),
        "guess": Target(guessing, guess_file, 4_000),
        "archives": Target(lambda: altered_bytes(examples.archives()), read_archive, 2_000),
        "rows": Target(rows, read_rows, 5_000),
        "plans": Target(runs.plans, runs.read_plan, 5_000),
        "ledgers": Target(runs.ledgers, runs.read_ledger, 8_000),
        "checkpoints": Target(runs.checkpoints, runs.load_checkpoint, 6_000),
        "run_files": Target(runs.run_files, runs.read_run, 3_000),
        "spools": Target(runs.spools, runs.read_spool, 6_000),
        "stores": Target(runs.stores, runs.read_store, 3_000),
        "answers": Target(runs.answers, runs.read_answers, 2_000),
        "tables": Target(runs.tables, runs.write_table, 3_000),
        "reports": Target(runs.stores, runs.report_store, 200),
    }
