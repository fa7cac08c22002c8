"""Predictions of other programs as arms of a study: their score, their faults, and what the report says of them.

The study is as `ablate` leaves it: a plan, cells in MLflow with the counts of their items, and files of data.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.comparison import comparisons
from dice_ray import api
from dice_ray.api.presets import layers_of, validate
from dice_ray.cli import app as command_line
from dice_ray.config.load import Layer
from dice_ray.errors import DataError, DiceRayError, InputError, RefusedError
from dice_ray.files import runs_folder
from dice_ray.run.trained import items_csv
from dice_ray.tracking import schema
from dice_ray.tracking.reader import texts
from dice_ray.tracking.writer import Writer
from dice_ray.tuning import plan_file
from dice_ray.tuning.study import StudyPlan

pytestmark = pytest.mark.usefixtures("uri")
LABELS = [*["spam"] * 8, *["ham"] * 12]
"""Of the test split, whose ids are t0 to t19."""
Study = Callable[..., str]
Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `dice-ray`; returns its exit status."""

    def run_in_process(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["dice-ray", *arguments])
        with pytest.raises(SystemExit) as exited:
            command_line.main()
        assert isinstance(exited.value.code, int)
        return exited.value.code

    return run_in_process


def table(folder: Path, name: str, labels: Sequence[str]) -> None:
    with (folder / f"{name}.csv").open("w", newline="") as file:
        rows = ((f"{name[0]}{number}", f"text {number} of {name}", label) for number, label in enumerate(labels))
        csv.writer(file).writerows([("id", "text", "label"), *rows])


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study in which `plain` misses 3 of 8 positives and `dice` 2, each another one with each seed."""

    def make(*settings: str, labels: Sequence[str] = LABELS, positive: str | None = "spam", tuned: bool = False) -> str:
        table(tmp_path, "train", ["spam", "ham"] * 10 if positive else labels)
        table(tmp_path, "dev", labels)
        table(tmp_path, "test", labels)
        preset = tmp_path / "mails.yaml"
        task = f"{{positive: {positive}}}" if positive else "{}"
        columns = "{text: {text: text, label: label, id: id}}"
        preset.write_text(
            f"task: {{text_classification: {task}}}\nmodel: {{encoder: tiny}}\ndata: {{source: {{files: {{folder: "
            f"'{tmp_path}', train: train.csv, dev: dev.csv, test: test.csv, reader: {{tables: {{delimiter: ',', "
            f"quoting: true, columns: {columns}}}}}}}}}}}\n"
        )
        config = validate(preset, settings)
        splits = config.splits()
        built = config.task.build(config.task.classes(splits.train))
        layers = tuple(layers_of(preset, settings))
        plan = StudyPlan(
            name="mails",
            layers=layers,
            digest=splits.digest,
            arms={"plain": {}, "dice": {"loss": "dice"}},
            baseline="plain",
            seeds=(1, 2, 3, 4, 5),
        )
        plan_file.store(plan, runs_folder() / "mails")
        metric = f"test/{config.task.objective().removesuffix('_tuned')}"
        with Writer("mails") as writer:
            tags = {schema.METRIC: metric, schema.BASELINE: "plain"} | ({schema.THRESHOLD: "tuned"} if tuned else {})
            writer.open("mails", name="mails", params={}, tags={schema.KIND: "study", **tags})
            for arm, missed in (("plain", 3), ("dice", 2)):
                for seed in plan.seeds:
                    wrong = {(seed + step) % 8 for step in range(missed)}
                    given = [
                        [float(name == label) for name in built.classes]
                        if number not in wrong
                        else [float(n == 0) for n in range(len(built.classes))]
                        for number, label in enumerate(labels)
                    ]
                    rows = [
                        {"record": number, "label": built.classes.index(label)} for number, label in enumerate(labels)
                    ]
                    decision = built.decide(splits.test, rows, given) if tuned else None
                    scores = built.score(splits.test, rows, given, decision)
                    tags = {schema.KIND: "cell", schema.ARM: arm, schema.SEED: str(seed), schema.STATE: "done"}
                    tags |= {schema.DATA: "mails", schema.ENCODER: "tiny"}
                    key = f"{arm}{seed}"
                    writer.open(key, name=key, params={}, tags=tags, parent="mails")
                    writer.metrics(key, 1, scores.named("test"))
                    writer.text(key, f"test/{schema.ITEMS_FILE}", items_csv(scores))
                    writer.end(key, "FINISHED")
            writer.end("mails", "FINISHED")
        return "mails"

    return make


def lines(file: Path, answers: Mapping[str, object] | Sequence[tuple[str, object]], name: str = "label") -> Path:
    """JSON lines with the answer to each id."""
    pairs = answers.items() if isinstance(answers, Mapping) else answers
    file.write_text("".join(json.dumps({"id": id_, name: answer}) + "\n" for id_, answer in pairs))
    return file


def answers(**others: object) -> dict[str, object]:
    """Answers that are right, apart from these."""
    return {f"t{number}": label for number, label in enumerate(LABELS)} | others


def arm(made: Any, name: str = "llm") -> Any:
    (compared,) = comparisons(made.findings)
    return next(each for each in compared.arms if each.arm == name)


def test_an_arm_of_predictions_has_our_f1_its_interval_over_items_and_a_pair_with_each_seed(
    study: Study, tmp_path: Path
) -> None:
    """Nothing else finds the wrong records scored, or an interval over seeds that the arm does not have."""
    file = lines(tmp_path / "answers.jsonl", answers(t0="ham", t19="spam"))
    made = api.report(study(), predictions={"llm": file})
    row = arm(made)
    # 7 of 8 are found, and one is a false alarm: 2 * 7 / (2 * 7 + 1 + 1).
    assert row.score.mean == pytest.approx(14 / 16)
    assert 0.5 < row.score.low < 14 / 16 < row.score.high < 1
    assert row.score.num == 1
    # Each seed of `plain` finds 5 of 8: 2 * 5 / (2 * 5 + 3).
    assert row.difference.interval.mean == pytest.approx(14 / 16 - 10 / 13)
    assert row.by_seed == pytest.approx([14 / 16 - 10 / 13] * 5)
    assert row.new_data.interval.low < row.new_data.interval.mean < row.new_data.interval.high
    assert row.failed == 0
    assert any(
        "llm has one run: the interval of its score is over test items, and its own seeds are not covered." in each
        for each in made.summary
    )
    assert not any("Missing" in note for table_ in made.tables for note in table_.notes)
    assert made.text()


def test_every_fault_of_an_llms_file_is_counted_and_named(study: Study, tmp_path: Path) -> None:
    """Each of them would otherwise change the score and leave no trace."""
    given = answers(t1="Sure! The answer is **Spam**.", t2=" SPAM ", t3="spam or ham", t4="This is not spam.", t5=None)
    del given["t9"]
    file = lines(tmp_path / "answers.jsonl", [*given.items(), ("x7", "spam"), ("t6", "ham")])
    made = api.report(study(), predictions=[f"llm={file}"])
    assert (
        "llm (answers.jsonl): 2 answers with other case or extra text were read as the label that they name (t1: "
        "'Sure! The answer is **Spam**.', t2: ' SPAM '); 1 id is missing (t9); 3 answers cannot be read, or name "
        "no label or several (t3: 'spam or ham', t4: 'This is not spam.', t5: 'None'); what is missing or unread "
        "counts as 'ham'; 1 id is not of the split: left out (x7); 1 id is given more than once: the last answer "
        "counts (t6)."
    ) in made.summary
    # Of 8, t3, t4, t5 and t6 are missed.
    assert arm(made).score.mean == pytest.approx(8 / 12)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "must hold predictions, and is empty"),
        ('{"id": "t0", "label": "spam"', "line 1 must be JSON, and is not"),
        ('{"label": "spam"}', "line 1 must have an id, got {'label': 'spam'}"),
        ('["t0", "spam"]', r"line 1 must be an object with an id, got \['t0', 'spam'\]"),
        (
            '{"id": "0", "label": "spam"}',
            "of at least half of the 20 records, and 20 have none: the first ids of the records are 't0', 't1', 't2', "
            "and the first row of the file is {'id': '0', 'label': 'spam'}$",
        ),
        (
            "".join(f'{{"id": "t{n}", "sentiment": "spam"}}\n' for n in range(20)),
            "the first row of the file is {'id': 't0', 'sentiment': 'spam'}",
        ),
        (
            "".join(f'{{"id": "t{n}", "probability": "90%"}}\n' for n in range(20)),
            "a probability must be a number from 0 to 1, got '90%' for t0",
        ),
    ],
)
def test_a_file_that_cannot_be_scored_is_one_clear_error_and_nothing_is_written(
    study: Study, tmp_path: Path, content: str, error: str
) -> None:
    """A file of other ids had an F1 of 0, which looks like a bad model."""
    name = study()
    file = tmp_path / "answers.jsonl"
    file.write_text(content)
    before = {*runs_folder().rglob("*")}
    with pytest.raises(DataError, match=error):
        api.compare(name, predictions={"llm": file}, name="compared")
    assert {*runs_folder().rglob("*")} == before


@pytest.mark.parametrize(
    ("predictions", "dev", "error"),
    [
        (["answers.jsonl"], [], "--predictions must be ARM=FILE, or ARM/SEED=FILE with a number, got 'answers.jsonl='"),
        (["llm/one=answers.jsonl"], [], "ARM/SEED=FILE with a number, got 'llm/one=answers.jsonl'"),
        (["llm=a.jsonl", "llm=b.jsonl"], [], "must give each arm once, or as ARM/SEED=FILE, got 'llm' again"),
        (["llm=a.jsonl", "llm/2=b.jsonl"], [], "must give all runs of llm a seed, or it has one run"),
        (["dice=answers.jsonl"], [], "predictions must be of a new arm, and mails has dice: rename it"),
        (["llm=nowhere.jsonl"], [], "predictions must be a text file in UTF-8, and nowhere.jsonl cannot be read"),
        (["llm=mails.yaml"], [], "predictions must be a file that ends in .jsonl, .json, .tsv, .csv, .conll"),
        (["llm=answers.jsonl"], ["gpt=answers.jsonl"], "must be of an arm of --predictions, got 'gpt'"),
        (["llm=answers.jsonl"], ["llm=dev.jsonl"], "a decision is fitted to probabilities"),
    ],
)
def test_what_cannot_be_an_arm_is_one_clear_error(
    study: Study, tmp_path: Path, predictions: list[str], dev: list[str], error: str
) -> None:
    """The second file of an arm replaced the first one, and a study's own arm was mixed with predictions."""
    name = study()
    lines(tmp_path / "answers.jsonl", answers())
    lines(tmp_path / "dev.jsonl", {f"d{number}": label for number, label in enumerate(LABELS)})
    with pytest.raises(DiceRayError, match=error):
        api.report(name, predictions=predictions, dev_predictions=dev)


