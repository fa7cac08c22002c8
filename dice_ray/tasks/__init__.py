"""TaskConfig: THE place where a task is registered."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from dice_ray.settings import Choice
from dice_ray.tasks.extractive_qa import ExtractiveQAConfig
from dice_ray.tasks.mrc_ner import MrcNerConfig
from dice_ray.tasks.tagging import TaggingConfig
from dice_ray.tasks.text_classification import SentencePairConfig, TextClassificationConfig

TaskConfig: TypeAlias = Annotated[
    ExtractiveQAConfig | MrcNerConfig | SentencePairConfig | TaggingConfig | TextClassificationConfig, Choice()
]
