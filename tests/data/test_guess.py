"""Guesses: real files of questions, small files of every format, and files of no known format."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import feather

from dice_ray.data.formats.base import Given
from dice_ray.data.formats.candidates import choose_columns
from dice_ray.data.guess import guess
from dice_ray.data.records import TextRecord
from dice_ray.errors import DataError, InputError, UnknownNameError

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


def sentence(number: int) -> str:
    return " ".join(random.Random(number).choices(WORDS, k=6)) + f" number {number}"


def rows(*labels: str, size: int = 40) -> list[tuple[str, str]]:
    return [(sentence(number), labels[number % len(labels)]) for number in range(size)]


TEXT: dict[str, Any] = {"text": "text", "label": "label"}
DECIDED: dict[str, Any] = {"score": "decision"}
TAGGED = [["Ada B-PER", "met O", "Grace I-PER"], ["in O", "Paris B-LOC", ". O"]] * 10
POS = [["the DT", "cat NN"], ["a DT", "dog NN", "ran VBD"]] * 10
QUESTION: dict[str, Any] = {"id": "1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}


def conll(sentences: list[list[str]], separator: str = " ") -> str:
    return "\n\n".join("\n".join(line.replace(" ", separator) for line in lines) for lines in sentences) + "\n"


def squad(*answers: tuple[str, int], **more: object) -> str:
    question = QUESTION | {"answers": [{"text": text, "answer_start": start} for text, start in answers]} | more
    return json.dumps({"data": [{"paragraphs": [{"context": "Ada met Grace.", "qas": [question]}]}]})


def query(*spans: tuple[int, int]) -> str:
    starts, ends = [first for first, _ in spans], [last for _, last in spans]
    names = {"context": "Ada met Grace", "query": "people", "entity_label": "PER", "qas_id": "0.1"}
    return json.dumps([names | {"start_position": starts, "end_position": ends}])


def table(lines: Sequence[tuple[str, ...]], delimiter: str) -> str:
    return "\n".join(delimiter.join(line) for line in lines) + "\n"


def read_as_table(columns: dict[str, Any], delimiter: str | None = None, **more: Any) -> dict[str, Any]:
    """The reader of a table with tabs or, where a delimiter is given, of one with quotes as in CSV."""
    form = {"quoting": False} if delimiter is None else {"quoting": True, "delimiter": delimiter}
    return {"tables": {**form, **more, "columns": columns}}


CONLLU = "\n\n".join(["1\ta\t_\tDET\tDT\t_\t_\t_\t_\t_\n2\tb\t_\tNOUN\tNN\t_\t_\t_\t_\t_"] * 3)
TOXIC = ["toxic", "insult", "obscene", "threat"]
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "first.txt": (
        "\n\n".join("\n".join(" ".join(line.split()[::-1]) for line in each) for each in TAGGED),
        {"conll": {"word": 1, "tag": 0}},
        {"tagging": {}},
    ),
    "untyped.txt": (conll([["BRCA1 B", "gene I", "is O", "a O", "cause O"]] * 9), {"conll": {}}, {"tagging": {}}),
    "pos.txt": (conll(POS), {"conll": {"tags": "plain"}}, {"tagging": {"tags": "plain"}}),
    "comment.txt": ("# id 1 of 2\n" + conll(TAGGED), {"conll": {"comment": "#"}}, {"tagging": {}}),
    "hash_word.txt": (
        "# id 1 of 2\n" + conll([*TAGGED, ["#rstats O", "in O", "#paris B-LOC"]]),
        {"conll": {"comment": "# "}},
        {"tagging": {}},
    ),
    "hash.txt": (conll([*TAGGED, ["# O"]]), {"conll": {}}, {"tagging": {}}),
    "one.txt": (conll(TAGGED[:1]), {"conll": {}}, {"tagging": {}}),
    "types.txt": (
        conll([["Ada PER", "Byron PER", "saw O", "it O", "in O", "Paris LOC", "then O"]] * 9),
        {"conll": {"tags": "types"}},
        {"tagging": {}},
    ),
    "lower.txt": (conll([["Ada b-per", "Byron i-per", "ran o"]] * 9), {"conll": {}}, {"tagging": {}}),
    "last.txt": (conll([["Ada PER_B", "Byron PER_I", "ran O"]] * 9), {"conll": {}}, {"tagging": {}}),
    # O is a pronoun.
    "tweets.txt": (
        conll([["he O", "ran V", "home N", "it O"]] * 9),
        {"conll": {"tags": "plain"}},
        {"tagging": {"tags": "plain"}},
    ),
    "tokens.tsv": (
        table(
            [
                ("sentence_id", "token", "pos"),
                *[(str(n), w, p) for n in range(20) for w, p in (("the", "DT"), ("cat", "NN"), ("ran", "VBD"))],
            ],
            "\t",
        ),
        read_as_table({"words": {"sentence": "sentence_id", "word": "token", "tag": "pos", "tags": "plain"}}),
        {"tagging": {"tags": "plain"}},
    ),
    "ids.csv": (
        table([("id", "text", "label"), *((f"x{n}", t, y) for n, (t, y) in enumerate(rows("a", "b")))], ","),
        read_as_table({"text": TEXT | {"id": "id"}}, ","),
        {"text_classification": {}},
    ),
    "middle.txt": (conll([["a B-X 1", "b O 2"], ["c O 3"]] * 9), {"conll": {"tag": 1}}, {"tagging": {}}),
    "xpos.conllu": (
        CONLLU.replace("DET", "_").replace("NOUN", "_"),
        {"conllu": {"tag": "xpos"}},
        {"tagging": {"tags": "plain"}},
    ),
    "slash.txt": ("1/2/CD cats/NN\n" * 4, {"word_tag": {"separator": "/"}}, {"tagging": {"tags": "plain"}}),
    "spans_words.txt": ("Ada_B-PER met_O\n" * 4, {"word_tag": {"tags": "spans"}}, {"tagging": {}}),
    "chinese.txt": ("我们_PN 喜欢_VV\n" * 4, {"word_tag": {}}, {"tagging": {"tags": "plain", "unit": "character"}}),
    "no_header.tsv": (
        table([(label, text) for text, label in rows("a", "b", "b", "b", "b")], "\t"),
        read_as_table({"text": {"text": 1, "label": 0}}, header=False),
        {"text_classification": {"positive": "a"} | DECIDED},
    ),
    "odd_names.csv": (
        table([("x", "y"), *rows("low", "mid", "mid", "high")], ","),
        read_as_table({"text": {"text": "x", "label": "y"}}, ","),
        {"text_classification": {"score": "macro_f1"}},
    ),
    "quoted.csv": (
        table([("text", "label"), *((f'"{text}, ""so"" to say"', label) for text, label in rows("0", "1"))], ","),
        read_as_table({"text": TEXT}, ","),
        {"text_classification": {}},
    ),
    "raw.tsv": (
        table([("text", "label"), *((f'"{text}" they said', label) for text, label in rows("0", "1"))], "\t"),
        read_as_table({"text": TEXT}),
        {"text_classification": {}},
    ),
    "several.csv": (
        table([("text", "labels"), *rows("joy", "joy;fear", "fear;anger", "anger")], "|"),
        read_as_table({"text": {"text": "text", "label": "labels", "separator": ";"}}, "|"),
        {"text_classification": {"labels": "several"}},
    ),
    "two_texts.csv": (
        table([(str(n % 4), f"on {t}", f"{t} and more") for n, (t, _) in enumerate(rows("a"))], ","),
        read_as_table({"text": {"text": 2, "label": 0}}, ",", header=False),
        {"text_classification": {}},
    ),
    "two_rows.tsv": (
        table([("text", "label"), ("a nice day", "good"), ("a bad day", "poor")], "\t"),
        read_as_table({"text": TEXT}),
        {"text_classification": {}},
    ),
    "pairs.tsv": (
        table([(str(n), f"{t} a", f"{t} b", y) for n, (t, y) in enumerate(rows("no", "no", "yes"))], "\t"),
        read_as_table({"pair": {"first": 1, "second": 2, "label": 3}}, header=False),
        {"sentence_pair": {"positive": "yes"} | DECIDED},
    ),
    "two_cells.csv": (
        table([("text", "label"), *rows("toxic|insult", "toxic")], ","),
        read_as_table({"text": TEXT | {"separator": "|"}}, ","),
        {"text_classification": {"labels": "several"}},
    ),
    "none_applies.jsonl": (
        "\n".join((json.dumps({"text": t, "label": y.split()}) for t, y in rows("a", "b", ""))),
        {"jsonl": {"columns": {"text": TEXT}}},
        {"text_classification": {"labels": "several"}},
    ),
    "lists.jsonl": (
        "\n".join((json.dumps({"text": t, "label": y.split()}) for t, y in rows("a", "b", "a b"))),
        {"jsonl": {"columns": {"text": TEXT}}},
        {"text_classification": {"labels": "several"}},
    ),
    "plain_tagged.jsonl": (
        "".join(json.dumps({"words": ["a", f"b{n}"], "tags": ["DT", "NN"]}) + "\n" for n in range(9)),
        {"jsonl": {"columns": {"tagged": {"words": "words", "scheme": "plain"}}}},
        {"tagging": {"tags": "plain"}},
    ),
    "apart.jsonl": (
        json.dumps(
            {
                "question": "Who?",
                "context": "Ada met Grace.",
                "answers": {"text": ["Ada", "Grace"], "answer_start": [0, 8]},
            }
        ),
        {"jsonl": {"columns": {"question": {"id": None, "several": "spans"}}}},
        {"extractive_qa": {"formulation": "token", "spans": "several", "scoring": "quoref"}},
    ),
    "annotators.json": (squad(("Ada", 0), ("Ada met", 0)), {"squad": {}}, {"extractive_qa": {"scoring": "squad_v1"}}),
    "quoref.json": (
        squad(("Ada", 0), ("Grace", 8)),
        {"squad": {"several": "spans"}},
        {"extractive_qa": {"formulation": "token", "spans": "several", "scoring": "quoref"}},
    ),
    "nested.json": (query((0, 2), (2, 2)), {"mrc_ner": {}}, {"mrc_ner": {"spans": "nested"}}),
    # The features of 0 and 1 were learned as labels of their own, together with the label.
    "flags.csv": (
        table(
            [
                ("text", "is_reply", "has_link", "label"),
                *((sentence(n), str(n % 2), str(n // 2 % 2), str(int(n % 10 == 0))) for n in range(90)),
            ],
            ",",
        ),
        read_as_table({"text": TEXT}, ","),
        {"text_classification": {"positive": "1"} | DECIDED},
    ),
    # A column of 0 in all rows that the guess is based on was lost without a word, with all its positives below.
    "rare_label.csv": (
        table(
            [("text", *TOXIC), *((sentence(n), *(str(int(n % d == 0)) for d in (2, 3, 5)), "0") for n in range(90))],
            ",",
        ),
        read_as_table({"text": {"text": "text", "one_hot": TOXIC}}, ","),
        {"text_classification": {"labels": "several"}},
    ),
    # One empty cell made each list a label of its own, as `"['a', 'b']"`.
    "lists.csv": (
        "text,labels\n"
        + "".join(f'one day {n},"{labels}"\n' for n, labels in enumerate(["['a', 'b']", "['a']", "['b']"] * 10))
        + "one day 30,\none day 31, \n",
        read_as_table({"text": {"text": "text", "label": "labels", "lists": True}}, ","),
        {"text_classification": {"labels": "several"}},
    ),
    # The first row of dialogue acts was lost, and `question` was the name of a column.
    "acts.tsv": (
        table(rows("question", "statement", "answer", size=90), "\t"),
        read_as_table({"text": {"text": 0, "label": 1}}, header=False),
        {"text_classification": {}},
    ),
    # Subtitles with their seconds are texts with a label.
    "subtitles.csv": (
        "text,start,end,label\n" + "".join(f"a day {n},{n * 3},{n * 3 + 2},{n % 2}\n" for n in range(40)),
        read_as_table({"text": TEXT}, ","),
        {"text_classification": {}},
    ),
    # The predictions of a user whose rows have ids had numbers of lines.
    "ids.jsonl": (
        "\n".join(
            json.dumps({"id_of": "x", "ticket_no": n, "text": t, "label": y}) for n, (t, y) in enumerate(rows("a", "b"))
        ),
        {"jsonl": {"columns": {"text": TEXT | {"id": "ticket_no"}}}},
        {"text_classification": {}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_small_files_of_every_format(name: str) -> None:
    text, reader, task = CASES[name]
    Path(name).write_text(text, encoding="utf-8")
    found = guess(Path(name))
    assert (found.reader, found.task) == (reader, task)
    assert found.records
    assert not found.bad


def test_no_word_is_taken_as_a_comment() -> None:
    Path("train.txt").write_text("# id 1 of 2\n" + conll([["# O", "a B-X"], ["b O", "c O"]] * 3))
    with pytest.raises(DataError, match="conll: line 2: expected 5 columns as in the first line"):
        guess(Path("train.txt"))


@pytest.mark.parametrize(
    ("labels", "first", "task", "reason"),
    [
        (["1"] * 9 + ["2"], "sentence1", {"sentence_pair": {"positive": "2"} | DECIDED}, "The rarer label"),
        (
            ["1"] * 2 + ["0"],
            "sentence1",
            {"sentence_pair": {"positive": "1"} | DECIDED},
            "The name of a positive label",
        ),
        (["1"] * 9 + ["2"], "text", {"text_classification": {"positive": "2"} | DECIDED}, "The rarer label"),
        (["spam"] * 9 + ["ham"], "text", {"text_classification": {"positive": "ham"} | DECIDED}, "The rarer label"),
        (
            ["1", "-1", "-1"],
            "text",
            {"text_classification": {"positive": "1"} | DECIDED},
            "The name of a positive label",
        ),
        (["1", "2"], "text", {"text_classification": {}}, "The rarer label"),
    ],
)
def test_the_positive_label_of_two(
    labels: list[str], first: str, task: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    """With 1 as a positive name beside 2 too, F1 was that of 90 % of the records, or these "about equally frequent"."""
    lines = [(text, f"{text} too", label) for text, label in rows(*labels, size=200)]
    (tmp_path / "a.tsv").write_text(table([(first, "sentence2", "label"), *lines], "\t"))
    found = guess(tmp_path / "a.tsv")
    assert found.task == task
    (name,) = found.task
    assert found.why[f"task.{name}.positive"].startswith(reason)
    assert ("about equally" in found.why["task"]) == (labels == ["1", "2"])


@pytest.mark.parametrize(
    ("sentences", "tags", "pattern"), [("train.words", "train.tags", "*.tags"), ("in.txt", "tags.txt", "tags.txt")]
)
def test_tags_in_a_file_of_their_own(sentences: str, tags: str, pattern: str) -> None:
    Path(sentences).write_text("Ada met Grace\nshe left\n")
    Path(tags).write_text("B-PER O B-PER\nO O\n")
    found = guess(Path(sentences))
    assert found.reader == {"parallel": {"tag_file": pattern}}
    assert found.task == {"tagging": {}}


def test_labels_of_texts_are_those_of_their_own_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows of a large file fit the labels of any split; names are taken where each number has one."""
    monkeypatch.setattr("dice_ray.data.formats.base.NUM_ROWS", 20)
    for split, size in (("test", 30), ("train", 40)):
        Path(f"{split}_text.txt").write_text("\n".join(text for text, _ in rows("a", size=size)))
        Path(f"{split}_labels.txt").write_text("0\n1\n" * (size // 2))
    for names in ("0\tno\n", "1\tno\n2\tyes\n"):
        Path("mapping.txt").write_text(names)
        assert guess(Path("train_text.txt")).reader == {"parallel": {"tag_file": "*_labels.txt", "units": "texts"}}
    Path("train_labels.txt").unlink()
    with pytest.raises(DataError, match=r"parallel: no file of tags beside train_text\.txt"):
        guess(Path("train_text.txt"))


@pytest.mark.parametrize("beside", ['{"tags": ["O"]}', "a b c d e f g h"])
def test_a_file_beside_without_a_tag_set_holds_no_tags(beside: str) -> None:
    Path("train.jsonl").write_text(beside if beside.startswith("{") else "one two three four 5 6 7 8")
    Path("tags.jsonl").write_text(beside)
    with pytest.raises(
        DataError, match=r"parallel: (its first line is JSON|with tags\.jsonl: too many different tags)"
    ):
        guess(Path("train.jsonl"))


def test_a_rare_malformed_row_is_reported() -> None:
    lines = table([("text", "label"), *rows("a", "b", size=300)], "\t").splitlines()
    Path("train.tsv").write_text("\n".join([*lines, "only one cell"]))
    (bad,) = guess(Path("train.tsv")).bad
    assert bad.place == 302


def test_other_candidate_columns_are_reported() -> None:
    lines = [{"sentence": t, "title": f"on {t}", "label": y, "topic": y * 2} for t, y in rows("a", "b", "c")]
    Path("train.jsonl").write_text("\n".join(map(json.dumps, lines)))
    why = guess(Path("train.jsonl")).why["data.source.files.reader.jsonl.columns"]
    assert why.endswith("Other candidate columns: 'topic', 'title'.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "must hold rows, and it is empty"),
        (b"text\tlabel\n", "tables: only a header, no row"),
        (b"text\tlabel\n" + b"a nice day\tA\n" * 9, "tables: the column 'label' has one value, 'A': nothing to learn"),
        (b"just a sentence\nand no more\n", "such as mrpc for a table, wnut17 for tagged words, squad2 for questions"),
        (b"just a sentence\nand another one\n", "tables: no tab, comma, semicolon or bar splits 99% of the rows into"),
        (b"# an export\ntext,label\n" + b"a nice day,A\na bad day,B\n" * 9, "the first line begins with #: remove"),
        (b'{"data": []}', "squad: no row with a label"),
        (b"PAR1 and no more", "the file: expected a whole file of Parquet, found none: Parquet magic bytes"),
    ],
)  # fmt: skip
def test_a_file_of_no_known_format_is_one_error(content: bytes, message: str) -> None:
    Path("train.txt").write_bytes(content)
    with pytest.raises(DataError) as raised:
        guess(Path("train.txt"))
    assert message in str(raised.value)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-8"])
def test_the_encoding_is_guessed_and_said(encoding: str) -> None:
    more = " caf\u00e9 \u20ac" if encoding == "cp1252" else " caf\u00e9"
    texts = [(text + more, label) for text, label in rows("a", "b")]
    content = table([("text", "label"), *texts], ",").encode(encoding)
    path = Path("train.csv")
    path.write_bytes(content)
    found = guess(path)
    settings = found.reader["tables"]
    assert settings.get("encoding", "utf-8") == encoding
    assert found.why["data.source.files.reader.tables.encoding"].startswith("" if encoding == "utf-8" else encoding)
    assert [record.text for record in found.records if isinstance(record, TextRecord)] == [text for text, _ in texts]


@pytest.mark.parametrize(("name", "first"), [("a.csv", "tables"), ("a.jsonl.gz", "jsonl"), ("a.txt", "squad")])
def test_the_reason_against_the_format_that_the_name_stands_for_comes_first(name: str, first: str) -> None:
    """A user of a CSV file would read first why it is no SQuAD JSON."""
    content = b"text,label\n" + b"a nice day,A\n" * 9
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(DataError, match=f"Tried:\\n  {first}: ") as raised:
        guess(Path(name))
    assert str(raised.value).count("tables: ") == 1


def test_an_encoding_of_a_binary_file_is_refused() -> None:
    """It was passed on to a reader that has no such setting."""
    Path("a.parquet").write_bytes(b"PAR1" * 9)
    with pytest.raises(InputError, match="must be of a text, and this is a file of Parquet"):
        guess(Path("a.parquet"), Given(encoding="latin-1"))


def test_a_file_that_two_readers_fit_is_read_as_the_user_says() -> None:
    """The first reader that fitted was taken: sentences and labels of one folder as words and their tags."""
    Path("data.txt").write_text("a_DT cat_NN\nthe_DT dog_NN\n" * 9)
    Path("labels.txt").write_text("DT NN\n" * 18)
    with pytest.raises(DataError, match=r"(?s)several readers fit.*--as parallel: .*--as word_tag: ") as raised:
        guess(Path("data.txt"))
    assert "words=('a', 'cat')" in str(raised.value)
    for name in ("parallel", "word_tag"):
        assert list(guess(Path("data.txt"), Given(format=name)).reader) == [name]
    with pytest.raises(DataError, match="tables: no tab, comma"):
        guess(Path("data.txt"), Given(format="tables"))
    with pytest.raises(UnknownNameError, match=r"'conl'.*conll"):
        guess(Path("data.txt"), Given(format="conl"))


def test_a_folder_or_binary_file_has_one_reader_and_another_one_is_an_error() -> None:
    """The reader that the user named was ignored."""
    for name in ("good", "bad"):
        Path("reviews", name).mkdir(parents=True)
        Path("reviews", name, "1.txt").write_text(f"a {name} text")
    table_ = pyarrow.table({"text": [text for text, _ in rows("0", "1")], "label": [0, 1] * 20})
    feather.write_feather(table_, "a")
    for path, reader in (("reviews", "folders"), ("a", "arrow")):
        assert list(guess(Path(path), Given(format=reader)).reader) == [reader]
        with pytest.raises(InputError, match=f"{path}: --as must be {reader}, .* got conll"):
            guess(Path(path), Given(format="conll"))


@pytest.mark.parametrize("form", ["stream", "datasets"])
def test_arrow_files_are_read_whatever_their_form(form: str) -> None:
    """They were read as text in Latin-1 or UTF-16."""
    table_ = pyarrow.table({"text": [text for text, _ in rows("0", "1")], "label": [0, 1] * 20})
    path = Path("train.arrow")
    if form == "stream":
        with pyarrow.ipc.new_stream(path, table_.schema) as stream:
            stream.write_table(table_)
    else:
        import datasets

        features = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=["no", "yes"]))
        datasets.Dataset.from_dict(table_.to_pydict(), features=features).save_to_disk("saved")
        (path,) = Path("saved").glob("*.arrow")
    found = guess(path)
    assert found.reader == {"arrow": {"columns": {"text": TEXT}}}
    labels = ("no", "yes") if form == "datasets" else ("0", "1")
    assert [record.labels[0] for record in found.records if isinstance(record, TextRecord)] == list(labels) * 20


