"""Guessed presets: they resolve, read whole real files, can be trained, and agree with the shipped presets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import dice_ray
from dice_ray import api
from dice_ray.cli.app import app
from dice_ray.config.init import _lines, start
from dice_ray.config.load import read_layer, resolve
from dice_ray.data import sources, urls
from dice_ray.data.formats.base import Given
from dice_ray.data.sources import FilesConfig
from dice_ray.errors import DataError, InputError
from dice_ray.run import build
from tests.house.tree import REPOSITORY

PRESETS = REPOSITORY / "search_spaces" / "presets"
SHIPPED = (
    *("mrpc", "msra", "qqp", "ritter2011_ner", "ritter2011_pos", "sst2", "sst5", "tnews"),
    *("ud14_zh", "ud_ewt", "weibo", "wnut17"),
)


@pytest.mark.real_data
@pytest.mark.parametrize("name", SHIPPED)
def test_the_guess_for_files_of_a_shipped_preset_is_that_preset(name: str) -> None:
    shipped = resolve([read_layer(PRESETS / f"{name}.yaml")])
    source = shipped.data.source
    assert isinstance(source, FilesConfig)
    folder = urls.expand_path(source.folder)
    others = {split: folder / file for split in ("dev", "test") if (file := getattr(source, split))}
    starter, preset = api.init(folder / source.train, **others, out=Path("mine.yaml"))
    guessed = resolve([read_layer(preset)])
    assert guessed.task.name == shipped.task.name
    assert getattr(guessed.task, "unit", None) == getattr(shipped.task, "unit", None)
    assert getattr(guessed.task, "tags", None) == getattr(shipped.task, "tags", None)
    # `init` leaves it to the study whether a test split is drawn.
    undrawn = shipped.data.model_copy(update={"test_share": None})
    read, expected = sources.load(guessed.data).report, sources.load(undrawn).report
    assert read == expected
    assert replace(starter.inspection.load, rarest={}) == read
    assert not starter.guess.bad


@pytest.mark.real_data
def test_columns_of_msra_are_read_as_its_parallel_files(data_folder: Path) -> None:
    guessed = start(data_folder / "msra" / "msra_test_bio.txt")
    assert guessed.guess.reader == {"conll": {}}
    assert guessed.inspection.load.read["train"].kept == 3442


def table(file: str, num_rows: int, *, positive: int = 5, label: str = "label") -> Path:
    lines = [
        f"{'bad' if n % positive == 0 else 'good'} thing number {n}\t{int(n % positive == 0)}" for n in range(num_rows)
    ]
    Path(file).write_text("\n".join([f"text\t{label}", *lines]))
    return Path(file)


def commented(text: str) -> str:
    """On one line, without the signs of comments."""
    return " ".join(text.replace("# ", "").split())


def test_a_guessed_preset_is_trained_as_it_is() -> None:
    starter, preset = api.init(table("train.tsv", 60), test=table("test.tsv", 20))
    assert preset == Path("train.yaml")
    train = starter.inspection.splits["train"]
    assert train.negatives + train.positives == 54, "a tenth of 60 is dev"
    counts = f"{train.negatives} negatives to {train.positives} positives"
    assert f"# Imbalance: {counts}, 3.91 to 1 ('1' is positive).\n" in starter.text
    result = dice_ray.train("train.yaml", {"training.epochs": 1})
    assert result.best.metric == "dev/f1_tuned"
    assert api.validate("train.yaml").task.positive == "1"  # type: ignore[union-attr]


def test_fewer_rows_than_a_batch_are_trained_too() -> None:
    _, preset = api.init(table("train.tsv", 20))
    assert api.validate(preset).training.batch_size == 18
    assert dice_ray.train(preset, {"training.epochs": 1}).is_finished


@pytest.mark.parametrize(("positive", "epochs"), [(2, 8), (50, 20), (20, 9)])
def test_few_positives_get_more_epochs_and_a_higher_rate(positive: int, epochs: int) -> None:
    """A user's 60 urgent tickets of 2,000 were never predicted after the epochs that all 2,000 call for."""
    _, preset = api.init(table("train.tsv", 1000, positive=positive))
    training = api.validate(preset).training
    assert training.epochs == epochs
    assert training.lr == (2e-3 if epochs > 8 else 1e-3)


