"""TaskConfig: THE place where a task is registered."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from dice_ray.settings import Choice
from dice_ray.tasks.sentence_pair import SentencePairConfig

TaskConfig: TypeAlias = Annotated[SentencePairConfig, Choice()]