def test_predictions_of_dev_tune_the_decision_as_that_of_a_trained_arm(study: Study, tmp_path: Path) -> None:
    """At .5 half of the positives are missed; dev shows that .3 finds all."""
    name = study("task.text_classification.score=decision", tuned=True)
    low = {number: 0.9 if number < 4 else 0.4 if number < 8 else 0.2 for number in range(20)}
    file = lines(tmp_path / "a.jsonl", {f"t{n}": value for n, value in low.items()}, "probability")
    dev = lines(tmp_path / "dev.jsonl", {f"d{n}": value for n, value in low.items()}, "probability")
    row = arm(api.report(name, predictions={"llm": file}, dev_predictions={"llm": dev}))
    assert row.name == "llm (tuned threshold)"
    assert row.score.mean == 1
    made = api.report(name, predictions={"llm": file})
    assert arm(made).name == "llm"
    assert arm(made).is_primary
    assert arm(made).score.mean == pytest.approx(8 / 12)
    assert any("no predictions of dev are given to fit a decision" in each for each in made.summary)


def test_a_comparison_with_predictions_is_stored_and_shown_again_without_the_files(
    study: Study, tmp_path: Path
) -> None:
    """The items of predictions lie in no store of runs: the intervals were gone in the second report."""
    file = lines(tmp_path / "answers.jsonl", answers(t0="ham"))
    compared = api.compare(study(), predictions={"llm": file}, name="with_llm")
    file.unlink()
    again = api.report("with_llm")
    assert again.text() == compared.report().text()
    assert arm(again).new_data is not None
    assert "llm" not in set(pd.Series(api.Result("mails", "mails").frame["arm"]))


