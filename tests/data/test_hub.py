"""The hub: local data sets as `load_dataset` reads them, missing ones, and scripts that are never run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import pytest

from dice_ray.data.guess import guess
from dice_ray.data.records import PairRecord, QuestionRecord, TaggedRecord, TextRecord
from dice_ray.data.sources import DataConfig, key, load
from dice_ray.errors import DataError

PAIRS = datasets.Features(
    sentence1=datasets.Value("string"),
    sentence2=datasets.Value("string"),
    label=datasets.ClassLabel(names=["not_equivalent", "equivalent"]),
    idx=datasets.Value("int32"),
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def hub(folder: Path | str, **keys: Any) -> DataConfig:
    return DataConfig.model_validate({"source": {"hub": {"id": str(folder), **keys}}})


def pairs(*labels: int, name: str = "a") -> datasets.Dataset:
    """Pairs of these labels, -1 being none."""
    rows = [{"sentence1": f"{name}{n}", "sentence2": "b", "label": label, "idx": n} for n, label in enumerate(labels)]
    return datasets.Dataset.from_list(rows, features=PAIRS)


@pytest.fixture
def glue(tmp_path: Path) -> Path:
    """MRPC as it stands on the hub: Parquet files with class labels, and a test split without labels."""
    folder = tmp_path / "glue"
    folder.mkdir()
    pairs(1, 0, 1).to_parquet(folder / "train-00000-of-00001.parquet")
    pairs(0, 1, name="v").to_parquet(folder / "validation-00000-of-00001.parquet")
    pairs(1, -1, name="t").to_parquet(folder / "test-00000-of-00001.parquet")
    return folder


def test_parquet_folders_give_their_splits_with_classes_by_name(glue: Path) -> None:
    config = hub(glue, dev="validation", test="test", columns={"pair": {"id": "idx"}})
    splits = load(config)
    assert tuple(splits.train) == (
        PairRecord("0", "a0", "b", "equivalent"),
        PairRecord("1", "a1", "b", "not_equivalent"),
        PairRecord("2", "a2", "b", "equivalent"),
    )
    assert [record.label for record in splits.dev] == ["not_equivalent", "equivalent"]
    assert splits.report.read["test"].dropped["no label"].first == [2]
    assert [read.origin for read in splits.report.read.values()] == ["glue, train", "glue, validation", "glue, test"]
    assert config.source.title == "glue"


def test_a_split_is_guessed_by_its_whole_name_or_refused_where_several_fit(tmp_path: Path) -> None:
    """Of ANLI's three rounds and MNLI's two dev splits the last one was taken without a word."""
    rows = datasets.Dataset.from_dict({"text": [f"a nice {n}" for n in range(8)], "label": ["a", "b"] * 4})
    datasets.DatasetDict({"train": rows, "train_unlabeled": rows, "test": rows}).save_to_disk(tmp_path / "exact")
    (source,) = guess(tmp_path / "exact").reader.values()
    assert {split: source.get(split) for split in ("train", "dev", "test")} == {
        "train": None,
        "dev": None,
        "test": "test",
    }
    rounds = {f"{split}_r{number}": rows for split in ("train", "test") for number in (1, 2)}
    datasets.DatasetDict(rounds).save_to_disk(tmp_path / "rounds")
    with pytest.raises(DataError, match=r"rounds: one split must be named train, got train_r1, train_r2: save"):
        guess(tmp_path / "rounds")


def test_a_dev_split_is_drawn_where_none_is_named(glue: Path) -> None:
    splits = load(hub(glue))
    assert (len(splits.train), len(splits.dev), len(splits.test)) == (2, 1, 0)


def test_configurations_of_a_folder_are_chosen_by_name(tmp_path: Path) -> None:
    for name, label in [("mrpc", 1), ("rte", 0)]:
        (tmp_path / "glue" / name).mkdir(parents=True)
        pairs(label, label).to_parquet(tmp_path / "glue" / name / "train.parquet")
    configs = [{"config_name": name, "data_files": f"{name}/train.parquet"} for name in ("mrpc", "rte")]
    (tmp_path / "glue/README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    config = hub(tmp_path / "glue", config="rte")
    assert {record.label for record in load(config).train} == {"not_equivalent"}
    assert config.source.title == "glue/rte"
    with pytest.raises(DataError, match=r"glue' must be readable by load_dataset: .*'cola' not found.*mrpc"):
        load(hub(tmp_path / "glue", config="cola"))


def test_json_lines_give_lists_of_tags_and_questions(tmp_path: Path) -> None:
    sets = {
        "conll": {"tokens": ["Anna", "ran"], "ner_tags": [1, 0]},
        "squad": {"id": "q", "question": "Who?", "context": "Ann.", "answers": {"text": ["Ann"], "answer_start": [0]}},
    }
    for name, row in sets.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.jsonl").write_text(f"{json.dumps(row)}\n" * (2 if name == "conll" else 1))
        (tmp_path / name / "validation.jsonl").write_text(f"{json.dumps(row)}\n")
    columns = {"tagged": {"tags": "ner_tags", "names": ["O", "B-PER"]}}
    tags = load(hub(tmp_path / "conll", dev="validation", columns=columns)).train
    assert tuple(tags) == tuple(TaggedRecord(id, ("Anna", "ran"), ("B-PER", "O")) for id in "12")
    (question,) = load(hub(tmp_path / "squad", dev="validation", columns="question")).train
    assert isinstance(question, QuestionRecord)
    assert question.answers == ((("Ann", 0),),)


def test_lists_of_class_labels_are_tags_and_several_labels(tmp_path: Path) -> None:
    names = datasets.ClassLabel(names=["O", "B-PER"])
    features = datasets.Features(
        text=datasets.Value("string"), tokens=datasets.List(datasets.Value("string")), tags=datasets.List(names)
    )
    (tmp_path / "set").mkdir()
    rows = [{"text": f"{name} ran", "tokens": [name, "ran"], "tags": [1, 0]} for name in ("Anna", "Bob")]
    datasets.Dataset.from_list(rows, features=features).to_parquet(tmp_path / "set/train.parquet")
    (tagged,) = load(hub(tmp_path / "set", columns="tagged")).train
    assert tagged.tags == ("B-PER", "O")
    (text,) = load(hub(tmp_path / "set", columns={"text": {"text": "text", "label": "tags"}})).train
    assert isinstance(text, TextRecord)
    assert text.labels == ("B-PER", "O")


def test_a_missing_split_or_column_names_the_known_ones(glue: Path) -> None:
    with pytest.raises(DataError, match=r"source.hub.dev: .* a split 'valid' in glue; did you mean 'validation'\?"):
        load(hub(glue, dev="valid"))
    columns = {"pair": {"first": "sentence", "second": "sentence2"}}
    with pytest.raises(
        DataError, match=r"hub.columns.pair.first: .* 'sentence' in the split 'train' of glue; .* 'sentence2'.* idx\."
    ):
        load(hub(glue, columns=columns))


def test_a_test_split_without_labels_says_so(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    pairs(1, 0).to_parquet(tmp_path / "set/train.parquet")
    pairs(-1, -1).to_parquet(tmp_path / "set/test.parquet")
    with pytest.raises(DataError, match=r"the test split .* got none from set, test .*; 2 rows dropped: no label"):
        load(hub(tmp_path / "set", dev="train", test="test"))


def test_bad_rows_are_errors_or_counted_drops(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    rows = [{"sentence1": str(labels), "sentence2": "b", "label": labels} for labels in (["x"], ["x", "y"], ["y"])]
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "set/train.parquet")
    with pytest.raises(DataError, match="set, train, line 2: expected one label, found x, y"):
        load(hub(tmp_path / "set"))
    read = load(hub(tmp_path / "set", on_bad_row="skip")).report.read["train"]
    assert (read.rows, read.kept) == (3, 2)
    assert read.dropped["not one label"].first == [2]


def test_a_loading_script_is_refused_and_never_run(tmp_path: Path) -> None:
    folder = tmp_path / "scripted"
    folder.mkdir()
    ran = tmp_path / "ran"
    (folder / "scripted.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    pairs(1, 0).to_parquet(folder / "train.parquet")
    with pytest.raises(DataError, match="scripted' must hold only data, and has a loading script, which is never run"):
        load(hub(folder))
    with pytest.raises(DataError, match=r"and .*scripted\.py is a file: files are read by data.source.files"):
        load(hub(folder / "scripted.py"))
    assert not ran.exists()


def test_a_folder_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"the folder .*empty' must be readable by load_dataset: .*data files"):
        load(hub(tmp_path / "empty"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/train.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"the folder .*broken' must be readable by load_dataset: .*[Pp]arquet"):
        load(hub(tmp_path / "broken"))
    with pytest.raises(DataError, match=r"hub.revision: must be left out for a folder"):
        load(hub(tmp_path / "empty", revision="main"))
    datasets.Dataset.from_dict({"a": ["b"]}).save_to_disk(tmp_path / "saved")
    with pytest.raises(DataError, match=r"hub.config: must be left out for a data set that `save_to_disk` has written"):
        load(hub(tmp_path / "saved", config="plain"))
    with pytest.raises(DataError, match=r"data.source.hub.id '\$NOWHERE/x': the variable NOWHERE must be set"):
        load(hub("$NOWHERE/x"))


def test_a_key_is_that_of_the_content_and_a_changed_folder_is_read_again(glue: Path) -> None:
    config = hub(glue)
    before, digest = key(config), load(config).digest
    assert key(config) == before
    assert key(hub(glue, train="validation")) != before
    pairs(0, 0, 1).to_parquet(glue / "train-00000-of-00001.parquet")
    os.utime(glue / "train-00000-of-00001.parquet", ns=(0, 1))
    assert key(config) != before
    assert load(config).digest != digest


def test_without_a_network_one_error_says_what_works(tmp_path: Path) -> None:
    lines = [
        "from dice_ray.data.sources import DataConfig, load",
        "from dice_ray.errors import DataError",
        "try:",
        "    load(DataConfig.model_validate({'source': {'hub': {'id': 'glue', 'config': 'mrpc'}}}))",
        "except DataError as error:",
        "    print(error)",
    ]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert ran.stderr == ""
    assert ran.stdout.startswith("data.source.hub.id: 'glue' is no local folder, so the hub must be reached")
    assert "Without a network, give the folder of a copy; files are read by data.source.files" in ran.stdout


def test_the_groups_of_a_data_set_are_kept_whole_and_a_wrong_column_names_its_setting(tmp_path: Path) -> None:
    rows = {"text": [f"a text {n}" for n in range(60)], "label": ["x", "y"] * 30, "user": [n // 3 for n in range(60)]}
    datasets.Dataset.from_dict(rows).to_parquet(tmp_path / "a" / "train.parquet")
    columns = {"columns": {"text": {"text": "text"}}}
    config = hub(tmp_path / "a", **columns).model_copy(update={"groups": "user"})
    splits = load(config)
    assert {record.document for record in splits.train}.isdisjoint(record.document for record in splits.dev)
    assert len({record.document for record in splits.dev}) == 2
    for setting in ("groups", "time"):
        wrong = config.model_copy(update={setting: "usr"})
        must = rf"data\.{setting}: there must be a column 'usr' in the split 'train' of a; did you mean 'user'\?"
        with pytest.raises(DataError, match=must):
            load(wrong)


def test_only_train_needs_the_column_of_the_time(tmp_path: Path) -> None:
    rows = {"text": [f"text {n}" for n in range(120)], "label": ["x", "y"] * 60}
    train = datasets.Dataset.from_dict({**rows, "year": [*range(120)]}).select(range(60))
    test = datasets.Dataset.from_dict(rows).select(range(60, 120))
    datasets.DatasetDict({"train": train, "test": test}).save_to_disk(tmp_path / "a")
    config = hub(tmp_path / "a", test="test", columns={"text": {"text": "text"}}).model_copy(update={"time": "year"})
    assert [record.content for record in load(config).dev][-1] == ("text 59",)
