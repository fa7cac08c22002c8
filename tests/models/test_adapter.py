"""Runs that train a part of the encoder: what their checkpoints hold, and that everything else works with them."""

from __future__ import annotations

import itertools
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from dice_ray.config.load import Layer, resolve
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, RunError
from dice_ray.models.encoder import weight_bytes
from dice_ray.run import packaging, single, trained
from dice_ray.run.build import build
from dice_ray.run.rehearsal import rehearse
from dice_ray.tracking.store import quiet
from dice_ray.training.checkpoint import BEST
from tests.contracts.encoders import save

LORA: dict[str, Any] = {"adapter": {"lora": {"rank": 4, "dropout": 0.1}}}
NEW = [{"sentence1": "the router is broken", "sentence2": "it is urgent"}, {"sentence1": "a", "sentence2": "b"}]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [f"the {word} is {state}" for word in ("router", "box", "lamp") for state in ("broken", "urgent", "lovely")]
    return save("bert", tmp_path_factory.mktemp("encoder") / "bert", texts)


def config_of(encoder: Path | str, kind: str = "pairs", **model: Any) -> RunConfig:
    written = {
        "task": {"pairs": "sentence_pair", "tagging": "tagging"}[kind],
        "data": {"source": {"synthetic": {"kind": kind, "size": 60}}},
        "model": {"encoder": str(encoder), **model},
        "training": {"epochs": 2, "batch_size": 16, "lr": 1e-2, "precision": "fp32"},
    }
    return resolve([Layer("test", written)])


def weights(folder: Path, name: str = BEST) -> dict[str, torch.Tensor]:
    stored: dict[str, torch.Tensor] = torch.load(folder / name, weights_only=True)["model"]
    return stored


@pytest.mark.parametrize(
    ("model", "trained_in_encoder"),
    [(LORA, 2 * 6 * 2), ({"freeze": "encoder"}, 0), ({"freeze": 1}, 16)],
    ids=["lora", "encoder", "1 layer"],
)
def test_checkpoints_hold_what_is_trained_and_the_run_goes_on_from_them(
    encoder: Path, tmp_path: Path, model: dict[str, Any], trained_in_encoder: int
) -> None:
    config = config_of(encoder, **model)
    wanted = [evaluation.metrics for evaluation in single.evaluations(config, tmp_path / "whole")]
    names = weights(tmp_path / "whole").keys()
    assert sum(name.startswith("encoder.") for name in names) == trained_in_encoder
    assert len(names) == trained_in_encoder + 2
    state = torch.load(tmp_path / "whole/last.pt", weights_only=True)
    assert len(state["optimizer"]["state"]) == sum(map(len, (g["params"] for g in state["optimizer"]["param_groups"])))
    assert len(state["optimizer"]["state"]) == len(names)

    first = list(itertools.islice(single.evaluations(config, tmp_path / "resumed"), 1))
    resumed = list(single.evaluations(config, tmp_path / "resumed"))
    assert len(first) == 1
    assert [each.metrics["train/loss"] for each in resumed] == [each["train/loss"] for each in wanted]
    assert all(
        weight.equal(weights(tmp_path / "whole")[name]) for name, weight in weights(tmp_path / "resumed").items()
    )


