"""A run's folder by itself: it predicts and scores as its run did, moved elsewhere and without its training data."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.metrics import average_precision_score

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.data.synthetic import SyntheticConfig, generate
from dice_ray.errors import DataError, InputError, RunError
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.models.encoder import load_encoder
from dice_ray.run import build, single, trained
from dice_ray.run.decision import in_use
from dice_ray.run.driver import Driver
from dice_ray.tasks.predictions import Threshold
from dice_ray.training.checkpoint import Checkpoints
from tests.contracts.encoders import save

ROWS = 120


def config_of(folder: Path, **values: Any) -> RunConfig:
    """A run on files of generated pairs."""
    corpus = generate(SyntheticConfig(size=2 * ROWS, positive_share=0.3))
    folder.mkdir()
    for split in ("train", "test"):
        lines = [f"{record.first}\t{record.second}\t{record.label}" for record in corpus[split][:ROWS]]
        (folder / f"{split}.tsv").write_text("\n".join(["sentence1\tsentence2\tlabel", *lines]))
    files = {
        "folder": str(folder),
        "train": "train.tsv",
        "test": "test.tsv",
        "reader": {"tables": {"quoting": "off"}},
    }
    training = {"epochs": 4, "batch_size": 16, "lr": 3e-3}
    preset = {"task": "sentence_pair", "data": {"source": {"files": files}}, "training": training}
    return resolve([Layer("preset", preset), values_layer("test", values)])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder with its data beside it, moved after the training."""
    folder = tmp_path_factory.mktemp("trained")
    config = config_of(folder / "data")
    list(single.evaluations(config, folder / "first"))
    (folder / "scores.json").write_text(json.dumps(single.score(config, folder / "first", "test")))
    shutil.move(folder / "first", folder / "run")
    (folder / "data/test.tsv").rename(folder / "new.tsv")
    shutil.rmtree(folder / "data")
    return folder


def test_a_file_is_scored_as_the_split_was_with_training_data_or_without(run: Path) -> None:
    best = trained.load(run / "run")
    scores = best.score(best.labelled(str(run / "new.tsv")))
    wanted = json.loads((run / "scores.json").read_text())
    assert {f"test/{name}": value for name, value in scores.metrics.items()} == pytest.approx(
        {name: value for name, value in wanted.items() if name != "test/collapsed"}
    )
    assert 0.3 < wanted["test/f1_tuned"] != wanted["test/f1"]


def test_loading_a_run_leaves_the_threads_of_the_process(run: Path, tmp_path: Path) -> None:
    """A run that was trained with 1 thread slowed its host down, a web server for example."""
    shutil.copytree(run / "run", tmp_path / "run")
    config = (tmp_path / "run/config.yaml").read_text()
    assert "threads: null" in config
    (tmp_path / "run/config.yaml").write_text(config.replace("threads: null", "threads: 3"))
    trained.load(tmp_path / "run")
    assert torch.get_num_threads() == 1


def test_predictions_at_the_tuned_threshold_have_its_score(run: Path) -> None:
    best = trained.load(run / "run")
    found = list(csv.DictReader(best.predict(run / "new.tsv", "tuned").text().splitlines(), delimiter="\t"))
    gold = [line.rpartition("\t")[2] for line in (run / "new.tsv").read_text().splitlines()[1:]]
    assert [row["id"] for row in found] == [str(line) for line in range(2, ROWS + 2)]
    pairs = [(row["label"], label) for row, label in zip(found, gold, strict=True)]
    right, said, there = pairs.count(("1", "1")), sum(guess == "1" for guess, _ in pairs), gold.count("1")
    wanted = json.loads((run / "scores.json").read_text())
    assert 2 * right / (said + there) == pytest.approx(wanted["test/f1_tuned"])
    threshold = wanted["test/threshold"]
    assert best.decision is not None
    assert best.decision.tuned["threshold"] == threshold
    assert [row["label"] == "1" for row in found] == [float(row["probability_1"]) > threshold for row in found]


def test_the_tuned_threshold_is_used_only_with_enough_positives_in_dev(run: Path) -> None:
    """A threshold tuned on 2 positives labelled every record positive."""
    best = trained.load(run / "run")

    def chosen(decision: FittedDecision, choice: float | str = "auto") -> str:
        return str(in_use(decision, best.config.task, choice)[1])

    untuned = {"threshold": 0.5}
    few = FittedDecision("f1", {"threshold": 0.01}, untuned, is_used=False, support=2, on_dev=0.7)
    many = FittedDecision("f1", {"threshold": 0.3}, untuned, is_used=True, support=40, on_dev=0.7)
    worse = replace(many, is_used=False)
    assert chosen(few) == "threshold 0.5: dev has 2 positives, and needs 5 to tune one"
    assert chosen(many) == "threshold 0.3: tuned for f1 on 40 positives of dev"
    assert re.match(
        r"threshold 0\.5: on dev \(40 positives, cross-fitted\) the tuned one, 0\.3, is not better", chosen(worse)
    )
    precise = best.config.task.model_copy(update={"score": "precision"})
    assert (
        str(in_use(many, precise)[1])
        == "threshold 0.5: the tuned one, 0.3, is tuned for f1, and the run's score is precision"
    )
    assert chosen(few, "tuned") == "threshold 0.01: tuned on 2 positives of dev, as chosen"
    assert chosen(few, "0.2") == "threshold 0.2: as chosen; tuned on 2 positives of dev it is 0.01"
    for wrong in ("half", "nan", 1.5, None):
        with pytest.raises(InputError, match=r"must be `auto`, `tuned` or a number from 0 to 1, got"):
            chosen(few, wrong)  # type: ignore[arg-type]
    predicted = replace(best, decision=few).predict(run / "new.tsv")
    assert predicted.threshold == Threshold(0.5, 2, "dev has 2 positives, and needs 5 to tune one")
    assert all((row["label"] == "1") == (float(row["probability_1"]) > 0.5) for row in predicted.plain())


