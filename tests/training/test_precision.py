"""Precision: the fastest is chosen, losses stay in fp32, and half precision learns like fp32."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dice_ray.api.plans import with_automatic
from dice_ray.api.presets import layers_of
from dice_ray.config import load
from dice_ray.config.load import Layer
from dice_ray.errors import RunError
from dice_ray.files import runs_folder
from dice_ray.run import build, single
from dice_ray.run import folder as folder_of_run
from dice_ray.training import precision
from dice_ray.training.loop import Evaluation
from dice_ray.training.precision import Numerics, forward, resolve, with_fallback
from dice_ray.tuning import plan_file
from dice_ray.tuning.study import StudyPlan
from tests.contracts.encoders import save
from tests.training.test_loop import small

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def _time_anew() -> Iterator[None]:
    clear = precision._fastest.cache_clear  # a test may have replaced the function when it ends
    clear()
    yield
    clear()


@pytest.mark.parametrize(
    ("device", "seconds", "has_bf16", "best"),
    [
        (CPU, {"fp32": 10, "bf16": 3.5, "fp16": 11}, True, "bf16"),  # avx512_bf16
        (CPU, {"fp32": 10, "bf16": 140, "fp16": 9}, True, "fp32"),  # AVX2
        (CPU, {"fp32": 10, "bf16": 9, "fp16": 2}, True, "fp32"),  # no scaling where fp16 is not known to pay
        (GPU, {"fp32": 10, "bf16": 2, "fp16": 2}, True, "bf16"),  # A100
        (GPU, {"fp32": 10, "bf16": 12, "fp16": 2}, False, "fp16"),  # V100
        (GPU, {"fp32": 10, "bf16": 5, "fp16": 2}, False, "fp16"),  # emulated, and faster all the same
        (GPU, {"fp32": 10, "bf16": 12, "fp16": 9}, False, "fp32"),  # GTX 1080
    ],
)
def test_fastest_that_the_device_supports_is_taken(
    monkeypatch: pytest.MonkeyPatch, device: torch.device, seconds: dict[str, float], has_bf16: bool, best: str
) -> None:
    monkeypatch.setattr(precision, "_seconds", lambda name, _: seconds[name])
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation: has_bf16)
    assert precision._fastest(device, 1) == best


@pytest.mark.parametrize(
    ("launch", "is_of_trials", "device"),
    [
        ({}, False, "cuda"),
        ({}, True, "cpu"),
        ({"gpus": 0.5}, True, "cuda"),
        ({"gpus": "auto"}, True, "cuda"),
        ({"workers": 2}, False, "cpu"),
        ({"workers": 2, "gpus": 1}, False, "cuda"),
    ],
)
def test_auto_is_timed_on_the_device_that_is_trained_on(
    monkeypatch: pytest.MonkeyPatch, launch: dict[str, object], is_of_trials: bool, device: str
) -> None:
    """Finds a driver that times its GPU for trials or workers that ask for none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(precision, "_fastest", lambda device, _: {"cuda": "fp16", "cpu": "bf16"}[device.type])
    written = {"training.precision": "auto", "model.encoder": "minilm"}
    config = small(**written, **{f"launch.{name}": value for name, value in launch.items()})
    found = build.fix_precision(config, is_of_trials=is_of_trials)
    assert found.training.precision == {"cuda": "fp16", "cpu": "bf16"}[device]


def test_the_precision_is_timed_on_this_machine() -> None:
    assert 0 < precision._seconds("fp32", CPU) < 10
    assert resolve("auto").precision in ("fp32", "bf16", "fp16")
    assert resolve("fp16").precision == "fp16"


def test_a_run_resolves_its_precision_once() -> None:
    written = small(**{"training.precision": "auto", "model.encoder": "minilm"})
    found = build.fix_precision(written)
    assert found.training.precision == resolve("auto").precision
    assert build.fix_precision(small(**{"training.precision": "auto"})).training.precision == "fp32"  # the tiny encoder
    assert build.fix_precision(found) == found
    assert found.training.lr == written.training.lr


@pytest.mark.usefixtures("fp16_anywhere")
@pytest.mark.parametrize(("name", "attention"), [("fp32", "sdpa"), ("bf16", "eager"), ("fp16", "eager")])
def test_the_encoder_computes_in_the_precision_and_the_loss_in_fp32(name: precision.Precision, attention: str) -> None:
    parts = build.build(small(**{"training.precision": name}))
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
    # Finds heads under autocast, whose logits are rounded: many scores were equal, and PR-AUC up to 10 points lower.
    assert not torch.equal(logits, logits.bfloat16().float())
    assert {parameter.dtype for parameter in parts.model.parameters()} == {torch.float32}


def test_a_machine_that_does_not_support_the_precision_of_a_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match=r"must be fp32 or bf16 on this machine, whose device is cpu, got fp16"):
        precision.check(Numerics(CPU, "fp16"))
    precision.check(Numerics(CPU, "bf16"))
    monkeypatch.setattr(precision, "supported_by", lambda _: ("fp32",))
    config = small(**{"training.precision": "bf16"})
    with pytest.raises(RunError, match="must be fp32 on this machine"):
        build.build(config)
    with pytest.raises(RunError, match="must be fp32 on this machine"):
        build.check_machine(config)


