"""Training a part of MiniLM against all of it, on MRPC: time, memory, checkpoints, and the F1 of one short run."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from dice_ray.api.library import preset_file
from dice_ray.config.load import read_layer, resolve, values_layer
from dice_ray.run import single, trained
from dice_ray.training.checkpoint import BEST, LAST
from dice_ray.training.loop import StepProgress

ARMS: dict[str, dict[str, Any]] = {
    "all weights": {"training.lr": 1e-4},
    "freeze=3": {"model.freeze": 3, "training.lr": 1e-4},
    "adapter=lora": {"model.adapter": "lora", "training.lr": 1e-3},
    "freeze=encoder": {"model.freeze": "encoder", "training.lr": 3e-3},
}
WARM_UP = 3
"""Steps that are not timed: they allocate memory that the others reuse."""


def alone(arm: str, epochs: float, seed: int) -> dict[str, float]:
    """One run in this process."""
    shared = {"model.encoder": "minilm", "training.epochs": epochs, "training.precision": "fp32", "launch.threads": 1}
    values = {**shared, **ARMS[arm], "training.seed": seed}
    config = resolve([read_layer(preset_file("mrpc")), values_layer("benchmark", values)])
    before = psutil.Process().memory_info().rss
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    # CPU seconds: other work on the machine changes them little.
    seconds, clock = [], time.process_time()
    with tempfile.TemporaryDirectory(prefix="dice_ray-") as name:
        folder = Path(name)
        for event in single.train(config, folder):
            if isinstance(event, StepProgress):
                seconds.append(time.process_time() - clock)
            clock = time.process_time()
        (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
        model = trained.load(folder).model
        return {
            "step_s": statistics.median(seconds[WARM_UP:]),
            "peak_mb": (int(peak.split()[1]) * 1024 - before) / 1e6,
            "best_mb": (folder / BEST).stat().st_size / 1e6,
            "last_mb": (folder / LAST).stat().st_size / 1e6,
            "trained": sum(each.numel() for each in model.parameters() if each.requires_grad),
            "f1": single.score(config, folder, "test")["test/f1"],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", choices=ARMS)
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(alone(given.alone, given.epochs, given.seed)))
        return
    found: dict[str, dict[str, float]] = {}
    print(f"MiniLM on MRPC, {given.epochs:g} epochs, one thread; in parentheses: the share of training all weights")
    for arm in ARMS:
        command = [sys.executable, "-m", "tests.benchmarks.partly", "--alone", arm]
        command += ["--epochs", str(given.epochs), "--seed", str(given.seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        one = found[arm] = json.loads(done.stdout.splitlines()[-1])
        whole = next(iter(found.values()))
        share = {name: f"({one[name] / whole[name]:.2f})" for name in one}
        print(
            f"{arm:15} {one['trained']:>10,.0f} trained {share['trained']}  {one['step_s']:.3f} CPU s a step "
            f"{share['step_s']}  peak {one['peak_mb']:.0f} MB {share['peak_mb']}  best.pt {one['best_mb']:.1f} MB, "
            f"last.pt {one['last_mb']:.1f} MB {share['last_mb']}  test F1 {one['f1']:.3f}",
            flush=True,
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
