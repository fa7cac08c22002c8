"""Layers are resolved to one configuration, or to every problem."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from dice_ray.config.load import Layer, as_yaml, read_layer, resolve, set_layer, values_layer
from dice_ray.errors import ConfigError
from dice_ray.settings import flat, nested

PRESET = Layer(
    "preset.yaml", {"task": "sentence_pair", "data": {"source": "synthetic"}, "loss": {"focal": {"gamma": 3}}}
)
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]" + "".join(
    f", {name}: &{name} [{', '.join([f'*{below}'] * 9)}]" for below, name in zip("abcdefgh", "bcdefghi", strict=True)
)
"""YAML of nine lists, and of 400 million items to whoever walks through it."""


def problems_of(*layers: Layer) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        resolve(layers)
    return [str(problem) for problem in caught.value.problems]


def test_a_later_layer_overrides_an_earlier_one() -> None:
    assert flat(resolve([PRESET]))["loss.focal.gamma"] == 3
    assert flat(resolve([PRESET, set_layer(["loss.focal.gamma=1"])]))["loss.focal.gamma"] == 1
    assert flat(resolve([PRESET, set_layer(["loss=focal"])]))["loss.focal.gamma"] == 3
    replaced = flat(resolve([PRESET, values_layer("trial", {"loss": "dice"})]))
    assert replaced["loss"] == "dice"
    assert "loss.focal.gamma" not in replaced


def test_derived_defaults_are_filled_after_the_last_layer() -> None:
    tversky = resolve([PRESET, set_layer(["loss.tversky.alpha=0.3"])])
    assert flat(tversky)["loss.tversky.beta"] == pytest.approx(0.7)


def test_numbers_in_any_spelling() -> None:
    assert resolve([PRESET, set_layer(["training.lr=2e-5"])]).training.lr == 2e-5


def test_every_problem_names_its_layer() -> None:
    lines = problems_of(
        PRESET,
        set_layer(["training.lr=-1", "loss.focal.gama=2"]),
        values_layer("trial", {"model.head_bias": "priors"}),
    )
    assert [line.partition(":")[0] for line in lines] == ["model.head_bias", "loss.focal.gama", "training.lr"]
    assert "(from trial)" in lines[0]
    assert "'zero' or 'prior'" in lines[0]
    assert "did you mean loss.focal.gamma?" in lines[1]
    assert "must be greater than 0, got -1 (from --set)" in lines[2]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("data.source.synthetic.size=1000000000000", "size: must be less than or equal to 10000000, got 1000000000000"),
        ("training.epochs=1e9", "training.epochs: must be less than or equal to 100000, got "),
        ("training.evaluations=1000000000", "training.evaluations: must be less than or equal to 100000, got "),
        ("loss.focal.gamma", "--set: must be path=value"),
        ("=2", "--set: must be path=value"),
        ("launch.threads=100000", "launch.threads: must be less than or equal to 1024, got 100000"),
        ("training.epochs=" + "[" * 5000, "training.epochs: must be a YAML value, got '[[[["),
        ("training.epochs=" + "[" * 5000 + "]" * 5000, "training.epochs: must be a YAML value, got '[[[["),
        ("training.epochs=" + "[" * 60 + "]" * 60, "training.epochs: must be nested at most 50 deep, got [[[["),
        ("training.epochs=&itself [*itself]", "training.epochs: must be nested at most 50 deep, got [[...]]"),
        (".".join(["a"] * 10_000) + "=1", "a.a.... (19999 characters): must be nested at most 50 deep, got 1"),
        ("training.lr=" + "x" * 10**7, "training.lr: must be shorter than 100,000 characters, got 10,000,000"),
        ("training.lr=" + "x" * 90_000, "training.lr: must be a valid number, unable to parse string as a number"),
        ("x" * 10**7 + "=1", "xxx... (10000000 characters): is not a key"),
        ("x" * 10**7, "--set: must be path=value, got 'xxx"),
        ("training.epochs=" + "9" * 5000, "training.epochs: must be a YAML value, got '999"),
        ("training.epochs=2024-13-45", "training.epochs: must be a YAML value, got '2024-13-45'"),
        ("training.epochs=!!timestamp x", "training.epochs: must be a YAML value"),
        ("training.epochs=!!bool x", "training.epochs: must be a YAML value"),
        (
            f"training.epochs={{{BOMB}}}",
            "training.epochs: must hold fewer than 100,000 values, got a dict of more than",
        ),
        ('training.epochs="\\ud800"', r"training.epochs: must be text without half of a surrogate pair, got '\ud800'"),
        ("data.imbalance.\ud800=1", r"data.imbalance.\ud800: must be text without half of a surrogate pair, got 1"),
        ("\x1b[31m=1", r"\x1b[31m: is not a key"),
    ],
    ids=lambda text: f"{text:.40}",
)
def test_an_assignment_that_is_malformed_or_too_large_is_one_short_error(assignment: str, message: str) -> None:
    """Most were a traceback, or a message of megabytes after many seconds."""
    began = time.process_time()
    with pytest.raises(ConfigError) as raised:
        resolve([PRESET, set_layer([assignment])])
    assert message in str(raised.value)
    assert len(str(raised.value)) < 1000
    assert time.process_time() - began < 10


def test_a_preset_that_holds_no_sections_or_is_too_large_or_deep_is_an_error(tmp_path: Path) -> None:
    for text, message in (
        ("a: [", "must be YAML"),
        ("- 1", "must hold sections"),
        ("", "must hold sections"),
        ("a: " + "x" * 10**6, "must be shorter than 1,000,000"),
        ("[" * 5000, "must be YAML in UTF-8, got it is nested too deep"),
        (BOMB.replace(", b:", "\nb:"), "must be YAML in UTF-8"),
        (f"{{{BOMB}}}", "i: must hold fewer than 100,000 values"),
        (f"[{{{BOMB}}}]", "must hold sections: task, data, ..., got a list of more than 10,000 items"),
    ):
        (tmp_path / "a.yaml").write_text(text)
        with pytest.raises(ConfigError, match=message):
            read_layer(tmp_path / "a.yaml")


def test_two_branches_in_one_layer_are_an_error() -> None:
    (line,) = problems_of(PRESET, values_layer("trial", {"loss": "dice", "loss.focal.gamma": 2}))
    assert line.startswith(
        "loss: must be one choice, and dice and focal are chosen, got {'dice': {}, 'focal': {'gamma': 2}} (from trial)"
    )


@pytest.mark.parametrize(("wrong", "right"), [("loss=5", "loss.focal.gamma=2"), ("training=1", "training.lr=2")])
def test_a_value_that_is_no_branch_is_refused_beside_one_too(wrong: str, right: str) -> None:
    for settings in ([wrong, right], [right, wrong]):
        (line,) = problems_of(PRESET, set_layer(settings))
        assert "must" in line


def test_a_gpu_is_whole_or_shared_by_runs_of_one_worker() -> None:
    assert resolve([PRESET, set_layer(["launch.gpus=0.5"])]).launch.gpus == 0.5
    whole = resolve([PRESET, set_layer(["launch.gpus=2.0", "launch.workers=2"])]).launch.gpus
    assert (whole, type(whole)) == (2, int), "as it is shown"
    for wrong in ("1.5", "-1", ".nan"):
        (line,) = problems_of(PRESET, set_layer([f"launch.gpus={wrong}"]))
        assert line.startswith("launch.gpus: must be auto, a whole number, or a number below 1, got ")
    (line,) = problems_of(PRESET, set_layer(["launch.gpus=0.5", "launch.workers=2"]))
    assert line == "launch.gpus: must be whole where launch.workers is more than 1, got 0.5 (from --set)"


def test_sections_are_checked_against_each_other() -> None:
    (line,) = problems_of(PRESET, set_layer(["training.batch_size=1", "launch.workers=2"]))
    assert line.startswith("training.batch_size: must be at least launch.workers, 2")
    tagged = {"files": {"train": "a.conll", "reader": "conll"}}
    (line,) = problems_of(PRESET, Layer("mine.yaml", {"data": {"source": tagged}}))
    assert line == (
        "data.source: must yield what task sentence_pair reads, PairRecord, got TaggedRecord (from mine.yaml)"
    )
    for setting in ("groups", "time"):
        layers = Layer("mine.yaml", {"task": "tagging", "data": {"source": tagged}}), set_layer([f"data.{setting}=doc"])
        (line,) = problems_of(*layers)
        assert line.startswith(
            f"data.{setting}: must be left out: the records are not rows with columns, as these readers read them, got"
        )
        assert line.endswith("got doc (from --set). Known: hub, jsonl, tables, parquet, arrow.")
    whole = {"train": "a.tsv", "dev": "b.tsv", "reader": {"tables": {"quoting": False}}}
    (line,) = problems_of(PRESET, Layer("mine.yaml", {"data": {"source": {"files": whole}, "time": "day"}}))
    assert line == "data.time: must be left out: data.source lacks no split, got day (from mine.yaml)"
    texts = {"task": "text_classification", "data": {"source": {"synthetic": {"kind": "texts"}}}}
    lines = problems_of(Layer("mine.yaml", texts), set_layer(["data.imbalance=add_both", "data.oversampling=balanced"]))
    assert [line.partition(" (")[0] for line in lines] == [
        f"data.{name}: must be none for a task without a positive class" for name in ("imbalance", "oversampling")
    ]
    both = ["data.oversampling=balanced", "data.batches.positive_share=0.5", "training.batch_size=1"]
    assert [line.partition(":")[0] for line in problems_of(PRESET, set_layer(both))] == [
        "data.batches.positive_share",
        "training.batch_size",
    ]
    (line,) = problems_of(PRESET, set_layer(["data.batches.correct_prior=true", "data.batches.size=9"]))
    assert line.startswith("data.batches.correct_prior: must be false without one of data.oversampling, data.batches.u")
    (line,) = problems_of(PRESET, set_layer(["loss=asymmetric"]))
    assert line.startswith("loss: must take the softmax link of task sentence_pair, got asymmetric (from --set)")


@pytest.mark.parametrize(
    "loss",
    ["dice", "self_adjusting_dice", "tversky", "dice_ce", "weighted_cross_entropy", "logit_adjusted", "asymmetric"],
)
def test_a_loss_over_classes_is_refused_for_positions_and_accepted_for_tokens(loss: str) -> None:
    source = {"synthetic": {"kind": "questions"}}
    preset = Layer("qa.yaml", {"task": "extractive_qa", "data": {"source": source}, "loss": loss})
    assert problems_of(preset) == [
        "loss: must take the position link of task extractive_qa (task.extractive_qa.formulation=token has another, "
        f"which every loss takes), got {loss} (from qa.yaml). Known: cross_entropy, focal, poly, custom."
    ]
    assert resolve([preset, set_layer(["task.extractive_qa.formulation=token"])]).loss.name == loss


def test_the_first_equals_sign_ends_the_path() -> None:
    layer = set_layer(["data.source.files.folder=/data/split=1"])
    assert layer.values == {"data": {"source": {"files": {"folder": "/data/split=1"}}}}


def test_a_preset_may_use_paths_but_no_duplicate_keys(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("training.lr: 1\ntraining: {epochs: 2}\n")
    assert read_layer(path).values == {"training": {"lr": 1, "epochs": 2}}
    path.write_text("training: {lr: 1}\ntraining: {epochs: 2}\n")
    with pytest.raises(ConfigError, match="the key 'training' is written twice"):
        read_layer(path)
    path.write_bytes(b"loss: \xff")
    with pytest.raises(ConfigError, match="must be YAML in UTF-8"):
        read_layer(path)


def test_a_stored_configuration_is_a_preset(tmp_path: Path) -> None:
    config = resolve([PRESET])
    stored: dict[str, Any] = yaml.safe_load(as_yaml(config))
    assert stored == nested(config)
    assert resolve([Layer("stored", stored)]) == config
