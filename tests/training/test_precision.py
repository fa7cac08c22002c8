"""Precision: what pays is taken, losses stay in fp32, and a run in half of the bits learns what one in fp32 does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dice_ray import launch
from dice_ray.training import precision
from dice_ray.training.loop import Evaluation
from dice_ray.training.precision import Numerics, forward, resolve
from tests.training.test_loop import small

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def _time_anew() -> Iterator[None]:
    precision._what_pays.cache_clear()
    yield
    precision._what_pays.cache_clear()


@pytest.mark.parametrize(
    ("device", "seconds", "best"),
    [
        (CPU, {"fp32": 10, "bf16": 3.5, "fp16": 11}, "bf16"),  # avx512_bf16
        (CPU, {"fp32": 10, "bf16": 140, "fp16": 9}, "fp32"),  # AVX2
        (CPU, {"fp32": 10, "bf16": 9, "fp16": 2}, "fp32"),  # no scaling where fp16 is not known to pay
        (GPU, {"fp32": 10, "bf16": 2, "fp16": 2}, "bf16"),  # A100
        (GPU, {"fp32": 10, "bf16": 12, "fp16": 2}, "fp16"),  # V100
    ],
)
def test_what_pays_is_taken(
    monkeypatch: pytest.MonkeyPatch, device: torch.device, seconds: dict[str, float], best: str
) -> None:
    monkeypatch.setattr(precision, "_seconds", lambda name, _: seconds[name])
    assert precision._what_pays(device, 1) == best


def test_the_probe_times_a_product_here() -> None:
    assert 0 < precision._seconds("fp32", CPU) < 10
    assert resolve("auto").precision in ("fp32", "bf16", "fp16")
    assert resolve("fp16").precision == "fp16"


def test_a_run_resolves_its_precision_once() -> None:
    written = small(**{"training.precision": "auto", "model.encoder": "minilm"})
    found = launch.resolved(written)
    assert found.training.precision == resolve("auto").precision
    assert launch.resolved(small(**{"training.precision": "auto"})).training.precision == "fp32"  # the tiny encoder
    assert launch.resolved(found) == found
    assert found.training.lr == written.training.lr


@pytest.mark.parametrize(("name", "attention"), [("fp32", "sdpa"), ("bf16", "eager"), ("fp16", "eager")])
def test_the_encoder_computes_in_the_precision_and_the_loss_in_fp32(name: precision.Precision, attention: str) -> None:
    parts = launch.build(small(**{"training.precision": name}))
    assert parts.numerics.precision == name
    assert parts.model.encoder.config._attn_implementation == attention
    seen = []
    parts.model.encoder.get_submodule("encoder.layer.0.output.dense").register_forward_hook(
        lambda _module, _inputs, output: seen.append(output.dtype)
    )
    batch = parts.task.collate(parts.train.rows, [0, 1], parts.tokenizer)
    logits = forward(parts.model, batch, parts.numerics)["label"]
    assert seen == [{"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[name]]
    assert logits.dtype == torch.float32
    assert {parameter.dtype for parameter in parts.model.parameters()} == {torch.float32}


def test_a_gpu_attends_in_one_kernel() -> None:
    assert Numerics(GPU, "bf16").attention == "sdpa"


@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_half_of_the_bits_learn_what_all_do(tmp_path: Path, name: str) -> None:
    def losses(run: str) -> list[float]:
        values = {"training.precision": run, "model.dropout": 0.0, "training.epochs": 4}
        told: list[Evaluation] = list(launch.start(small(**values), tmp_path / run))
        return [evaluation.metrics["train/loss"] for evaluation in told]

    expected, found = losses("fp32"), losses(name)
    assert expected[-1] < 0.9 * expected[0]
    assert found == pytest.approx(expected, rel=0.03)
    assert found != expected
