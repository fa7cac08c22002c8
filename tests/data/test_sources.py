"""Sources: splits, their report and digest, folders, and what cannot be loaded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dice_ray.data.formats.span_files import SpansConfig
from dice_ray.data.formats.texts import FoldersConfig
from dice_ray.data.imbalance import RatioConfig
from dice_ray.data.records import PairRecord, digest
from dice_ray.data.sources import DataConfig, FilesConfig, key, load
from dice_ray.errors import DataError
from dice_ray.settings import nest

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
        "groups": [],
    }


@pytest.mark.parametrize(
    ("dev", "test_share", "sizes", "drawn"),
    [
        (None, None, (36, 4, 0), "(dev is 0.1 of train, drawn with seed 0, stratified by label)"),
        (
            None,
            0.25,
            (27, 3, 10),
            "(test is 0.25 of train, drawn with seed 0, stratified by label; "
            "dev is 0.1 of the rest, drawn with seed 0, stratified by label)",
        ),
        ("b.tsv", 0.25, (30, 1, 10), "(test is 0.25 of train, drawn with seed 0, stratified by label)"),
    ],
)
def test_missing_splits_are_drawn_by_seed_and_lose_nothing(
    dev: str | None, test_share: float | None, sizes: tuple[int, ...], drawn: str, tmp_path: Path
) -> None:
    table(tmp_path, "a.tsv", [f"a{number}\tb\t1" for number in range(40)])
    table(tmp_path, "b.tsv", ["c\td\t1"])
    config = files(tmp_path, train="a.tsv", dev=dev).model_copy(update={"test_share": test_share})
    splits, again = load(config), load(config)
    other = load(config.model_copy(update={"split_seed": 1}))
    assert splits == again
    assert (splits.dev, splits.test) != (other.dev, other.test)
    assert splits.digest != other.digest
    assert (len(splits.train), len(splits.dev), len(splits.test)) == sizes
    of_train = [*splits.train, *splits.test, *(splits.dev if dev is None else ())]
    assert sorted(int(record.id) for record in of_train) == list(range(2, 42))
    assert drawn in str(splits.report)
    assert config.test_per_train() == (None if test_share is None else pytest.approx(sizes[2] / sizes[0]))


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


def test_extra_records_are_trained_on_and_leave_dev_and_test_as_they_are(tmp_path: Path) -> None:
    """Finds extra records that are drawn for test, that occur in it, or that share its ids; and a stale cache."""
    table(tmp_path, "a.tsv", [f"a{n}\tb{n}\t{n % 2}" for n in range(100)])
    plain = load(files(tmp_path, train="a.tsv").model_copy(update={"test_share": 0.2}))
    known = plain.test[0]
    table(tmp_path, "more.tsv", ["new\tone\t1", f"{known.first}\t{known.second}\t1", "new\ttwo\t0"])
    config = files(tmp_path, train="a.tsv", extra="more.tsv").model_copy(update={"test_share": 0.2})
    splits = load(config)
    assert (*splits.dev, *splits.test) == (*plain.dev, *plain.test)
    added = [PairRecord("more.tsv 2", "new", "one", "1"), PairRecord("more.tsv 4", "new", "two", "0")]
    assert list(splits.train) == [*plain.train, *added]
    assert splits.digest != plain.digest
    line = "  train: 2 records of more.tsv added to 72; 1 left out, as dev or test has their text or group"
    assert str(splits.report).splitlines()[1] == line
    altered = config.model_copy(update={"imbalance": RatioConfig(negatives=1, size=10)})
    assert load(altered, "1").report.sizes["train"] == 10
    assert str(load(altered, "1").report).splitlines()[
        1
    ] == f"{line}; 5 negatives and 5 positives by data.imbalance " + ("ratio, of 37 negatives and 37 positives")
    table(tmp_path, "more.tsv", ["other\tone\t1", f"{known.second.upper()}\t{known.first}\t1"])  # its text again
    assert load(config).train[-1].first == "other"
    with pytest.raises(
        DataError, match=r"^data\.source\.files\.extra: there must be a file .* did you mean 'more\.tsv'"
    ):
        load(files(tmp_path, train="a.tsv", extra="mor.tsv"))


def tickets(folder: Path, name: str, rows: list[tuple[str, int, str]]) -> None:
    """A table of a customer, a day and a text in each row."""
    lines = [
        f"{customer},2024-01-{day:02},{text},{'yes' if n % 4 == 0 else 'no'}"
        for n, (customer, day, text) in enumerate(rows)
    ]
    (folder / name).write_text("\n".join(["customer,day,text,label", *lines]))


def by(folder: Path, test: str | None = None, dev: str | None = None, **settings: Any) -> DataConfig:
    reader = {"tables": {"quoting": False, "delimiter": ",", "columns": {"text": {"text": "text"}}}}
    files = {"folder": str(folder), "train": "a.csv", "dev": dev, "test": test, "reader": reader}
    return DataConfig.model_validate({"source": {"files": files}, **settings})


def test_groups_are_kept_whole_counted_and_part_of_the_identity(tmp_path: Path) -> None:
    """Finds groups that are not read, a key or digest that older data share, and silence on groups in two splits."""
    tickets(tmp_path, "a.csv", [(f"C{n // 5}", 1, f"text {n}") for n in range(200)])
    splits = load(by(tmp_path, groups="customer", test_share=0.2))
    sides = [{record.document for record in split} for split in (splits.train, splits.dev, splits.test)]
    assert [len(side) for side in sides] == [29, 3, 8]
    assert len(set.union(*sides)) == 40
    report = str(splits.report).splitlines()
    assert "stratified by label, groups by `customer` whole; dev is" in report[0]
    assert report[1:] == ["  40 groups by `customer`, largest 2.5 %"]
    tickets(tmp_path, "test.csv", [(f"C{n}", 1, f"new {n}") for n in range(30, 50)])
    tickets(tmp_path, "dev.csv", [(f"D{n}", 1, f"old {n}") for n in range(9)])
    plain, grouped = (load(by(tmp_path, "test.csv", "dev.csv", **each)) for each in ({}, {"groups": "customer"}))
    (warning,) = re.findall("^Warning: .*", str(grouped.report), re.MULTILINE)
    assert warning.startswith("Warning: 10 of 20 groups of test also occur in train (data.groups): scores on test may")
    assert plain.digest != grouped.digest
    assert key(by(tmp_path, groups="customer")) == key(by(tmp_path)) | {"groups": "customer"}


def test_extra_records_of_a_group_of_test_are_left_out(tmp_path: Path) -> None:
    tickets(tmp_path, "a.csv", [(f"C{n // 5}", 1, f"text {n}") for n in range(200)])
    group = load(by(tmp_path, groups="customer", test_share=0.2)).test[0].document
    tickets(tmp_path, "more.csv", [(group, 1, "new 1"), ("D1", 1, "new 2")])
    config = by(tmp_path, groups="customer", test_share=0.2)
    source = config.source.model_copy(update={"extra": "more.csv"})
    splits = load(config.model_copy(update={"source": source}))
    assert [record.text for record in splits.train if record.text.startswith("new")] == ["new 2"]


def test_the_latest_records_are_dev_and_test_for_every_seed(tmp_path: Path) -> None:
    tickets(tmp_path, "a.csv", [(f"C{n}", 1 + n * 7 % 31, f"text {n}") for n in range(310)])
    config = by(tmp_path, time="day", test_share=0.2)
    splits, other = load(config), load(config.model_copy(update={"split_seed": 7}))
    assert splits.digest == other.digest != load(by(tmp_path, test_share=0.2)).digest
    days = [{1 + (int(record.id) - 2) * 7 % 31 for record in each} for each in (splits.train, splits.dev, splits.test)]
    assert days == [{*range(1, 23)}, {*range(23, 26)}, {*range(26, 32)}], "the id is the line"
    assert str(splits.report).splitlines()[0] == (
        "data: 220 train, 30 dev, 60 test records (test is the latest 0.2 of train by `day`, from 2024-01-26 on, for "
        "every seed; dev is the latest 0.1 of the rest by `day`, from 2024-01-23 on, for every seed)"
    )
    assert key(config) == key(config.model_copy(update={"split_seed": 7})), "one entry in the cache"
    assert config.test_per_train() is None, "no random draw: intervals are for this test split"


def test_of_groups_that_come_back_the_earlier_records_are_left_out(tmp_path: Path) -> None:
    """Else a customer of train is in the later test split too."""
    tickets(tmp_path, "a.csv", [(f"C{n % 80}" if n < 90 else f"D{n}", 1 + n // 10, f"text {n}") for n in range(100)])
    splits = load(by(tmp_path, time="day", groups="customer", test_share=0.2))
    sides = [{record.document for record in split} for split in (splits.train, splits.dev, splits.test)]
    assert len(set.union(*sides)) == sum(map(len, sides))
    assert (len(splits.train), len(splits.test)) == (60, 20)
    assert "  10 records left out of train, whose groups occur in a later split" in str(splits.report).splitlines()


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([("C", 1)] * 50, {"groups": "customer"}, r"data\.groups: dev must have about 0\.1 of 50 records.* gives 0: "),
        ([("C", 1)] * 95 + [("D", 1)] * 2, {"groups": "customer"}, "the draw gives 2: .* has 95, and there are 2"),
        ([("C", 1), ("D", 1)] * 50, {"groups": "customer"}, r"gives 50: .*Set another data\.dev_share"),
        ([("C", 1), ("D", 2)] * 50, {"time": "day"}, r"data\.time: dev must .* 'day' together, and the draw gives 50"),
        ([("C", 1)] * 50, {"time": "day", "test_share": 0.2}, r"data\.time: test must have about 0\.2 .* gives 50"),
    ],
    ids=["one group", "one large group", "two groups", "two days", "one day"],
)
def test_groups_or_times_that_cannot_be_split_are_refused(
    rows: list[tuple[str, int]], settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """Documents are then drawn in part: what the user asks for is never given up without an error."""
    tickets(tmp_path, "a.csv", [(*row, f"text {number}") for number, row in enumerate(rows)])
    with pytest.raises(DataError, match=message):
        load(by(tmp_path, **settings))


def test_bad_rows_are_errors_or_counted_drops(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", ["a\tb\t1", "a\tb", *["c"] * 7, "c\td\t0"])
    with pytest.raises(DataError, match=r"a.tsv, line 3: expected 3 columns as in the first line, found 2: 'a\\tb'"):
        load(files(tmp_path, train="a.tsv", dev="a.tsv"))
    splits = load(files(tmp_path, train="a.tsv", dev="a.tsv", on_bad_row="skip"))
    read = splits.report.read["train"]
    assert (read.rows, read.kept) == (10, 2)
    dropped = read.dropped["not 3 columns as in the first line"]
    assert (dropped.count, dropped.first) == (8, [3, 4, 5, 6, 7])


def test_the_digest_is_of_the_content_of_each_split(tmp_path: Path) -> None:
    found = []
    for name, changed in (("a", "none"), ("b", "none"), ("c", "train"), ("d", "dev"), ("e", "test")):
        (tmp_path / name).mkdir()
        splits = {split: f"{name}.{split}.tsv" for split in ("train", "dev", "test")}
        for split, file in splits.items():
            table(tmp_path / name, file, ["a\tb\t1", f"c\td\t{int(split == changed)}"])
        found.append(load(files(tmp_path / name, **splits)).digest)
    assert found[0] == found[1]
    assert len(set(found)) == 4
    records = (PairRecord("1", "a", "b", "1"),)
    assert digest([records, ()]) != digest([(), records])
    assert digest([records]) == "36c00560db2a20c8"


def test_a_file_read_by_other_rules_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", ['"a"\tb\t1', '"c"\td\t0'])
    for quoting, expected in ((False, {'"a"', '"c"'}), (True, {"a", "c"})):
        keys: dict[str, Any] = {"train": "a.tsv", "reader.tables.quoting": quoting}
        splits = load(files(tmp_path, **keys))
        assert {record.first for record in (*splits.train, *splits.dev)} == expected


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


def test_the_names_of_brats_files_and_their_splits_are_a_part_of_the_data(tmp_path: Path) -> None:
    """Finds a cache that keeps the old ids of a renamed file, or the old splits after a file was moved."""
    for split, name in (("train", "a"), ("train", "b"), ("dev", "d")):
        (tmp_path / split).mkdir(exist_ok=True)
        (tmp_path / split / f"{name}.txt").write_text(f"Ada {name} ran.\n")
        (tmp_path / split / f"{name}.ann").write_text("T1\tPER 0 3\tAda\n")
    config = DataConfig(source=FilesConfig(folder=str(tmp_path), train="train", dev="dev", reader=SpansConfig()))

    def ids() -> list[list[str]]:
        splits = load(config)
        return [[record.id for record in records] for records in (splits.train, splits.dev)]

    def moved(old: str, new: str) -> None:
        for suffix in (".txt", ".ann"):
            (tmp_path / f"{old}{suffix}").rename(tmp_path / f"{new}{suffix}")

    assert ids() == [["a.1", "b.1"], ["d.1"]]
    moved("train/b", "train/c")
    assert ids() == [["a.1", "c.1"], ["d.1"]]
    # Names and contents are in the same order as before.
    moved("train/c", "dev/c")
    assert ids() == [["a.1"], ["c.1", "d.1"]]


def test_a_missing_file_names_the_nearest_and_a_missing_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "dice_ray_runs").mkdir()
    for name in ("train.tsv", "dice_ray_runs/trian.tsv"):
        table(tmp_path, name, ["a\tb\t1"])
    near = r"data.source.files.train: .*trian.tsv; did you mean 'train.tsv'\? The folder holds: train.tsv\.$"
    with pytest.raises(DataError, match=near):
        load(files(tmp_path, train="trian.tsv"))
    for missing in (tmp_path / "none", "~no_such_user/data"):
        with pytest.raises(DataError, match="there is no folder"):
            load(files(missing, train="train.tsv"))


def test_no_split_may_be_empty(tmp_path: Path) -> None:
    table(tmp_path, "a.tsv", ["a\tb\t1"])
    table(tmp_path, "b.tsv", ["a\tb\t"])
    with pytest.raises(DataError, match=r"the test split must hold a record, got none from b\.tsv"):
        load(files(tmp_path, train="a.tsv", dev="a.tsv", test="b.tsv"))
    for name, lines in (("it has 1 record", ["a\tb\t1"]), ("it has records of one text", ["a\tb\t1"] * 2)):
        table(tmp_path, "a.tsv", lines)
        with pytest.raises(DataError, match=rf"the dev split must hold a record, got none from a\.tsv: {name}"):
            load(files(tmp_path, train="a.tsv"))
    table(tmp_path, "a.tsv", ["a\tb\t1", "c\td\t1"])
    with pytest.raises(DataError, match=r"must hold a record, got none from a\.tsv: it has too few records"):
        load(files(tmp_path, train="a.tsv").model_copy(update={"test_share": 0.5}))


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


def test_the_default_is_generated_with_a_dev_split_of_its_own() -> None:
    splits = load(DataConfig())
    assert splits.report.drawn == {}
    assert DataConfig().yields() is type(splits.train[0]) is PairRecord
    assert splits.report.sizes == {"train": 2000, "dev": 1000, "test": 1000}
    assert DataConfig().source.title == "synthetic:pairs"