def test_several_runs_of_an_arm_are_paired_by_seed(study: Study, tmp_path: Path) -> None:
    """Of runs with seeds, the differences vary with both, and nothing is said of seeds that are not covered."""
    files = {
        f"llm/{seed}": lines(tmp_path / f"{seed}.jsonl", answers(**{f"t{n}": "ham" for n in range(seed % 3)}))
        for seed in range(1, 6)
    }
    made = api.report(study(), predictions=files)
    row = arm(made)
    recalls = [(8 - seed % 3) / 8 for seed in range(1, 6)]
    assert (row.score.num, row.is_fixed) == (5, False)
    assert row.by_seed == pytest.approx([2 * each / (1 + each) - 10 / 13 for each in recalls])
    assert not any("own seeds" in each for each in made.summary)


def test_an_arm_of_predictions_is_counted_neither_as_lacking_seeds_nor_as_collapsed_runs(
    study: Study, tmp_path: Path
) -> None:
    """A run without a seed lacks all seeds of the others, and one answer to all would be said of `1 of 1 run`."""
    file = lines(tmp_path / "answers.jsonl", dict.fromkeys(answers(), "ham"))
    made = api.report(study(), predictions={"llm": file})
    assert arm(made).collapsed == 1
    assert "llm predicts one class only." in made.summary
    assert "YES" in made.cards[0].text()
    assert "llm" not in made.cards[0].use


