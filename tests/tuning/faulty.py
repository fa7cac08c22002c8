"""A loss of a user's that does not work: each of its attempts is noted in a file."""

from __future__ import annotations

import os
import time
from pathlib import Path

from torch import Tensor

from dice_ray.losses.cross_entropy import CrossEntropyLoss
from dice_ray.losses.items import Items
from dice_ray.terms import TermFacts


class Faulty(CrossEntropyLoss):
    def __init__(self, facts: TermFacts, fault: str, attempts: str) -> None:
        super().__init__(facts.link)
        self._fault = fault
        self._attempts = Path(attempts)

    def losses(self, items: Items) -> Tensor:
        if self._fault != "none":
            with self._attempts.open("a") as attempts:
                attempts.write(f"{self._fault}\n")
        if self._fault == "an error":
            raise ValueError("a mistake\nand more words about it")
        if self._fault == "a full disk":
            raise OSError("no space left")
        if self._fault == "an exit":
            os._exit(3)
        if self._fault == "a hang":
            time.sleep(3600)
        return super().losses(items)