def test_a_run_with_an_adapter_is_scored_exported_and_served_without_it(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet()
    copied = shutil.copytree(encoder, tmp_path / "bert")
    config = config_of(copied, **LORA)
    scores = {each.step: each.metrics["dev/f1_tuned"] for each in single.evaluations(config, tmp_path / "run")}
    best = trained.load(tmp_path / "run")
    assert best.score(best.labelled("dev")).metrics["f1_tuned"] == pytest.approx(scores[best.step])
    assert weight_bytes(config.model, best.tokenizer) == 4 * sum(
        weight.numel() for name, weight in weights(tmp_path / "run").items() if name.startswith("encoder.")
    )
    cells = packaging.ServedRun(best).predict(NEW)
    assert best.export(tmp_path / "plain") == "AutoModelForSequenceClassification"
    model = packaging.pack(tmp_path / "run", tmp_path / "model")
    shutil.rmtree(copied)

    monkeypatch.setitem(sys.modules, "peft", None)  # importing it fails from here on
    plain = AutoTokenizer.from_pretrained(tmp_path / "plain")
    stock = AutoModelForSequenceClassification.from_pretrained(tmp_path / "plain")
    pairs = [(row["sentence1"], row["sentence2"]) for row in NEW]
    with torch.no_grad():
        exported = stock(**plain(pairs, padding=True, return_tensors="pt")).logits.softmax(-1)[:, 1]
    assert exported.tolist() == pytest.approx(list(cells["probability_1"]), abs=1e-5)
    assert list(packaging.load_pyfunc(str(model)).predict(NEW)["probability_1"]) == pytest.approx(
        exported.tolist(), abs=1e-5
    )
    with pytest.raises(RunError, match="there is no folder"):
        trained.load(tmp_path / "run")


def test_the_weights_that_a_checkpoint_lacks_must_be_those_of_before(encoder: Path, tmp_path: Path) -> None:
    changed = shutil.copytree(encoder, tmp_path / "bert")
    config = config_of(changed, **LORA)
    next(single.evaluations(config, tmp_path / "run"))
    content = load_file(changed / "model.safetensors")
    content["embeddings.word_embeddings.weight"][5, 5] += 1e-3
    save_file(content, changed / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        RunError, match=r"best\.pt holds only the weights .* \(digest \w{12} then, \w{12} now\); restore"
    ):
        trained.load(tmp_path / "run")
    with pytest.raises(RunError, match=r"last\.pt holds only the weights that were trained"):
        list(single.evaluations(config, tmp_path / "run"))


def test_random_weights_of_the_tiny_encoder_are_stored(tmp_path: Path) -> None:
    config = config_of("tiny", **LORA)
    scores = {each.step: each.metrics["dev/f1_tuned"] for each in single.evaluations(config, tmp_path / "run")}
    best = trained.load(tmp_path / "run")
    assert any("word_embeddings" in name for name in weights(tmp_path / "run"))
    assert best.score(best.labelled("dev")).metrics["f1_tuned"] == pytest.approx(scores[best.step])


def test_recomputed_activations_give_the_same_gradient_of_an_adapter(encoder: Path) -> None:
    found = []
    for activations in ("keep", "recompute"):
        config = config_of(encoder, **LORA)
        config = config.model_copy(update={"training": config.training.model_copy(update={"activations": activations})})
        parts = build(config)
        batch = parts.task.collate(parts.train.rows, range(8), parts.tokenizer)
        parts.model.train()
        torch.manual_seed(0)
        parts.model(batch.inputs, batch.targets)["label"].square().sum().backward()
        found.append({name: each.grad for name, each in parts.model.named_parameters() if each.grad is not None})
    kept, recomputed = found
    assert kept.keys() == recomputed.keys()
    for name, gradient in kept.items():
        assert gradient is not None
        torch.testing.assert_close(recomputed[name], gradient)


def test_a_rehearsal_counts_what_is_trained(encoder: Path) -> None:
    whole, lora = (rehearse(config_of(encoder, **model)) for model in ({}, LORA))
    assert whole.num_trained == whole.num_parameters
    assert lora.num_trained < lora.num_parameters / 2
    assert lora.weights < whole.weights / 2


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"freeze": 3},
            r"model\.freeze: must be none, embeddings, encoder, or at most 2, the layers of model\.encoder",
        ),
        ({"freeze": "layers"}, r"model\.freeze: must be none, embeddings, encoder, or a number of layers"),
        ({"freeze": 0}, r"model\.freeze: must be none, embeddings, encoder, or a number of layers"),
        ({"freeze": 1, **LORA}, r"model\.freeze: must be none with model\.adapter=lora"),
        ({"adapter": {"lora": {"rank": 0}}}, r"model\.adapter\.lora\.rank: must be greater than or equal to 1"),
        ({"adapter": "qlora"}, r"model\.adapter: must be one of the known names"),
    ],
)
def test_settings_that_fit_nothing_are_refused(encoder: Path, model: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(config_of(encoder, **model))


def test_pooling_is_refused_for_tasks_over_tokens(encoder: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.pooling: must be auto for task tagging"):
        config_of(encoder, kind="tagging", pooling="mean")


def test_a_missing_library_is_named(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(RunError, match=r"needs the library peft, which is not installed: `pip install peft`"):
        build(config_of(encoder, **LORA))
