"""A run packed as a model of MLflow: it predicts as the run does, and nothing in the folder is code."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pytest
import torch

from dice_ray.config.load import Layer, resolve
from dice_ray.errors import DataError, RunError
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.run import packaging, single, trained
from dice_ray.run.packaging import card
from dice_ray.tracking.store import quiet

TASKS: dict[str, tuple[Any, str]] = {
    "pairs": ({"sentence_pair": {}}, "pairs"),
    "texts": ({"text_classification": {}}, "texts"),
    "labels": ({"text_classification": {"labels": "several"}}, "labels"),
    "tagging": ({"tagging": {}}, "tagging"),
    "questions": ({"extractive_qa": {}}, "questions"),
    "queries": ({"mrc_ner": {"queries": "own"}}, "queries"),
}
ROWS: dict[str, list[dict[str, Any]]] = {
    "pairs": [{"sentence1": "the router is broken", "sentence2": "it is urgent"}, {"sentence1": "a", "sentence2": "b"}],
    "texts": [{"sentence": "the router is broken"}, {"sentence": "a b c"}],
    "tagging": [{"tokens": ["Anna", "sees", "Berlin"]}, {"tokens": ["rain"]}],
    "questions": [{"id": "q1", "question": "where is it", "context": "it is in the box by the door"}],
}
PARAGRAPH = {
    "context": "it is in the box by the door",
    "qas": [{"id": "q1", "question": "where is it", "answers": []}],
}
FILES = {
    "pairs": ("tsv", "sentence1\tsentence2\nthe router is broken\tit is urgent\na\tb\n"),
    "texts": ("tsv", "sentence\nthe router is broken\na b c\n"),
    "tagging": ("conll", "Anna O\nsees O\nBerlin O\n\nrain O\n"),
    "questions": ("json", json.dumps({"data": [{"title": "t", "paragraphs": [PARAGRAPH]}]})),
}


def trained_run(folder: Path, kind: str, **settings: Any) -> trained.Trained:
    """A run of generated data, with these settings of its task."""
    source = {"synthetic": {"kind": kind, "size": 60}}
    task = {name: {**values, **settings} for name, values in TASKS[kind][0].items()}
    preset = {"task": task, "data": {"source": source}, "training": {"epochs": 1, "batch_size": 16}}
    list(single.evaluations(resolve([Layer("preset", preset)]), folder / "run"))
    return trained.load(folder / "run")


Packed: TypeAlias = Callable[[str], tuple[trained.Trained, Path]]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """A run of generated data of a kind, and it as a model, whose run is not where it was any more."""

    @cache
    def make(kind: str) -> tuple[trained.Trained, Path]:
        folder = tmp_path_factory.mktemp(kind)
        run, model = trained_run(folder, kind), packaging.pack(folder / "run", folder / "model")
        (folder / "run").rename(folder / "elsewhere")
        return run, model

    return make


@pytest.mark.parametrize("kind", list(FILES))
def test_a_model_predicts_as_its_run_does(tmp_path: Path, packed: Packed, kind: str) -> None:
    quiet()
    import mlflow

    run, folder = packed(kind)
    suffix, text = FILES[kind]
    (tmp_path / f"new.{suffix}").write_text(text)
    wanted = run.predict(tmp_path / f"new.{suffix}")
    model = mlflow.pyfunc.load_model(str(folder))
    found = model.predict(pd.DataFrame(ROWS[kind]))
    assert model.input_example is not None
    assert len(model.predict(model.input_example)) == 1
    signature = model.metadata.signature
    assert set(signature.inputs.input_names()) == {*ROWS[kind][0], "id"}
    if isinstance(found, pd.DataFrame):
        assert signature.outputs.input_names() == [*found.columns]
        numbered = pd.DataFrame(ROWS[kind]).assign(id=[7, 8])  # ids need not be text
        assert model.predict(numbered)["id"].tolist() == ["7", "8"]
    match wanted:
        case trained_table if isinstance(found, pd.DataFrame):
            lines = [line.split("\t") for line in trained_table.text().splitlines()]
            assert [*found.columns] == lines[0]
            assert found["label"].tolist() == [line[1] for line in lines[1:]]
            assert found.iloc[:, 2].tolist() == pytest.approx([float(line[2]) for line in lines[1:]], abs=1e-6)
            if kind == "pairs":
                everything = model.predict(pd.DataFrame(ROWS[kind]), params={"threshold": "0"})
                assert set(everything["label"]) == {"1"}
        case _ if kind == "tagging":
            tags = [[line.split("\t")[1] for line in block.splitlines()] for block in wanted.text().split("\n\n")[:-1]]
            assert found == tags
        case _:
            assert found == json.loads(wanted.text())


@pytest.mark.parametrize("kind", ["pairs", "texts", "labels"])
def test_an_export_predicts_in_a_pipeline_of_transformers_as_its_run_does(
    tmp_path: Path, packed: Packed, kind: str
) -> None:
    from transformers import pipeline

    run, _ = packed(kind)
    name = run.export(tmp_path / "plain")
    (tmp_path / "plain/README.md").write_text(text := card(run, "mine", name, {"dev/best_f1": 0.5}))
    classify = pipeline("text-classification", model=str(tmp_path / "plain"), top_k=None)
    texts = (
        [{"text": "the router is broken", "text_pair": "it is urgent"}] if kind == "pairs" else ["the router is broken"]
    )
    rows = ROWS["pairs" if kind == "pairs" else "texts"][:1]
    (wanted,) = packaging.ServedRun(run).predict(rows).to_dict("records")
    found: Any = classify(texts)
    assert {f"probability_{each['label']}": pytest.approx(each["score"], abs=1e-5) for each in found[0]} == {
        name: value for name, value in wanted.items() if name.startswith("probability_")
    }
    assert "pipeline_tag: text-classification" in text
    assert "| dev/best_f1 | 0.5000 |" in text
    code = text.partition("```python\n")[2].partition("```")[0].replace("FOLDER", str(tmp_path / "plain"))
    exec(compile(code, "card", "exec"), {})


def test_an_export_has_the_temperature_of_the_calibration(tmp_path: Path) -> None:
    from transformers import pipeline

    run = trained_run(tmp_path, "pairs", calibration="temperature")
    assert run.decision is not None
    run = replace(run, decision=replace(run.decision, calibration={"temperature": 3.0, "steps": []}))
    run.export(tmp_path / "plain")
    classify = pipeline("text-classification", model=str(tmp_path / "plain"), top_k=None)
    found: Any = classify([{"text": "the router is broken", "text_pair": "it is urgent"}])
    (wanted,) = packaging.ServedRun(run).predict(ROWS["pairs"][:1]).to_dict("records")
    assert {each["label"]: each["score"] for each in found[0]}["1"] == pytest.approx(wanted["probability_1"], abs=1e-5)


@pytest.mark.parametrize("kind", ["pairs", "texts"])
def test_a_pipeline_reads_as_much_of_a_long_text_as_the_run(tmp_path: Path, kind: str) -> None:
    """Finds an export without the run's length: its pipeline reads longer texts whole, or fails after 512 tokens."""
    from transformers import pipeline

    run = trained_run(tmp_path, kind, max_length=32)
    run.export(tmp_path / "plain")
    classify = pipeline("text-classification", model=str(tmp_path / "plain"), top_k=None, truncation=True)
    long = "the router is broken " * 200
    if kind == "pairs":  # a text would be read in windows
        (wanted,) = (
            packaging.ServedRun(run).predict([{"sentence1": long, "sentence2": "it is urgent"}]).to_dict("records")
        )
        found: Any = classify([{"text": long, "text_pair": "it is urgent"}])
        scores = {each["label"]: each["score"] for each in found[0]}
        assert scores["1"] == pytest.approx(wanted["probability_1"], abs=1e-5)
    else:
        assert classify(long) == classify("the router is broken " * 8)
    text = card(run, "mine", "AutoModelForSequenceClassification", {})
    assert "truncation=True" in text
    assert "at most 32 tokens" in text
    assert ("averages their probabilities" in text) == (kind == "texts")