def test_labels_have_no_part_in_predictions(run: Path, tmp_path: Path) -> None:
    lines = [line.rpartition("\t")[0] for line in (run / "new.tsv").read_text().splitlines()]
    (tmp_path / "bare.tsv").write_text("\n".join(lines))
    best = trained.load(run / "run")
    assert best.predict(tmp_path / "bare.tsv").text() == best.predict(run / "new.tsv").text()
    with pytest.raises(DataError, match=r"expected a column named 'label'.*; `dice-ray predict` takes"):
        best.labelled(str(tmp_path / "bare.tsv"))


def test_the_counts_of_each_record_are_left_and_add_up_to_the_score(run: Path) -> None:
    with (run / "run/test/items.csv").open(newline="") as file:
        items = list(csv.DictReader(file))
    assert len(items) == ROWS
    wanted = json.loads((run / "scores.json").read_text())
    for prefix, metric in (("", "test/f1"), ("tuned_", "test/f1_tuned")):
        tp, fp, fn = (sum(int(item[f"{prefix}{count}"]) for item in items) for count in ("tp", "fp", "fn"))
        assert 2 * tp / (2 * tp + fp + fn) == pytest.approx(wanted[metric])


def test_the_probability_of_each_label_is_left_and_gives_the_area_under_the_curve(run: Path) -> None:
    """Finds probabilities of other records, and too few digits to rank them."""
    with (run / "run/test/items.csv").open(newline="") as file:
        items = list(csv.DictReader(file))
    positives = [int(item["tp"]) + int(item["fn"]) for item in items]
    of_label = [float(item["label_probability"]) for item in items]
    of_positive = [of if positive else 1 - of for of, positive in zip(of_label, positives, strict=True)]
    wanted = json.loads((run / "scores.json").read_text())["test/pr_auc"]
    assert average_precision_score(positives, of_positive) == pytest.approx(wanted)


def test_the_counts_of_each_class_are_left_and_give_its_scores(run: Path) -> None:
    with (run / "run/test/classes.csv").open(newline="") as file:
        negative, positive = csv.DictReader(file)
    assert [negative["class"], positive["class"]] == ["0", "1"]
    assert int(negative["support"]) + int(positive["support"]) == ROWS
    assert int(positive["tp"]) / int(positive["support"]) == pytest.approx(
        json.loads((run / "scores.json").read_text())["test/recall"]
    )


def test_counts_of_evaluated_files_have_paths_of_their_own(run: Path, tmp_path: Path) -> None:
    """Finds counts that another file of the same name replaces, and a name that no store takes, as it is not UTF-8."""
    best, lines = trained.load(run / "run"), (run / "new.tsv").read_text().splitlines()
    (tmp_path / "new.tsv").write_text("\n".join(lines[:20]))
    scores = [best.score(best.labelled(str(folder / "new.tsv"))) for folder in (run, tmp_path)]
    first, second = (set(trained.count_files("caf\udce9/new.tsv", each)) for each in scores)
    assert not first & second
    assert first == set(trained.count_files("new.tsv", scores[0]))
    for path in trained.count_files("caf\udce9.tsv", scores[0]):
        assert path.encode().decode().startswith("files/caf\ufffd.tsv-")


def test_data_that_is_gone_is_named(run: Path) -> None:
    best = trained.load(run / "run")
    with pytest.raises(DataError, match=r"there must be a file .*data/train\.tsv, but there is no folder"):
        best.labelled("dev")
    with pytest.raises(DataError, match=r"must be dev or test, or an existing file, got 'nothing\.tsv'"):
        best.labelled("nothing.tsv")


