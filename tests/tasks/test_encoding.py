"""Cached rows equal those that a task encodes, for every task, chunk by chunk and memory-mapped."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dice_ray.data import cache, reading
from dice_ray.data.records import LoadReport, Splits
from dice_ray.data.sources import DataConfig, load
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.models.tiny import tokenizer_json
from dice_ray.tasks.base import Row, TaskBranch
from dice_ray.tasks.encoding import encode
from dice_ray.tasks.text_classification import SentencePairConfig
from tests.contracts.tasks import Built, configs, longer, name_of, records_of

VERSION = 13
FROZEN = {
    "mrc_ner": "9508835abb3b7c01",
    "sentence_pair": "0bd882fa709bfe59",
    "tagging": "362a8037b29c8aad",
    "text_classification": "96c9d1613f0ab7ca",
}
"""A hash of the generated rows of each task in the cache's VERSION."""


@pytest.fixture(autouse=True)
def _an_empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICE_RAY_CACHE", str(tmp_path / "cache"))


def splits_of(config: TaskBranch) -> Splits:
    """Records of a task, some so long that they become several rows."""
    records = tuple(longer(record, 1 + number % 5) for number, record in enumerate(records_of(config, 40)))
    return Splits(records, records[:9], records[5:20], LoadReport({}, {}, {}, {}), name_of(config))


def plain(row: Row) -> Row:
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in row.items()}


@pytest.mark.parametrize("config", configs(), ids=name_of)
def test_rows_are_those_of_the_task_and_score_the_same(config: TaskBranch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 7)
    short = config.model_copy(update={"max_length": 24} | ({"stride": 6} if hasattr(config, "stride") else {}))
    splits = splits_of(short)
    built = Built(short, splits.train)
    encoded = encode(short, ModelConfig(), splits, "generated")
    assert [plain(row) for row in encoded.train] == built.rows
    assert [plain(encoded.train[index]) for index in range(len(built.rows))] == built.rows
    assert [plain(row) for row in encoded.dev] == built.task.encode(splits.dev, built.tokenizer)
    assert [plain(row) for row in encoded.test(splits.test)] == built.task.encode(splits.test, built.tokenizer)
    assert encoded.facts == built.facts
    for row in (encoded.train[3], next(iter(encoded.train))):
        assert {type(value) for value in row.values()} <= {int, float, bool, str, np.ndarray}
        assert not any(value.flags.writeable for value in row.values() if isinstance(value, np.ndarray))

    direct = built.gold_scores()
    built.rows = encoded.train  # type: ignore[assignment]
    assert built.gold_scores() == direct
    assert built.task.facts(built.rows) == built.facts


def test_a_second_start_encodes_nothing_and_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = load(DataConfig())
    first = encode(SentencePairConfig(), ModelConfig(), splits, "generated")

    def no_pass(*_: Any) -> Any:
        raise AssertionError("the training split was read again")

    for name in ("encode", "facts", "texts"):
        monkeypatch.setattr(f"dice_ray.tasks.text_classification._OneLabel.{name}", no_pass)
    monkeypatch.setattr(SentencePairConfig, "classes", no_pass)
    again = encode(SentencePairConfig(), ModelConfig(), splits, "generated")
    assert again.facts == first.facts
    assert tokenizer_json(again.tokenizer) == tokenizer_json(first.tokenizer)
    assert plain(again.train[7]) == plain(first.train[7])


def test_data_task_and_tokenizer_each_make_another_entry(tmp_path: Path) -> None:
    splits = load(DataConfig())
    for number, texts in enumerate((["a router broke"], ["we were billed"])):
        load_tokenizer(ModelConfig(), texts).save_pretrained(tmp_path / str(number))
    tokenizers = [ModelConfig(encoder=str(tmp_path / name)) for name in "01"]
    found = []
    for config, model, data in (
        (SentencePairConfig(), ModelConfig(), splits),
        (SentencePairConfig(max_length=16), ModelConfig(), splits),
        (SentencePairConfig(), tokenizers[0], splits),
        (SentencePairConfig(), tokenizers[1], splits),
        (SentencePairConfig(), ModelConfig(), load(DataConfig.model_validate({"source": {"synthetic": {"seed": 1}}}))),
    ):
        encode(config, model, data, "generated")
        found.append(sum(one.kind == "rows" for one in cache.list_entries()))
    assert found == [1, 2, 3, 4, 5]
    tokenizer = load_tokenizer(tokenizers[0], ())
    before = tokenizer_json(tokenizer)
    tokenizer(["a router"], truncation=True, max_length=4, padding=True)
    assert tokenizer_json(tokenizer) == before
    encode(SentencePairConfig(), tokenizers[0], splits, "generated")
    assert sum(one.kind == "rows" for one in cache.list_entries()) == 5


@pytest.mark.parametrize("name", FROZEN)
def test_other_rows_come_with_another_version(name: str) -> None:
    config = next(config for config in configs() if config.name == name)
    rows = [plain(row) for row in encode(config, ModelConfig(), splits_of(config), "generated").train]
    found = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
    assert (cache._VERSION, found) == (VERSION, FROZEN[name]), (
        "the rows are others than before: raise _VERSION in dice_ray/data/cache.py, else stored ones stay in use"
    )
