"""ReaderConfig: THE place where a reader is registered."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from dice_ray.data.readers.tables import TablesConfig
from dice_ray.settings import Choice

ReaderConfig: TypeAlias = Annotated[TablesConfig, Choice()]
