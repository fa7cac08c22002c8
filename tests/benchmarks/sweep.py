"""Short trials: our sweep beside Hugging Face's search on Ray, and beside a TorchTrainer within each trial.

Each side is timed from the moment that Ray stands to the one that it goes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

from dice_ray import api
from dice_ray.api.shipped import preset_file
from dice_ray.config.load import read_layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.run import build, cluster, single
from dice_ray.tracking.reader import read

if TYPE_CHECKING:
    from transformers import Trainer

SLOTS = 2
SETTINGS = {"data.source.synthetic.size": 1000, "training.evaluations": 1}
SPACE = f"{Path(__file__).parents[1] / 'tuning' / 'spaces.py'}:rate"
RATES = (1e-4, 1e-2)
NUM_TRIALS = {"ours": 32, "search": 32, "nested": 8}


@dataclass(frozen=True)
class Work:
    """What every trial of every side trains: the same rows, encoder, batch size and epochs."""

    epochs: int

    @property
    def settings(self) -> dict[str, Any]:
        return SETTINGS | {"training.epochs": self.epochs}

    @property
    def config(self) -> RunConfig:
        return resolve([read_layer(preset_file("synthetic_pairs")), values_layer("benchmark", self.settings)])

    def num_tokens(self) -> int:
        return self.epochs * sum(len(row["input_ids"]) for row in build.prepare(self.config).train.rows)

    @classmethod
    def of_seconds(cls, seconds: float) -> Work:
        """What one thread trains in about this time."""
        probe = cls(4)
        with tempfile.TemporaryDirectory() as folder:
            *_, last = single.evaluations(probe.config, Path(folder))
        rate = last.metrics["train/tokens_per_second"]
        return cls(max(1, round(seconds * rate / cls(1).num_tokens())))


def ours(work: Work, num_trials: int) -> dict[str, float]:
    settings = [f"{path}={value}" for path, value in work.settings.items()]
    started, clock = cluster.started, list[float]()

    @contextmanager
    def noted(*arguments: Any, **named: Any) -> Iterator[cluster.Cluster]:
        with started(*arguments, **named) as ray:
            clock.append(time.perf_counter())
            yield ray
            clock.append(time.perf_counter())

    with mock.patch.object(cluster, "started", noted):
        result = api.tune(
            "synthetic_pairs", settings, space=SPACE, trials=num_trials, scheduler="none", sampler="random"
        )
    begin, end = clock
    wall = end - begin
    runs = read(result.name)
    trials = runs[runs["kind"] == "trial"]
    seconds = (work.num_tokens() / trials["metrics.train/tokens_per_second"]).sum()
    span = (trials["end"].max() - trials["start"].min()).total_seconds()
    return {"wall": wall, "share": float(seconds / (SLOTS * span))}


def hf_trainer(config: RunConfig, rate: float | None = None) -> Trainer:
    """The same training in Hugging Face's Trainer."""
    from transformers import BertForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments

    torch.set_num_threads(1)
    prepared = build.prepare(config)
    encoder: Any = build.build(config).model
    small = encoder.encoder.config

    def rows(split: Any) -> list[dict[str, Any]]:
        names = ("input_ids", "token_type_ids")
        return [{**{name: row[name] for name in names}, "labels": row["label"]} for row in split.rows]

    arguments = TrainingArguments(
        tempfile.mkdtemp(),
        num_train_epochs=config.training.epochs,
        per_device_train_batch_size=config.training.batch_size,
        learning_rate=rate or config.training.lr,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )
    return Trainer(
        args=arguments,
        model_init=lambda: BertForSequenceClassification(small),
        train_dataset=rows(prepared.train),
        eval_dataset=rows(prepared.dev),
        data_collator=DataCollatorWithPadding(prepared.tokenizer),
    )


def search(work: Work, num_trials: int) -> dict[str, float]:
    """Hugging Face's `hyperparameter_search` on Ray."""
    from ray import tune

    trainer = hf_trainer(work.config)
    with cluster.started(num_cpus=SLOTS, log=Path("search.txt")):
        begin = time.perf_counter()
        trainer.hyperparameter_search(
            lambda _: {"learning_rate": tune.loguniform(*RATES)}, backend="ray", n_trials=num_trials, max_failures=0
        )
        return {"wall": time.perf_counter() - begin}


def nested(work: Work, num_trials: int) -> dict[str, float]:
    """A Tune function that fits a TorchTrainer of one worker, as Ray documents it."""
    from ray import train, tune
    from ray.train.torch import TorchTrainer
    from ray.tune.integration.ray_train import TuneReportCallback

    config = work.config

    def loop(settings: dict[str, float]) -> None:
        trainer = hf_trainer(config, settings["lr"])
        trainer.train()
        train.report({"objective": trainer.evaluate()["eval_loss"]})

    def trial(settings: dict[str, float]) -> None:
        tell: Any = TuneReportCallback()
        TorchTrainer(
            loop,
            train_loop_config=settings,
            scaling_config=train.ScalingConfig(num_workers=1),
            run_config=train.RunConfig(storage_path=tempfile.mkdtemp(), callbacks=[tell]),
        ).fit()

    # A CPU for each trial that waits, and one for its worker.
    with cluster.started(num_cpus=2 * SLOTS, log=Path("nested.txt")) as ray:
        begin = time.perf_counter()
        tune.Tuner(
            trial,
            param_space={"lr": tune.loguniform(*RATES)},
            tune_config=tune.TuneConfig(num_samples=num_trials, max_concurrent_trials=SLOTS),
            run_config=tune.RunConfig(storage_path=str(ray.scratch), verbose=0),
        ).fit()
        return {"wall": time.perf_counter() - begin}


SIDES: dict[str, Callable[[Work, int], dict[str, float]]] = {"ours": ours, "search": search, "nested": nested}


def apart(side: str, work: Work, num_trials: int) -> dict[str, float]:
    """One side in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.benchmarks.sweep", "--side", side]
        command += ["--epochs", str(work.epochs), "--trials", str(num_trials)]
        here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(command, cwd=folder, env=here, capture_output=True, text=True, check=False)
        if done.returncode:
            logs = "".join(file.read_text()[-3000:] for file in Path(folder).glob("*.txt"))
            sys.exit(f"{side} failed:\n{done.stderr[-3000:]}\n{logs}")
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    told = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    print(f"{side:7} {num_trials:3} trials of {work.epochs} epochs: {told}; {found['wall'] / num_trials:.2f} s a trial")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=list(SIDES), help="This one alone, in this process and folder.")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--trials", type=int, help="Of each side; else as many as make a steady figure.")
    arguments = parser.parse_args()
    if arguments.side:
        cluster.prepare("local")  # before anything imports Ray
        found = SIDES[arguments.side](Work(arguments.epochs), arguments.trials or NUM_TRIALS[arguments.side])
        print("\n" + json.dumps(found))
        return
    nums = {side: arguments.trials or num for side, num in NUM_TRIALS.items()}
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; {SLOTS} slots of 1 thread")
    short, longer = Work.of_seconds(1), Work.of_seconds(5)
    of_trial = {side: apart(side, short, num)["wall"] / num for side, num in nums.items()}
    figures = {
        "seconds_a_trial": of_trial["ours"],
        "times_faster_than_search": of_trial["search"] / of_trial["ours"],
        "times_faster_than_nested": of_trial["nested"] / of_trial["ours"],
        "share_of_slots_at_5_s": apart("ours", longer, nums["ours"] // 2)["share"],
    }
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