def test_comments_give_reasons_and_yaml_the_values() -> None:
    starter, preset = api.init(table("train.tsv", 60))
    text = preset.read_text()
    assert text == starter.text
    lines = text.splitlines()
    assert lines[0] == "# Guessed by `dice-ray init` from train.tsv."
    place = next(number for number, line in enumerate(lines) if line.strip() == 'positive: "1"')
    assert lines[place - 1].strip().startswith("# The name of a positive label")
    assert all(len(line) <= 120 for line in lines if line.lstrip().startswith("#"))
    assert yaml.safe_load(text)["data"]["source"]["files"]["reader"] == starter.guess.reader


@pytest.mark.parametrize(
    "value", ["yes", "1", "a: b # c", 'tab\t"quote" \\', "\U0001f600\ufeff\x85\x7f\xa0é", True, 0, 0.001, {}]
)
def test_values_come_back_from_yaml(value: Any) -> None:
    values = {"a": {"b": value}, "c": 1, "given": {"0": 1, "no": 2, "a: b": {"on": 3}}}
    text = "\n".join(_lines(values, {"a.b": "why:\nor \x1b[31m not"}, "", 0))
    assert yaml.safe_load(text) == values


def test_a_preset_is_not_overwritten_by_default() -> None:
    table("train.tsv", 60)
    Path("train.yaml").write_text("mine")
    with pytest.raises(InputError, match=r"train\.yaml must not exist yet"):
        api.init(Path("train.tsv"))
    assert Path("train.yaml").read_text() == "mine"
    api.init(Path("train.tsv"), overwrite=True)
    assert Path("train.yaml").read_text() != "mine"


