"""How soon a search finds good settings: samplers and starts by their best dev F1 after each trial, on real pairs.

What was searched before is kept in the folder: the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from analysis.statistics.intervals import t_interval
from dice_ray import api
from dice_ray.api.places import runs_folder
from dice_ray.tuning.ledger import Ledger

MRPC = ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt")
DEV = "dev.txt"
NUM_TRAINING, NUM_DEV = 1000, 400
STRATEGIES: dict[str, dict[str, Any]] = {
    "random": {"sampler": "random", "scheduler": "none"},
    "tpe": {"sampler": "tpe", "scheduler": "none"},
    "tpe, asha, published": {"sampler": "tpe", "scheduler": "asha", "warm_start": api.PUBLISHED},
}


def fixed_pairs(folder: Path) -> dict[str, Any]:
    """Settings that make of the preset `mrpc` its first training pairs, and those that follow as dev."""
    source = Path(os.environ["DICE_RAY_DATA"]) / "mrpc"
    header, *lines = (source / MRPC[0]).read_text(encoding="utf-8-sig").splitlines()
    folder.mkdir(exist_ok=True)
    for name, part in ((MRPC[0], lines[:NUM_TRAINING]), (DEV, lines[NUM_TRAINING : NUM_TRAINING + NUM_DEV])):
        (folder / name).write_text("\n".join([header, *part]) + "\n", encoding="utf-8")
    (folder / MRPC[1]).write_bytes((source / MRPC[1]).read_bytes())
    return {
        "data.source.files.folder": str(folder.resolve()),
        "data.source.files.dev": DEV,
        "model.encoder": "minilm",
        "training.epochs": 1,
        "training.evaluations": 4,
    }


def best_so_far(strategy: str, seed: int, num_trials: int, settings: dict[str, Any]) -> list[float]:
    """The best dev F1 after each trial, in the order of their ends."""
    name = f"search_{strategy.replace(', ', '_')}_{seed}"
    if (runs_folder() / name / "plan.yaml").exists():
        api.resume(name)
    else:
        api.tune(
            "mrpc", settings, space="joint_tuning", trials=num_trials, seed=seed, name=name, **STRATEGIES[strategy]
        )
    scores = [ended.score or 0.0 for ended in Ledger(runs_folder() / name / "ledger.jsonl").outcomes.values()]
    best: list[float] = np.maximum.accumulate(scores).tolist()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(".bench/search"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    os.chdir(arguments.folder)
    settings = fixed_pairs(Path("pairs"))
    figures = {}
    print(
        f"best dev F1 after 1, 2, 4, ... trials, the mean of {arguments.seeds} seeds; area is its mean over all trials"
    )
    for strategy in STRATEGIES:
        curves_ST = np.array(
            [best_so_far(strategy, seed, arguments.trials, settings) for seed in range(arguments.seeds)]
        )
        area = t_interval(curves_ST.mean(1).tolist())
        shown = [f"{curves_ST[:, num - 1].mean():.4f}" for num in (1, 2, 4, 8, 16) if num <= arguments.trials]
        print(f"{strategy:22} {' '.join(shown)}   area {area.mean:.4f} [{area.low:.4f}, {area.high:.4f}]", flush=True)
        figures[strategy] = {"area": area.mean, "low": area.low, "high": area.high}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