def test_annotations_of_brat_are_not_a_table() -> None:
    """They were read as texts with a label."""
    rows_ = [
        f"T{n}\tPER {n} {n + 9}\tAda Byron {n}\n" if n % 2 else f"T{n}\tLOC {n}\tNew Delhi {n}\n" for n in range(40)
    ]
    Path("a.ann").write_text("".join(rows_))
    with pytest.raises(DataError, match=r"a file of brat is read with the others of its folder, give \."):
        guess(Path("a.ann"))


REAL = {
    "cmrc2018/cmrc2018_trial.json": ("squad", {"extractive_qa": {"scoring": "cmrc"}}),
    "quoref/quoref-dev.json": (
        "squad",
        {"extractive_qa": {"formulation": "token", "spans": "several", "scoring": "quoref"}},
    ),
    "squad1/dev-v1.1.subset35.json": ("squad", {"extractive_qa": {"scoring": "squad_v1"}}),
    "squad2/dev-v2.0.json": ("squad", {"extractive_qa": {"scoring": "squad_v2"}}),
    "xquad/xquad.en.json": ("squad", {"extractive_qa": {"scoring": "squad_v1"}}),
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", REAL)
def test_real_files_of_questions(data_folder: Path, name: str) -> None:
    found = guess(data_folder / name)
    assert (next(iter(found.reader)), found.task) == REAL[name]
    assert not found.bad


def cells(**columns: Callable[[int], str]) -> list[dict[Any, Any]]:
    return [{name: cell(number) for name, cell in columns.items()} for number in range(60)]


def one_of(*labels: str) -> Callable[[int], str]:
    return lambda number: labels[number % len(labels)]


@pytest.mark.parametrize(
    ("rows_", "expected"),
    [
        (  # SICK
            cells(
                sentence_A=sentence,
                sentence_B=sentence,
                entailment_label=one_of("ENTAILMENT", "NEUTRAL", "CONTRADICTION"),
                sentence_B_dataset=one_of("FLICKR", "SEMEVAL"),
            ),
            {"pair": {"first": "sentence_A", "second": "sentence_B", "label": "entailment_label"}},
        ),
        (  # tweets on airlines
            cells(
                airline_sentiment=one_of("negative", "neutral", "positive"),
                airline_sentiment_gold=one_of("negative", "positive", *[""] * 13),
                text=sentence,
            ),
            {"text": {"text": "text", "label": "airline_sentiment"}},
        ),
        (
            cells(
                text=sentence, emotion=one_of("joy", "anger"), label_confidence=lambda number: f"0.{number % 20 + 10}"
            ),
            {"text": {"text": "text", "label": "emotion"}},
        ),
        (  # reviews, some of which have no title
            cells(
                **{
                    "Title": lambda number: "" if number % 5 else sentence(number),
                    "Review Text": sentence,
                    "Rating": one_of(*"12345"),
                }
            ),
            {"text": {"text": "Review Text", "label": "Rating"}},
        ),
    ],
)
def test_a_column_is_known_by_a_word_of_its_name(rows_: list[dict[Any, Any]], expected: dict[str, Any]) -> None:
    found = choose_columns(rows_)
    assert not isinstance(found, str)
    assert found[0] == expected


def test_a_column_of_splits_is_neither_the_label_nor_ignored() -> None:
    """Its rows of test were trained on."""
    rows_ = cells(text=sentence, emotion=one_of("joy", "anger"), split=one_of("train", "validation", "test"))
    found = choose_columns(rows_)
    assert isinstance(found, str)
    assert found.startswith("the column 'split' says which split a row is of")
    found = choose_columns(rows_, Given(label="emotion"))
    assert found == (
        {"text": {"text": "text", "label": "emotion"}},
        "The label repeats few values, texts are long and differ.",
    )


TOKENS = [{"text": f"Ada ran {n}.", "tokens": ["Ada", "ran", str(n), "."], "head": [2, 0, 2, 2]} for n in range(20)]


@pytest.mark.parametrize(
    ("rows_", "expected"),
    [
        (
            [row | {"upos": list("NVXP"), "pos_ids": [0, 1, 2, 3]} for row in TOKENS],
            {"tags": "upos", "scheme": "plain"},
        ),
        (
            [
                row | {"upos": list("NVXP"), "lang": ["en"] * 4, "misc": ["_", "_", "SpaceAfter=No", "_"]}
                for row in TOKENS
            ],
            {"tags": "upos", "scheme": "plain"},
        ),
        (
            [row | {"ner_tags": [1, 0, 0, 0]} for row in TOKENS],
            {"tags": "ner_tags", "scheme": "plain", "names": ["0", "1"]},
        ),
    ],
)
def test_numbers_of_words_are_no_tags_unless_named_so(rows_: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    Path("train.jsonl").write_text("\n".join(map(json.dumps, rows_)))
    assert guess(Path("train.jsonl")).reader == {"jsonl": {"columns": {"tagged": expected}}}


@pytest.mark.parametrize(
    ("name", "lines_", "message"),
    [
        ("heads.jsonl", [json.dumps(row) for row in TOKENS], "jsonl: no column repeats"),
        ("stsb.tsv", ["sentence1\tsentence2\tscore", *(f"one day {n}\tno day {n}\t{n % 26 / 5}" for n in range(60))],
         "the column 'score' holds numbers on a scale"),
        ("open.csv", ["question,context,answer", *(f"who {n}?,one day {n},none of it {n}" for n in range(30))],
         "no column repeats"),
    ],
)  # fmt: skip
def test_data_of_other_tasks_are_refused(name: str, lines_: list[str], message: str) -> None:
    """Similarities would be read as classes, heads of words as tags, and free answers as places in the text."""
    Path(name).write_text("\n".join(lines_))
    with pytest.raises(DataError, match=message):
        guess(Path(name))


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("at{0}:here and a text {0}", "these do not repeat as labels do"),
        ("size:{1} it", "or no texts follow"),
        ("DESC:def a text {0}\nsee HUM:ind a text {0}", "30 of 61 lines do not begin with a label"),
    ],
)
def test_words_with_a_colon_at_the_start_of_lines_are_no_labels(rest: str, message: str) -> None:
    """Of log lines, features and sentences."""
    Path("notes.txt").write_text("\n".join(["DESC:def a text", *(rest.format(n, n % 2) for n in range(30))]))
    with pytest.raises(DataError, match=f"fasttext: .*{message}"):
        guess(Path("notes.txt"))


@pytest.mark.parametrize("names", [("texts", "labels"), ("train", "validation"), ("only",)])
def test_folders_of_texts_that_are_no_classes(names: tuple[str, ...]) -> None:
    for name in names:
        Path("corpus", name).mkdir(parents=True)
        for number in range(3):
            Path("corpus", name, f"{number}.txt").write_text("a nice day")
    with pytest.raises(DataError, match="a folder must hold texts with annotations as brat writes them"):
        guess(Path("corpus"))


def test_rows_without_any_label_and_a_column_with_two_uses_are_errors() -> None:
    """They were tracebacks."""
    path = Path("a.jsonl")
    path.write_text("\n".join(json.dumps({"text": sentence(number), "labels": []}) for number in range(40)))
    with pytest.raises(DataError, match="no row has a label"):
        guess(path, Given(label="labels"))
    with pytest.raises(InputError, match="'text' was given for several"):
        guess(path, Given(texts=("text",), label="text"))