def test_the_working_directory_may_be_given_as_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name was empty, and so was that of the preset."""
    Path("mine").mkdir()
    table("mine/train.tsv", 60)
    monkeypatch.chdir("mine")
    _, preset = api.init(".")
    assert preset == Path("mine.yaml")


def test_other_folders_and_dollars_are_found() -> None:
    Path("a$b").mkdir()
    Path("c").mkdir()
    api.init(table("a$b/train.tsv", 60), dev=table("c/dev.tsv", 20), out=Path("c/mine.yaml"))
    assert sources.load(api.validate("c/mine.yaml").data).report.sizes == {"train": 60, "dev": 20}


def test_files_at_urls_are_named_by_the_folder_s_url(tmp_path: Path) -> None:
    """Finds a preset that names the copies, which another machine does not have."""
    url = tmp_path.as_uri()
    table("train.tsv", 60), table("test.tsv", 20)
    _, preset = api.init(f"{url}/train.tsv", test=f"{url}/test.tsv")
    assert preset == Path("train.yaml")
    config = api.validate(preset)
    assert isinstance(config.data.source, FilesConfig)
    assert (config.data.source.folder, config.data.source.test) == (url, "test.tsv")
    assert sources.load(config.data).report.sizes == {"train": 54, "dev": 6, "test": 20}
    with pytest.raises(InputError, match=r"files at URLs must be in one folder, .*, got file.*train\.tsv, test\.tsv"):
        api.init(f"{url}/train.tsv", test="test.tsv", overwrite=True)
    with pytest.raises(DataError, match=r"FILE: there must be a file .*trian\.tsv, .*did you mean 'train\.tsv'"):
        api.init(f"{url}/trian.tsv")


def test_a_label_of_one_text_is_not_drawn_for_dev() -> None:
    lines = [f"a thing number {n}\t{n % 2 if n < 50 else n}" for n in range(80)]
    Path("train.tsv").write_text("\n".join(["text\tlabel", *lines]))
    inspection = start(Path("train.tsv")).inspection
    assert inspection.splits["dev"].labels.keys() == {"0", "1"}
    assert inspection.splits["dev"].num_records == 8


def test_too_few_items_of_the_rarest_class_are_the_first_thing_said() -> None:
    Path("train.csv").write_text(
        "text,label\n" + "".join(f"a thing number {n},{'yes' if n % 20 == 0 else 'no'}\n" for n in range(600))
    )
    printed = commented(CliRunner().invoke(app, ["init", "train.csv"]).output)
    warning = "Warning: too few items of the rarest class: dev has 3 of 'yes', and with fewer than 20 a score"
    assert printed.startswith(f"Guessed by `dice-ray init` from train.csv. {warning}")
    assert warning in " ".join(CliRunner().invoke(app, ["inspect", "train.yaml"]).output.split())


def test_dropped_rows_are_printed() -> None:
    file = table("train.tsv", 300)
    file.write_text(file.read_text() + "\na thing without a label\t")
    printed = CliRunner().invoke(app, ["init", str(file)]).output
    assert "1 of 301 rows of train.tsv dropped: no label (line 302)" in printed


def test_the_task_is_that_of_all_rows_of_a_file_that_is_sorted_by_label() -> None:
    """The first 20,000 rows of a balanced file had one label much more often, and its F1 was scored."""
    rows = [f"the text {number}\t{label}" for number, label in enumerate("a" * 20_500 + "b" * 20_500)]
    Path("sorted.tsv").write_text("\n".join(["text\tlabel", *rows]))
    with pytest.raises(
        DataError, match="one value, 'a' in the first 20,000 rows: if the file is sorted by label, name"
    ):
        start(Path("sorted.tsv"))
    assert start(Path("sorted.tsv"), given=Given(label="label")).guess.task == {"text_classification": {}}


def test_the_guess_is_printed_as_json_on_request() -> None:
    printed = json.loads(CliRunner().invoke(app, ["init", str(table("train.tsv", 60)), "--json"]).output)
    assert printed["written"] == "train.yaml"
    assert printed["why"].keys() >= {"task", "data.source.files.reader"}
    assert printed["found"]["splits"]["train"]["labels"].keys() == {"0", "1"}
    (found,) = json.loads(CliRunner().invoke(app, ["inspect", "train.yaml", "--json"]).output)
    assert found == printed["found"]


TICKETS = "ref;subject;body;urgent;kind\n" + "".join(
    f"T{n};a subject numbered {n};é body number {n};{'no' if n % 4 else 'yes'};{'abc'[n % 3]}\n" for n in range(80)
)


def test_named_columns_replace_the_guess() -> None:
    Path("tickets.csv").write_bytes(TICKETS.encode("cp1250"))
    options = ["--text-column", "body", "--label-column", "urgent", "--id-column", "ref", "--positive", "no"]
    command = ["init", "tickets.csv", *options, "--encoding", "cp1250"]
    printed = CliRunner().invoke(app, command).output
    assert "TextRecord(id='T1', text='é body number 1', labels=('no',))" in printed
    config = api.validate("tickets.yaml")
    assert (config.task.positive, config.task.score) == ("no", "decision")  # type: ignore[union-attr]
    assert config.data.source.reader.encoding == "cp1250"  # type: ignore[union-attr]
    dice_ray.train("tickets.yaml", {"training.epochs": 1}, name="mine")
    predicted = dice_ray.predict("mine", "tickets.csv").text().splitlines()
    assert [line.partition("\t")[0] for line in predicted[:3]] == ["ref", "T0", "T1"]
    assert len(dice_ray.predict("mine", ["one line", "and another"]).text().splitlines()) == 3
    pair = CliRunner().invoke(app, ["init", "tickets.csv", "--overwrite", *options, "--text-column", "subject"]).output
    assert "PairRecord(id='T1', first='é body number 1', second='a subject numbered 1', label='no')" in pair


def test_named_columns_of_json_lines_and_of_a_file_without_header() -> None:
    rows = [
        dict(zip(*(line.split(";") for line in (TICKETS.split("\n")[0], row)), strict=True))
        for row in TICKETS.strip().split("\n")[1:]
    ]
    Path("tickets.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    api.init(Path("tickets.jsonl"), text_columns=["subject"], label_column="kind", out=Path("a.yaml"))
    Path("plain.csv").write_text(TICKETS.partition("\n")[2])
    api.init(Path("plain.csv"), text_columns=["1"], label_column="4", out=Path("b.yaml"))
    first, second = (sources.load(api.validate(preset).data).train for preset in ("a.yaml", "b.yaml"))
    assert [record.content for record in first] == [record.content for record in second]
    assert 'label: "kind"' in Path("a.yaml").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text_columns": ["bdy"]}, "There is no column named 'bdy'; did you mean 'body'\\? Known: body, kind, ref, "),
        (
            {"id_column": "id"},
            "There is no column named 'id'; did you mean 'kind'\\? Known: body, kind, ref, subject, urgent",
        ),
        ({"label_column": "urgent", "positive": "maybe"}, "There is no label named 'maybe'. Known: no, yes"),
        ({"encoding": "utf-9"}, "the encoding must be an encoding that Python knows, .* got 'utf-9'"),
        (
            {"text_columns": ["ref", "body", "subject"]},
            "text_columns must be a list of one column or two, got \\['ref'",
        ),
    ],
)
def test_a_column_label_or_encoding_that_does_not_exist_is_one_error(options: dict[str, Any], message: str) -> None:
    Path("tickets.csv").write_text(TICKETS)
    with pytest.raises((InputError, LookupError), match=message):
        api.init(Path("tickets.csv"), **options)


def test_a_rare_malformed_row_is_skipped_and_mentioned() -> None:
    file = table("train.tsv", 300)
    file.write_text(file.read_text() + "\nonly one cell")
    starter, preset = api.init(file)
    assert api.validate(preset).data.source.on_bad_row == "skip"  # type: ignore[union-attr]
    assert "line 302: expected 2 columns as in the first line" in starter.why["data.source.files.on_bad_row"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"out": Path("mine.txt")}, InputError, r"must be a \.yaml file in a folder that exists, got mine\.txt"),
        ({"out": Path("no/mine.yaml")}, InputError, r"must be a \.yaml file in a folder"),
        ({"dev": Path("none.tsv")}, DataError, r"must be a file none\.tsv"),
        ({"dev": Path("other.tsv")}, DataError, r"a column named 'label', found 'text', 'labl'; did you mean 'labl'"),
        ({"test": Path("more.tsv")}, DataError, r"every label of test must occur in the training split.*got '2'"),
    ],
)
def test_unusable_arguments_are_one_error(arguments: dict[str, Path], error: type[Exception], message: str) -> None:
    table("other.tsv", 20, label="labl")
    Path("more.tsv").write_text("text\tlabel\na new thing\t2\n")
    with pytest.raises(error, match=message):
        api.init(table("train.tsv", 60), **arguments)  # type: ignore[arg-type]
    assert not Path("train.yaml").exists()


def conll(file: str, num_sentences: int, *more: str) -> Path:
    sentences = [
        f"Ada B-PER\nran O\nto O\n{place}{n} B-LOC" for n in range(num_sentences) for place in ("Paris", "Bonn")
    ]
    Path(file).write_text("\n\n".join([*sentences, *more]) + "\n")
    return Path(file)


def test_dev_in_another_encoding_than_train_is_an_error() -> None:
    """Read in the encoding guessed for train, all accents of a dev file in UTF-8 were wrong letters, without a word."""

    def encoded(file: str, encoding: str, word: str) -> Path:
        rows = [f"{word} numéro {n}\t{'ab'[n % 2]}" for n in range(40)]
        Path(file).write_bytes("\n".join(["text\tlabel", *rows]).encode(encoding))
        return Path(file)

    train = encoded("train.tsv", "cp1252", "café … fermé")
    with pytest.raises(DataError, match=r"train.tsv looks like cp1252, but dev.tsv like utf-8: .* by --encoding"):
        api.init(train, dev=encoded("dev.tsv", "utf-8", "café"))
    encoded("dev.tsv", "latin-1", "café")  # which is the same in cp1252
    starter, _ = api.init(train, dev=Path("dev.tsv"))
    assert starter.inspection.splits["dev"].num_records == 40


def test_few_malformed_rows_of_any_split_are_skipped() -> None:
    """Malformed rows of the training file were skipped, and those of the test file an error."""
    test = conll("test.conll", 100, "a\tO\t\nb O")
    starter, preset = api.init(conll("train.conll", 60), test=test)
    assert api.validate(preset).data.source.on_bad_row == "skip"  # type: ignore[union-attr]
    reason = starter.why["data.source.files.on_bad_row"]
    assert "1, the first one at" in reason
    assert "test.conll, line 1001: expected 2 columns" in reason
    Path("test.conll").write_text("a O\n\nb B-PER O\n")
    with pytest.raises(DataError, match=r"1 of 2 rows of test.conll are malformed .* skip them by --on-bad-row skip"):
        api.init(Path("train.conll"), test=test, overwrite=True)
    starter, _ = api.init(Path("train.conll"), test=test, on_bad_row="skip", overwrite=True)
    assert starter.inspection.splits["test"].num_records == 1
    with pytest.raises(DataError, match="line 3: expected 2 columns"):
        api.init(Path("train.conll"), test=test, on_bad_row="error", overwrite=True)


def test_repeated_ids_can_be_skipped() -> None:
    """The option was named by no message, and a preset could be written only by hand."""
    lines = [json.dumps({"key_id": n, "text": f"a nice day {n}", "label": n % 2}) for n in [*range(40), 7]]
    Path("train.jsonl").write_text("\n".join(lines))
    options: dict[str, Any] = {"id_column": "key_id"}
    with pytest.raises(DataError, match=r"line 41: expected an id that no other row has.*--on-bad-row skip"):
        api.init(Path("train.jsonl"), **options)
    starter, _ = api.init(Path("train.jsonl"), **options, on_bad_row="skip")
    assert starter.inspection.load.read["train"].kept == 40


@pytest.mark.parametrize("on_bad_row", [None, "skip", "error"])
def test_a_guessed_column_of_ids_that_repeat_in_test_is_not_read(on_bad_row: Any) -> None:
    """The only way that init offered was to skip the rows with repeated ids, two thirds of the test split."""
    for split, step in (("train", 1), ("test", 3)):
        rows = [f"u{n // step},a nice day {n},{'ab'[n % 2]}" for n in range(60)]
        Path(f"{split}.csv").write_text("\n".join(["uid,text,label", *rows]))
    starter, preset = api.init("train.csv", test="test.csv", on_bad_row=on_bad_row)
    assert starter.inspection.splits["test"].num_records == 60
    (why,) = [reason for path, reason in starter.why.items() if path.endswith(".columns")]
    assert why.endswith("The column 'uid' is not read as ids, as some of them repeat; predictions count lines.")
    assert not starter.inspection.load.read["test"].dropped
    assert ('on_bad_row: "skip"' in preset.read_text()) == (on_bad_row == "skip")
    with pytest.raises(DataError, match=r"have an id of an earlier row: correct them, or skip"):
        api.init("train.csv", test="test.csv", id_column="uid", overwrite=True)


def test_types_that_train_lacks_are_named() -> None:
    """No run can find them, and nothing said so."""
    starter, preset = api.init(conll("train.conll", 30), test=conll("test.conll", 9, "b B-ORG\nc I-ORG\nd B-ORG"))
    assert starter.inspection.load.unseen == {"test": {"ORG": 2}}
    sentence = "test has classes that train lacks, which no run can predict: 'ORG' (2)"
    assert sentence in " ".join(preset.read_text().replace("#", "").split())
    assert sentence in str(build.prepare(api.validate(preset)).report())


def test_a_folder_is_read_by_the_names_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("tweets-train.tsv", "tweets-validation.tsv", "tweets-test.tsv", "README.md"):
        table(str(folder / name), 40)
    starter, preset = api.init(folder)
    assert preset == Path("corpus.yaml")
    sizes = {split: facts.num_records for split, facts in starter.inspection.splits.items()}
    assert sizes == {"train": 40, "dev": 40, "test": 40}
    (folder / "train.tsv").touch()
    with pytest.raises(DataError, match=r"one file must be named train, got train.tsv, tweets-train.tsv"):
        api.init(folder, overwrite=True)
    for name in ("train.tsv", "tweets-train.tsv"):
        (folder / name).unlink()
    with pytest.raises(DataError, match=r"a file must be named train, and the files are tweets-test.tsv, tweets-val"):
        api.init(folder, overwrite=True)


def test_the_lists_of_one_document_are_its_splits(tmp_path: Path) -> None:
    def texts(*labels: str) -> list[list[str]]:
        return [[f"a nice day {number}", labels[number % len(labels)]] for number in range(40)]

    rows = {"oos_train": texts("oos"), "val": texts("a", "b"), "train": texts("a", "b", "b")}
    (tmp_path / "all.json").write_text(json.dumps(rows))
    starter, out = api.init(tmp_path / "all.json", out=tmp_path / "all.yaml")
    source = yaml.safe_load(out.read_text())["data"]["source"]["files"]
    assert {split: source.get(split) for split in ("train", "dev", "test")} == {
        "train": "all.json#train",
        "dev": "all.json#val",
        "test": None,
    }
    assert starter.inspection.splits["dev"].labels == {"a": 20, "b": 20}
    assert starter.why["data.source.files.train"].endswith("These are not read: oos_train.")
    assert api.inspect([out])[0].splits == starter.inspection.splits


def test_a_folder_of_brat_and_one_of_datasets_make_presets_that_load(tmp_path: Path) -> None:
    """Both were refused; a preset must find the folder again, and read all splits of it."""
    import datasets

    for split in ("train", "dev"):
        for number in range(9):
            path = tmp_path / "brat" / split / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"\nAda {number} sings in Bonn.\nAnd so on.\n")
            path.with_suffix(".ann").write_text("T1\tPER 1 4\tAda\nT2\tLOC 16 20\tBonn\nR1\tin Arg1:T1 Arg2:T2\n")
    starter, out = api.init(tmp_path / "brat", out=tmp_path / "brat.yaml")
    assert {split: facts.num_records for split, facts in starter.inspection.splits.items()} == {"train": 18, "dev": 18}
    assert starter.inspection.splits["train"].labels == {"O": 72, "B-PER": 9, "B-LOC": 9}
    assert api.inspect([out])[0].splits == starter.inspection.splits
    names = datasets.ClassLabel(names=["no", "yes"])
    features = datasets.Features(text=datasets.Value("string"), label=names)
    rows = datasets.Dataset.from_dict({"text": [f"a nice {n}" for n in range(40)], "label": [n % 2 for n in range(40)]})
    saved = datasets.DatasetDict(train=rows.cast(features), validation=rows.cast(features))
    saved.save_to_disk(str(tmp_path / "saved"))
    starter, out = api.init(tmp_path / "saved", out=tmp_path / "saved.yaml")
    assert starter.inspection.splits["dev"].labels == {"no": 20, "yes": 20}
    assert api.inspect([out])[0].splits == starter.inspection.splits
    with pytest.raises(InputError, match="dev and test must be splits of the folder"):
        api.init(tmp_path / "saved", dev=out, out=tmp_path / "other.yaml")


def test_data_can_be_inspected_with_other_settings() -> None:
    _, preset = api.init(table("train.tsv", 60))
    (inspection,) = api.inspect([preset], ["data.dev_share=0.5"])
    assert inspection.splits["dev"].num_records == 30


def test_columns_of_groups_and_times_are_written_or_pointed_out() -> None:
    """They are never used by themselves; and a group that repeats is not taken for a label."""
    rows = [
        f"{n},user{n // 7},2024-01-{1 + n // 10:02},it is {'bad' if n % 5 == 0 else 'good'} number {n},{n % 5 == 0}"
        for n in range(200)
    ]
    Path("a.csv").write_text("\n".join(["ref,user_id,created_at,text,bad", *rows]))
    _, preset = api.init("a.csv")
    text = commented(preset.read_text())
    assert "Splits can be drawn by `groups: user_id` or `time: created_at` beside `source`." in text
    assert api.validate(preset).data.split_columns() == {}
    printed = (
        CliRunner().invoke(app, ["init", "a.csv", "--overwrite", "--group", "user_id", "--time", "created_at"]).output
    )
    lines = commented(printed)
    assert (
        "data: 175 train, 20 dev records (dev is the latest 0.1 of train by `created_at`, from 2024-01-19 on" in lines
    )
    assert "29 groups by `user_id`, largest 3.6 % 5 records left out of train, whose groups occur in a later" in lines
    assert "Splits can be drawn by" not in printed
    assert api.validate(preset).data.split_columns() == {"groups": "user_id", "time": "created_at"}
    _, preset = api.init("a.csv", time_column="created_at", overwrite=True)
    assert "can be drawn by `groups: user_id` beside" in " ".join(preset.read_text().replace("#", "").split())
    Path("b.csv").write_text("\n".join(rows))
    _, preset = api.init("b.csv", group_column="1", time_column="2")
    assert api.validate(preset).data.split_columns() == {"groups": 1, "time": 2}
    Path("c.csv").write_text("\n".join(["ref,user_id,created_at,text,", *rows]))  # the label has no name
    _, preset = api.init("c.csv", group_column="user_id")
    assert api.validate(preset).data.split_columns() == {"groups": "user_id"}
    with pytest.raises(LookupError, match="There is no column named 'usr_id'; did you mean 'user_id'"):
        api.init("a.csv", group_column="usr_id", overwrite=True)
    with pytest.raises(InputError, match="a column must have one use, and 'bad' was given for several"):
        api.init("a.csv", group_column="bad", label_column="bad", overwrite=True)
