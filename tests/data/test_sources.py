"""Sources: splits, their report and digest, folders, and what cannot be loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dice_ray.data.formats.span_files import SpansConfig
from dice_ray.data.formats.texts import FoldersConfig
from dice_ray.data.records import PairRecord
from dice_ray.data.sources import DataConfig, FilesConfig, key, load
from dice_ray.errors import DataError
from dice_ray.settings import nest
from tests.data.digests import digest

HEAD = "sentence1\tsentence2\tlabel\n"


def files(folder: Path | str, reader: str = "data.source.files.reader.tables", **keys: Any) -> DataConfig:
    flat = {"data.source.files.folder": str(folder), f"{reader}.quoting": False}
    flat |= {f"data.source.files.{key}": value for key, value in keys.items()}
    return DataConfig(**nest(flat)["data"])


def table(folder: Path, name: str, rows: list[str]) -> None:
    (folder / name).write_text(HEAD + "".join(f"{row}\n" for row in rows))


def test_each_split_comes_from_its_file_and_shared_records_are_counted(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", ["a\tb\t1", "c\td\t0", "e\tf\t"])
    table(tmp_path, "b.tsv", ["c\td\t1"])
    table(tmp_path, "c.tsv", ["g\th\t1", "a\tb\t1", "a\tb\t0"])
    splits = load(files(tmp_path, train="a.tsv", dev="b.tsv", test="c.tsv"))
    assert splits.train == (PairRecord("2", "a", "b", "1"), PairRecord("3", "c", "d", "0"))
    assert [record.id for record in splits.test] == ["2", "3", "4"]
    assert splits.report.plain() == {
        "read": {
            "train": {
                "origin": "a.tsv",
                "rows": 3,
                "kept": 2,
                "dropped": {"no label": {"count": 1, "first": [4]}},
                "noted": {},
            },
            "dev": {"origin": "b.tsv", "rows": 1, "kept": 1, "dropped": {}, "noted": {}},
            "test": {"origin": "c.tsv", "rows": 3, "kept": 3, "dropped": {}, "noted": {}},
        },
        "sizes": {"train": 2, "dev": 1, "test": 3},
        "drawn": {},
        "shared": {"train and dev": 1, "train and test": 2},
        "cut": {},
        "altered": None,
        "rarest": {},
        "unseen": {},
    }


def test_a_missing_dev_split_is_drawn_by_seed_and_loses_nothing(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", [f"a{number}\tb\t1" for number in range(40)])
    config = files(tmp_path, train="a.tsv")
    splits, again = load(config), load(config)
    other = load(config.model_copy(update={"split_seed": 1}))
    assert splits == again
    assert splits.dev != other.dev
    assert splits.digest != other.digest
    assert (len(splits.train), len(splits.dev), len(splits.test)) == (36, 4, 0)
    assert sorted(int(record.id) for record in [*splits.train, *splits.dev]) == list(range(2, 42))
    assert "0.1 of train, drawn with seed 0" in str(splits.report)


def test_a_test_split_is_drawn_before_dev_and_by_the_same_seed(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", [f"a{number}\tb\t1" for number in range(40)])
    config = files(tmp_path, train="a.tsv").model_copy(update={"test_share": 0.25})
    splits, other = load(config), load(config.model_copy(update={"split_seed": 1}))
    assert (len(splits.train), len(splits.dev), len(splits.test)) == (27, 3, 10)
    assert sorted(int(record.id) for record in [*splits.train, *splits.dev, *splits.test]) == list(range(2, 42))
    assert splits.digest != other.digest
    assert splits.test != other.test
    assert (
        "(test is 0.25 of train, drawn with seed 0, stratified by label; "
        "dev is 0.1 of the rest, drawn with seed 0, stratified by label)"
    ) in str(splits.report)
    assert config.test_per_train() == pytest.approx(10 / 27)


def test_duplicates_of_training_records_are_in_no_drawn_split(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", [f"a{number % 20}\tb\t{number // 20}" for number in range(40)])
    config = files(tmp_path, train="a.tsv")
    dev = load(config)
    assert (len(dev.dev), dev.report.shared) == (4, {})
    splits = load(config.model_copy(update={"test_share": 0.25}))
    assert (len(splits.test), splits.report.shared) == (10, {})


def test_splits_drawn_by_an_earlier_method_are_not_taken_from_the_cache(tmp_path: Path) -> None:
    """A study resumed on a mixture of old and new splits would train on rows that it tests on."""
    table(tmp_path, "a.tsv", ["a\tb\t1", "c\td\t0"])
    assert key(files(tmp_path, train="a.tsv"))["draw"] == "stratified, joined documents"
    assert "draw" not in key(files(tmp_path, train="a.tsv", dev="a.tsv"))


def test_an_existing_dev_split_stays_if_a_test_split_is_drawn(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", [f"a{number}\tb\t1" for number in range(40)])
    table(tmp_path, "b.tsv", ["c\td\t1"])
    config = files(tmp_path, train="a.tsv", dev="b.tsv").model_copy(update={"test_share": 0.25})
    assert load(config).report.sizes == {"train": 30, "dev": 1, "test": 10}
    assert config.test_per_train() == pytest.approx(10 / 30)


@pytest.mark.parametrize(("num_articles", "whole"), [(1, "context"), (20, "article")])
def test_articles_stay_whole_and_of_few_articles_the_paragraphs(num_articles: int, whole: str, tmp_path: Path) -> None:
    articles = [
        {
            "paragraphs": [
                {
                    "context": f"{article} {paragraph}",
                    "qas": [
                        {"id": f"{article} {paragraph} {item}", "question": "Who?", "is_impossible": True}
                        for item in range(5)
                    ],
                }
                for paragraph in range(40 // num_articles)
            ]
        }
        for article in range(num_articles)
    ]
    (tmp_path / "a.json").write_text(json.dumps({"data": articles}))
    source = {"files": {"folder": str(tmp_path), "train": "a.json", "reader": "squad"}}
    splits = load(DataConfig.model_validate({"source": source}))
    assert (len(splits.train), len(splits.dev)) == (180, 20)
    train, dev = (
        {record.context.split()[0] if whole == "article" else record.context for record in split}
        for split in (splits.train, splits.dev)
    )
    assert not train & dev
    assert ("documents whole" in str(splits.report)) == (whole == "article")


@pytest.mark.parametrize(
    ("reader", "mark", "sentence"),
    [
        ("conll", "-DOCSTART- O\n\n", "word{} O\n\n"),
        ("conllu", "# newdoc id = 1\n", "1\tword{}" + "\t_\tNOUN" + "\t_" * 6 + "\n\n"),
    ],
)
def test_documents_of_tagged_sentences_stay_whole(reader: str, mark: str, sentence: str, tmp_path: Path) -> None:
    text = "".join(
        (mark if number % 10 == 0 else "") + sentence.format(f"{number // 10}x{number}") for number in range(200)
    )
    (tmp_path / "a.txt").write_text(text)
    source = {"files": {"folder": str(tmp_path), "train": "a.txt", "reader": reader}}
    splits = load(DataConfig.model_validate({"source": source}))
    train, dev = ({record.words[0].split("x")[0] for record in split} for split in (splits.train, splits.dev))
    assert (len(splits.dev), len(dev), train & dev) == (20, 2, set())


def test_bad_rows_are_errors_or_counted_drops(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", ["a\tb\t1", "a\tb", *["c"] * 7, "c\td\t0"])
    with pytest.raises(DataError, match=r"a.tsv, line 3: expected 3 columns as in the first line, found 2: 'a\\tb'"):
        load(files(tmp_path, train="a.tsv", dev="a.tsv"))
    splits = load(files(tmp_path, train="a.tsv", dev="a.tsv", on_bad_row="skip"))
    read = splits.report.read["train"]
    assert (read.rows, read.kept) == (10, 2)
    dropped = read.dropped["not 3 columns as in the first line"]
    assert (dropped.count, dropped.first) == (8, [3, 4, 5, 6, 7])


def test_a_repeated_id_is_a_bad_row(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", ["a\tb\t1", "a\tc\t0"])
    config = files(tmp_path, train="a.tsv", **{"reader.tables.columns.pair.id": "sentence1"})
    with pytest.raises(
        DataError, match="line 3: expected an id that no other row has, found 'a', already the id of line 2"
    ):
        load(config)


def test_the_digest_is_of_the_content_alone(tmp_path: Path) -> None:
    found = set()
    for name, rows in [("a", ["a\tb\t1", "c\td\t1"]), ("b", ["a\tb\t1", "c\td\t1"]), ("c", ["a\tb\t1", "c\td\t0"])]:
        (tmp_path / name).mkdir()
        table(tmp_path / name, f"{name}.tsv", rows)
        found.add(load(files(tmp_path / name, train=f"{name}.tsv")).digest)
    assert len(found) == 2
    records = (PairRecord("1", "a", "b", "1"),)
    assert digest([records, ()]) != digest([(), records])
    assert digest([records]) == "36c00560db2a20c8"


def test_a_file_read_by_other_rules_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", ['"a"\tb\t1', '"c"\td\t0'])
    for quoting, expected in ((False, {'"a"', '"c"'}), (True, {"a", "c"})):
        keys: dict[str, Any] = {"train": "a.tsv", "reader.tables.quoting": quoting}
        splits = load(files(tmp_path, **keys))
        assert {record.first for record in (*splits.train, *splits.dev)} == expected


def test_the_digest_changes_with_each_split(tmp_path: Path) -> None:
    digests = set()
    for changed in ("none", "train", "dev", "test"):
        for split in ("train", "dev", "test"):
            table(tmp_path, f"{split}.tsv", ["a\tb\t1", f"c\td\t{int(split == changed)}"])
        digests.add(load(files(tmp_path, train="train.tsv", dev="dev.tsv", test="test.tsv")).digest)
    assert len(digests) == 4


def test_a_folder_may_hold_variables_and_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(tmp_path, "a.tsv", ["a\tb\t1", "c\td\t0"])
    monkeypatch.setenv("CORPORA", str(tmp_path.parent))
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    for folder in (f"$CORPORA/{tmp_path.name}", f"${{CORPORA}}/{tmp_path.name}", f"~/{tmp_path.name}"):
        config = files(folder, train="a.tsv")
        assert load(config).report.read["train"].kept == 2
        assert config.source.title == tmp_path.name
    monkeypatch.delenv("CORPORA")
    with pytest.raises(DataError, match="the variable CORPORA must be set"):
        load(files("$CORPORA/x", train="a.tsv"))
    with pytest.raises(DataError, match=r"write `\$\$` for a dollar sign"):
        load(files("x$", train="a.tsv"))


def test_the_names_of_folders_are_a_part_of_the_data(tmp_path: Path) -> None:
    """Finds a cache that takes renamed classes for the same data, as no file has changed."""
    for name in ("a", "b"):
        (tmp_path / "train" / name).mkdir(parents=True)
        for number in range(20):
            (tmp_path / "train" / name / f"{number}.txt").write_text(f"a day {name} {number}")
    config = DataConfig(source=FilesConfig(folder=str(tmp_path), train="train", reader=FoldersConfig()))
    assert {record.labels for record in load(config).train} == {("a",), ("b",)}
    (tmp_path / "train/b").rename(tmp_path / "train/c")
    assert {record.labels for record in load(config).train} == {("a",), ("c",)}


def test_the_names_of_brats_files_are_a_part_of_the_data(tmp_path: Path) -> None:
    """Finds a cache that keeps the old ids of a renamed file, although predictions and errors are listed by id."""
    for name in ("a", "b"):
        (tmp_path / f"train/{name}.txt").parent.mkdir(exist_ok=True)
        (tmp_path / f"train/{name}.txt").write_text(f"Ada {name} ran.\n")
        (tmp_path / f"train/{name}.ann").write_text("T1\tPER 0 3\tAda\n")
    config = DataConfig(source=FilesConfig(folder=str(tmp_path), train="train", dev="train", reader=SpansConfig()))
    assert [record.id for record in load(config).train] == ["a.1", "b.1"]
    for suffix in (".txt", ".ann"):
        (tmp_path / "train/b").with_suffix(suffix).rename((tmp_path / "train/c").with_suffix(suffix))
    assert [record.id for record in load(config).train] == ["a.1", "c.1"]


def test_a_file_that_is_moved_to_another_split_is_read_there(tmp_path: Path) -> None:
    """Finds a cache that keeps the old splits, since names and contents are in the same order as before."""
    for split, name in (("train", "a"), ("train", "b"), ("dev", "c")):
        (tmp_path / split).mkdir(exist_ok=True)
        (tmp_path / split / f"{name}.txt").write_text(f"Ada {name} ran.\n")
        (tmp_path / split / f"{name}.ann").write_text("T1\tPER 0 3\tAda\n")
    config = DataConfig(source=FilesConfig(folder=str(tmp_path), train="train", dev="dev", reader=SpansConfig()))
    assert [record.id for record in load(config).train] == ["a.1", "b.1"]
    for name in ("b.txt", "b.ann"):
        (tmp_path / "train" / name).rename(tmp_path / "dev" / name)
    splits = load(config)
    assert [[record.id for record in records] for records in (splits.train, splits.dev)] == [["a.1"], ["b.1", "c.1"]]


def test_a_missing_file_names_the_nearest_and_a_missing_folder_itself(tmp_path: Path) -> None:
    table(tmp_path, "train.tsv", ["a\tb\t1"])
    with pytest.raises(DataError, match=r"data.source.files.train: .*trian.tsv; did you mean 'train.tsv'\?"):
        load(files(tmp_path, train="trian.tsv"))
    with pytest.raises(DataError, match="there is no folder"):
        load(files(tmp_path / "none", train="train.tsv"))


def test_no_split_may_be_empty(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", ["a\tb\t1"])
    table(tmp_path, "b.tsv", ["a\tb\t"])
    with pytest.raises(DataError, match=r"the test split must hold a record, got none from b\.tsv"):
        load(files(tmp_path, train="a.tsv", dev="a.tsv", test="b.tsv"))
    for name, lines in (("it has 1 record", ["a\tb\t1"]), ("it has records of one text", ["a\tb\t1"] * 2)):
        table(tmp_path, "a.tsv", lines)
        with pytest.raises(DataError, match=rf"the dev split must hold a record, got none from a\.tsv: {name}"):
            load(files(tmp_path, train="a.tsv"))


def test_too_few_records_for_dev_and_test_are_not_called_one_text(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", ["a\tb\t1", "c\td\t1"])
    with pytest.raises(DataError, match=r"must hold a record, got none from a\.tsv: it has too few records"):
        load(files(tmp_path, train="a.tsv").model_copy(update={"test_share": 0.5}))


def test_a_folder_of_a_user_who_does_not_exist_is_a_missing_folder(tmp_path: Path) -> None:
    """A slip for `~/data`, it was a RuntimeError."""
    with pytest.raises(DataError, match="there is no folder"):
        load(files(Path("~no_such_user/data"), train="a.tsv"))


def test_questions_without_answers_cannot_be_a_test_split(tmp_path: Path) -> None:
    """They were read, and the run failed when it was scored, after its training."""
    question = {"id": "1", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}
    for name, asked in (("train", question), ("test", question | {"answers": []}), ("dev", question)):
        content = {"data": [{"paragraphs": [{"context": "Ann ran.", "qas": [asked]}]}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    splits = {name: f"{name}.json" for name in ("train", "dev", "test")}
    config = DataConfig(source={"files": {"folder": str(tmp_path), "reader": "squad", **splits}})
    with pytest.raises(DataError, match=r"test split .* 1 row dropped: no label") as raised:
        load(config)
    assert "they are for `dice-ray predict`" in str(raised.value)


def test_quoting_must_be_stated(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"quoting\s+Field required"):
        DataConfig(source={"files": {"train": "a.tsv", "reader": "tables"}})


def test_the_default_is_generated_with_a_dev_split_of_its_own() -> None:
    splits = load(DataConfig())
    assert splits.report.drawn == {}
    assert DataConfig().yields() is type(splits.train[0]) is PairRecord
    assert splits.report.sizes == {"train": 2000, "dev": 1000, "test": 1000}
    assert DataConfig().source.title == "synthetic:pairs"