def test_a_family_that_supports_only_fp32_gets_it_from_auto_and_is_refused_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(precision, "_seconds", lambda name, _: {"fp32": 10, "bf16": 2, "fp16": 2}[name])
    texts = [text for record in build.prepare(small()).splits.train for text in (record.first, record.second)]
    for family, found in (("deberta", "fp32"), ("deberta_v3", "bf16"), ("bert", "bf16")):
        encoder = str(save(family, tmp_path / family, texts))
        written = {"model.encoder": encoder, "training.precision": "auto"}
        assert build.fix_precision(small(**written)).training.precision == found
    half = small(**{"model.encoder": str(tmp_path / "deberta"), "training.precision": "bf16"})
    with pytest.raises(RunError, match=r"must be fp32, or auto, for model\.encoder .* of the family deberta, got bf16"):
        build.build(half)


def test_a_run_resumes_with_its_own_precision(tmp_path: Path) -> None:
    begun, auto = small(**{"training.precision": "bf16"}), small(**{"training.precision": "auto"})
    folder_of_run.store_config(begun, tmp_path)
    assert folder_of_run.with_stored_precision(auto, tmp_path) == begun
    assert folder_of_run.with_stored_precision(auto, tmp_path / "elsewhere") == auto
    written = small(**{"training.precision": "fp32"})
    assert folder_of_run.with_stored_precision(written, tmp_path) == written
    with pytest.raises(RunError, match=r"other settings \(training\.precision\)"):
        folder_of_run.check_config(written, tmp_path)


def test_a_study_resumes_with_its_own_precision() -> None:
    layers = layers_of("synthetic_pairs", {})
    (*_, found) = with_automatic(layers, "mine", "pairs")
    assert found.values == {"training": {"precision": "fp32"}}
    begun = (*layers, Layer("this machine", {"training": {"precision": "bf16"}}))
    plan_file.store(
        StudyPlan(name="mine", layers=begun, arms={"plain": {}}, baseline="plain", seeds=(1,)), runs_folder() / "mine"
    )
    assert with_automatic(layers, "mine", "pairs") == begun


def test_a_study_resumes_with_its_own_name_of_the_data(tmp_path: Path) -> None:
    """Cells of two names would be compared as if they were of two data sets."""
    source = {"files": {"folder": str(tmp_path), "train": "a.tsv", "reader": {"tables": {"quoting": False}}}}
    layers = [Layer("mine.yaml", {"task": "sentence_pair", "data": {"source": source}})]
    (*_, found) = with_automatic(layers, "named", "mine")
    assert found.values["tracking"] == {"data": "mine"}
    given = [*layers, Layer("--set", {"tracking": {"data": "given"}, "training": {"precision": "fp32"}})]
    assert with_automatic(given, "named", "mine") == tuple(given)
    begun = (*layers, Layer("this machine", {"training": {"precision": "fp32"}}))
    plan_file.store(
        StudyPlan(name="named", layers=begun, arms={"plain": {}}, baseline="plain", seeds=(1,)), runs_folder() / "named"
    )
    assert with_automatic(layers, "named", "mine") == begun
    assert (load.resolve(begun).data_name, load.resolve([*begun, found]).data_name) == (tmp_path.name, "mine")


@pytest.mark.parametrize(
    ("written", "family", "found"),
    [("fp16", "bert", "fp32"), ("bf16", "bert", "bf16"), ("bf16", "deberta", "fp32")],
)
def test_a_trained_model_predicts_on_any_machine(
    written: precision.Precision, family: str, found: precision.Precision
) -> None:
    assert with_fallback(Numerics(CPU, written), family).precision == found


@pytest.mark.parametrize("values", [{}, {"mining.ratio": 3}], ids=["plain", "mined"])
def test_weights_of_model_and_losses_are_on_the_device_of_the_run(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, float]
) -> None:
    """With torch's meta device, since GPUs are rare: class weights stayed on the CPU, so that no GPU could use them."""
    monkeypatch.setattr(build, "_choose_numerics", lambda _: Numerics(torch.device("meta"), "fp32"))
    parts = build.build(small(loss="weighted_cross_entropy", **values))
    modules = {"model": parts.model, **parts.losses}
    devices = {
        name: {tensor.device.type for tensor in (*module.parameters(), *module.buffers())}
        for name, module in modules.items()
    }
    assert devices == {"model": {"meta"}, "label": {"meta"}}


def test_a_gpu_uses_fused_attention() -> None:
    assert Numerics(GPU, "bf16").attention == "sdpa"


@pytest.mark.usefixtures("fp16_anywhere")
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_half_precision_learns_like_fp32(tmp_path: Path, name: str) -> None:
    def losses(run: str) -> list[float]:
        values = {"training.precision": run, "model.dropout": 0.0, "training.epochs": 4}
        evaluations: list[Evaluation] = list(single.evaluations(small(**values), tmp_path / run))
        return [evaluation.metrics["train/loss"] for evaluation in evaluations]

    expected, found = losses("fp32"), losses(name)
    assert expected[-1] < 0.9 * expected[0]
    assert found == pytest.approx(expected, rel=0.03)
    assert found != expected


def test_kernels_for_batches_of_many_lengths_take_little_memory() -> None:
    """In a process of its own: torch reads the capacities of its caches once."""
    code = """
        import psutil, torch
        from dice_ray.training import precision
        torch.set_num_threads(1)
        precision.resolve("bf16")
        layer, before = torch.nn.Linear(64, 64), psutil.Process().memory_info().rss
        for length in range(1, 401):
            with torch.autocast("cpu", torch.bfloat16):
                layer(torch.ones(length, 64, requires_grad=True)).sum().backward()
        print((psutil.Process().memory_info().rss - before) // 2**20)
    """
    # Without the variables that a run in this process has set.
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("CACHE_CAPACITY")}
    run = [sys.executable, "-c", textwrap.dedent(code)]
    grown = int(subprocess.run(run, capture_output=True, text=True, check=True, env=inherited).stdout)
    assert grown < 300, "713 MB with the default capacities"