@pytest.mark.parametrize(
    ("unit", "example"),
    [("word", '["Anna", "lives", "in", "Berlin"]'), ("character", '["B", "e", "r", "l", "i", "n"]')],
)
def test_the_card_of_a_tagger_passes_what_its_run_tags(tmp_path: Path, unit: str, example: str) -> None:
    """Finds an example that passes words to a model of characters, or a text that the tokenizer splits otherwise."""
    run = trained_run(tmp_path, "tagging", unit=unit)
    text = card(run, "mine", run.export(tmp_path / "plain"), {}).replace("FOLDER", str(tmp_path / "plain"))
    assert f"tag({example}, is_split_into_words=True)" in text
    assert "joins their predictions" in text
    exec(compile(text.partition("```python\n")[2].partition("```")[0], "card", "exec"), {})


@pytest.mark.parametrize(
    ("formulation", "auto_class"), [("position", "AutoModelForQuestionAnswering"), ("token", "AutoModel")]
)
def test_questions_are_a_stock_class_over_positions_only(tmp_path: Path, formulation: str, auto_class: str) -> None:
    """Finds token probabilities in a class whose users take a softmax over positions: the best span is another one."""
    run = trained_run(tmp_path, "questions", formulation=formulation)
    assert run.export(tmp_path / "plain") == auto_class