def test_a_run_trained_alone_loads_its_encoder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that shows whether the settings can be trained is the one that is trained."""
    loaded = []

    def counted(*arguments: Any) -> Any:
        loaded.append(arguments)
        return load_encoder(*arguments)

    monkeypatch.setattr("dice_ray.run.build.load_encoder", counted)
    config = config_of(tmp_path / "data", **{"training.epochs": 1})
    assert single.train_alone(build.fix_precision(config), tmp_path / "run", "train", Driver())
    assert len(loaded) == 1


def test_splits_of_changed_data_are_not_scored(tmp_path: Path) -> None:
    config = config_of(tmp_path / "data", **{"training.epochs": 1})
    list(single.evaluations(config, tmp_path / "run"))
    best = trained.load(tmp_path / "run")
    assert len(best.labelled("dev").records) == ROWS // 10
    rows = (tmp_path / "data/train.tsv").read_text().splitlines()
    (tmp_path / "data/train.tsv").write_text("\n".join(rows[:-30]))
    with pytest.raises(
        RunError, match=r"to score dev, the run must have the data that it was started on, .* were chang"
    ):
        best.labelled("dev")
    with pytest.raises(RunError, match="must have the data that it was started on"):
        single.train_alone(build.fix_precision(config), tmp_path / "run", "train", Driver())


@pytest.mark.parametrize("name", ["task.json", "encoder", "config.yaml"])
def test_a_folder_of_an_older_version_says_what_it_lacks(run: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(run / "run", tmp_path / "old")
    (tmp_path / "old" / name).rename(tmp_path / name)
    with pytest.raises(RunError, match=rf"with its checkpoint, and lacks {name}: .*`dice-ray train` with its settings"):
        trained.load(tmp_path / "old")


def test_weights_of_another_model_are_refused(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "run", tmp_path / "odd")
    state = Checkpoints(tmp_path / "odd").best()
    state["model"]["heads.label.output.weight"] = torch.zeros(3, 64)
    Checkpoints(tmp_path / "odd").save_best(state)
    with pytest.raises(RunError, match=r"best\.pt must fit task\.json and encoder/: .*heads\.label\.output\.weight"):
        trained.load(tmp_path / "odd")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_damaged_files_of_the_encoder_are_named(run: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(run / "run", tmp_path / "torn")
    (tmp_path / "torn" / "encoder" / name).write_text("null")
    with pytest.raises(RunError, match="torn/encoder must be as dice_ray has written it, and cannot be read"):
        trained.load(tmp_path / "torn")


@pytest.mark.parametrize("kind", ["tagging", "texts"])
def test_each_task_predicts_what_it_was_scored_by(tmp_path: Path, kind: str) -> None:
    task = {"tagging": "tagging", "texts": "text_classification"}[kind]
    source = {"synthetic": {"kind": kind, "size": 200, "positive_share": 0.1}}
    training = {"epochs": 4, "batch_size": 16, "lr": 3e-3}
    config = resolve([Layer("preset", {"task": task, "data": {"source": source}, "training": training})])
    list(single.evaluations(config, tmp_path / "run"))
    records = generate(SyntheticConfig(kind=kind, size=200))["test"]
    path = tmp_path / "new.txt"
    if kind == "tagging":
        path.write_text("\n".join("\n".join(record.words) + "\n" for record in records))
    else:
        path.write_text("\n".join(["sentence", *(record.text for record in records)]))
    best = replace(trained.load(tmp_path / "run"), decision=None)
    text = best.predict(path).text()
    if kind == "tagging":
        sentences = [[line.split("\t") for line in sentence.splitlines()] for sentence in text.split("\n\n")[:-1]]
        found = [
            replace(record, tags=tuple(tag for _, tag in each)) for record, each in zip(records, sentences, strict=True)
        ]
        right = sum(
            tag == gold
            for one, two in zip(found, records, strict=True)
            for tag, gold in zip(one.tags, two.tags, strict=True)
        )
        accuracy = right / sum(len(record.tags) for record in records)
    else:
        labels = [line.split("\t")[1] for line in text.splitlines()[1:]]
        accuracy = sum((label,) == record.labels for label, record in zip(labels, records, strict=True)) / len(records)
    assert accuracy == pytest.approx(best.score(best.labelled("test")).metrics["accuracy"])
    assert accuracy > best.score(best.labelled("test")).metrics["constant_accuracy"] + 0.02


def test_a_run_with_a_byte_level_tokenizer_has_the_score_of_its_training(tmp_path: Path) -> None:
    """Finds a run that predicts with another tokenizer than it was trained with: its score on dev is another one."""
    source = {"synthetic": {"kind": "tagging", "size": 200}}
    texts = [" ".join(record.words) for record in generate(SyntheticConfig(kind="tagging", size=200))["train"]]
    written = {
        "task": "tagging",
        "data": {"source": source},
        "model": {"encoder": str(save("roberta", tmp_path / "roberta", texts))},
        "training": {"epochs": 4, "batch_size": 8, "lr": 1e-2},
    }
    evaluations = single.evaluations(resolve([Layer("preset", written)]), tmp_path / "run")
    in_training = max((evaluation.metrics for evaluation in evaluations), key=lambda metrics: metrics["dev/f1"])
    best = trained.load(tmp_path / "run")
    scored = best.score(best.labelled("dev"), is_dev=True).metrics
    assert scored["f1"] > 0.2
    assert {name: in_training[f"dev/{name}"] for name in scored} == scored
