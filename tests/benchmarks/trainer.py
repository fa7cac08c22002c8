"""Hugging Face's Trainer on the very rows and encoder of a run of ours: the peer that training is timed beside."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from dice_ray.training import loop

MODES: dict[str, dict[str, Any]] = {"default": {}, "best": {"train_sampling_strategy": "group_by_length"}}
"""What the Trainer is given: nothing, which is random order; and what makes it faster."""


def clock() -> float:
    """Seconds of this process, whose one thread computes: what else runs slows neither side. On a GPU, all seconds."""
    if not torch.cuda.is_available():
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


class Theirs:
    """The rows of a task as the Trainer takes them, with the stock model and collator of their kind."""

    def __init__(self, parts: loop.Parts, encoder: Path, mode: str, batch_size: int) -> None:
        from transformers import (
            AutoModelForQuestionAnswering,
            AutoModelForSequenceClassification,
            AutoModelForTokenClassification,
            DataCollatorForTokenClassification,
            DataCollatorWithPadding,
        )

        rows = parts.train.rows
        self.batch_size = batch_size
        self.settings = MODES[mode] | {"bf16": parts.numerics.precision == "bf16"}
        self.collator: Any = DataCollatorWithPadding(parts.tokenizer)
        labels: list[dict[str, Any]]
        if "label" in rows[0]:
            self.model = AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=2)
            labels = [{"labels": int(row["label"])} for row in rows]
        elif "tags" in rows[0]:
            num_labels = max(max(row["tags"], default=0) for row in rows) + 1
            self.model = AutoModelForTokenClassification.from_pretrained(encoder, num_labels=num_labels)
            labels = [{"labels": _tag_of_each_token(row)} for row in rows]
            self.collator = DataCollatorForTokenClassification(parts.tokenizer)
        else:
            self.model = AutoModelForQuestionAnswering.from_pretrained(encoder)
            labels = [
                {f"{term}_positions": int(row[term][0]) if row["known"] else -100 for term in ("start", "end")}
                for row in rows
            ]
        names = [name for name in ("input_ids", "token_type_ids") if name in rows[0]]
        self.rows = [
            {
                **{name: list(map(int, row[name])) for name in names},
                "attention_mask": [1] * len(row["input_ids"]),
                **label,
            }
            for row, label in zip(rows, labels, strict=True)
        ]

    def __call__(self, folder: Path) -> float:
        """Seconds of an epoch."""
        from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

        times: list[float] = []

        class Clock(TrainerCallback):  # type: ignore[misc]
            def on_epoch_begin(self, *_: Any, **__: Any) -> None:
                times.append(clock())

            def on_epoch_end(self, *_: Any, **__: Any) -> None:
                times.append(clock())

        quiet: dict[str, Any] = {
            "report_to": "none",
            "save_strategy": "no",
            "logging_strategy": "no",
            "disable_tqdm": True,
            "use_cpu": not torch.cuda.is_available(),
            "warmup_steps": 2,
        }
        arguments = TrainingArguments(
            str(folder / "trainer"),
            num_train_epochs=1,
            per_device_train_batch_size=self.batch_size,
            **quiet,
            **self.settings,
        )
        trainer = Trainer(
            self.model, arguments, train_dataset=self.rows, data_collator=self.collator, callbacks=[Clock()]
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        return times[1] - times[0]


def _tag_of_each_token(row: dict[str, Any]) -> list[int]:
    tags = dict(zip(map(int, row["places"]), map(int, row["tags"]), strict=True))
    return [tags.get(place, -100) for place in range(len(row["input_ids"]))]