def test_a_tagger_of_a_stock_class_is_loaded_by_transformers_too(packed: Packed) -> None:
    quiet()
    import mlflow

    run, folder = packed("tagging")
    pipeline = mlflow.transformers.load_model(str(folder))
    inputs = run.tokenizer("Anna sees Berlin", return_tensors="pt")
    with torch.no_grad():
        (ours,) = run.model(dict(inputs), {}).values()
        theirs = pipeline.model(**inputs).logits
    assert torch.allclose(ours, theirs, atol=1e-5)
    assert [each["word"] for each in pipeline("Anna", ignore_labels=[])]


def test_rows_that_lack_a_column_are_named(packed: Packed) -> None:
    _, folder = packed("pairs")
    model = packaging.load_pyfunc(str(folder))
    with pytest.raises(DataError, match=r"'sentence2'"):
        model.predict(pd.DataFrame({"sentence1": ["a"]}))
    with pytest.raises(DataError, match="there must be a row to predict"):
        model.predict([])


def test_nothing_in_the_folder_is_code_and_no_pickle_is_run(tmp_path: Path, packed: Packed) -> None:
    folder = shutil.copytree(packed("pairs")[1], tmp_path / "model")
    described = (folder / "MLmodel").read_text()
    assert "loader_module: dice_ray.served" in described
    assert "code: null" in described
    known = {"", ".txt", ".yaml", ".json", ".pt", ".safetensors"}
    assert {file.suffix for file in folder.rglob("*") if file.is_file()} <= known

    class Evil:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.mkdir, (str(tmp_path / "was run"),)

    with (folder / "run/best.pt").open("wb") as file:
        pickle.dump({"model": Evil(), "decisions": {}, "step": 1}, file)
    with pytest.raises(RunError, match=r"best\.pt must be a whole checkpoint of dice_ray"):
        packaging.load_pyfunc(str(folder))
    assert not (tmp_path / "was run").exists()


def test_a_tagger_is_exported_with_the_bias_of_its_background(tmp_path: Path, packed: Packed) -> None:
    """Finds an export of which the pipelines of transformers predict other tags than the run, and a bias not in use."""
    from transformers import AutoModelForTokenClassification

    run, _ = packed("tagging")
    exported = []
    for is_used in (False, True):
        decision = FittedDecision("f1", {"background": 9.0}, {"background": 0.0}, is_used, 9, 0.5)
        decided, folder = replace(run, decision=decision), tmp_path / str(is_used)
        text = card(decided, "mine", decided.export(folder), {})
        exported.append(AutoModelForTokenClassification.from_pretrained(folder).classifier.bias.tolist())
        assert (
            "+9 is added to the logit of the background, fitted on dev for f1\n\nThe bias of the exported" in text
        ) == is_used
    (plain, *others), (shifted, *same) = exported
    assert others == same
    assert shifted == pytest.approx(plain + 9)