def test_the_commands_report_and_compare_take_predictions_and_leave_the_study_as_it_is(
    study: Study, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """MLflow would show the score of an arm that the study does not have, and never forget it."""
    name = study()
    file = lines(tmp_path / "answers.jsonl", answers(t0="ham"))
    assert run("report", name, "--predictions", f"llm={file}", "--out", str(tmp_path / "page")) == 0
    assert "llm" in (tmp_path / "page" / "comparison.csv").read_text()
    stored = api.Result(name, name).frame
    assert not any("llm" in str(column) for column in stored)
    assert texts(stored, f"{schema.REPORT_FOLDER}/report.html") == {}
    assert run("compare", name, "--predictions", f"llm={file}") == 0
    assert run("runs", f"{name}-compared") == 0
    assert "\nmails-compared/llm  " in capsys.readouterr().out
    assert run("report", name, "--predictions", f"llm={file}", "--require", "better") == 0
    assert run("compare", name, "--predictions", f"llm={file}", "--metric", "f1") == 2
    assert "the study says what is compared" in capsys.readouterr().err
    assert run("compare", name) == 2
    assert "give it by --metric" in capsys.readouterr().err


def test_what_has_no_single_test_split_takes_no_predictions(study: Study, tmp_path: Path) -> None:
    """Predictions for one of several test splits would be scored on another."""
    name = study()
    predictions = {"llm": lines(tmp_path / "answers.jsonl", answers())}
    with pytest.raises(InputError, match="must be compared with one study, got mails, other"):
        api.report(name, "other", predictions=predictions)
    plan = plan_file.read(runs_folder() / name)
    table(tmp_path, "test", [*LABELS, "spam"])
    with pytest.raises(DiceRayError, match=r"mails .*predict the data that it now has"):
        api.report(name, predictions=predictions)
    drawn = Layer("--set", {"data": {"test_share": 0.3, "source": {"files": {"test": None}}}})
    (runs_folder() / name / "plan.yaml").unlink()
    plan_file.store(plan.model_copy(update={"layers": (*plan.layers, drawn)}), runs_folder() / name)
    with pytest.raises(RefusedError, match="must be of one test split, and each seed of mails draws its own"):
        api.report(name, predictions=predictions)
    with Writer(name) as writer:
        tags = {schema.KIND: "cell", schema.ARM: "plain", schema.SEED: "1", schema.DATA: "other"}
        writer.open("other", name="other", params={}, tags=tags, parent=name)
        writer.end("other", "FINISHED")
    with pytest.raises(RefusedError, match="must be of one data set, and mails compares on several"):
        api.report(name, predictions=predictions)


def test_seeds_that_train_on_other_positives_share_the_test_split(study: Study, tmp_path: Path) -> None:
    """Finds a study of few positives that takes no predictions, since each of its training sets has another digest."""
    name = study("data.imbalance.few_positives.positives=4")
    made = api.report(name, predictions={"llm": lines(tmp_path / "answers.jsonl", answers())})
    assert arm(made).score.mean == 1


def test_labels_alone_have_no_area_under_a_curve(study: Study, tmp_path: Path) -> None:
    """From labels, the area would be that of a curve with one point."""
    name = study("task.text_classification.score=roc_auc")
    with pytest.raises(InputError, match="test/roc_auc, which mails compares, needs the probabilities of the answers"):
        api.report(name, predictions={"llm": lines(tmp_path / "answers.jsonl", answers())})
