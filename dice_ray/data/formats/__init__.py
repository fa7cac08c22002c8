"""ReaderConfig: the union of all readers; a new reader is registered here."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from dice_ray.data.formats.conll import ConllConfig, ConlluConfig
from dice_ray.data.formats.questions import MrcNerReaderConfig, SquadConfig
from dice_ray.data.formats.rows import ArrowConfig, JsonlConfig, ParquetConfig
from dice_ray.data.formats.sentences import ParallelConfig, WordTagConfig
from dice_ray.data.formats.span_files import SpansConfig
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.texts import FasttextConfig, FoldersConfig, TreesConfig
from dice_ray.settings import Choice

ReaderConfig: TypeAlias = Annotated[
    TablesConfig
    | JsonlConfig
    | ParquetConfig
    | ArrowConfig
    | ConllConfig
    | ConlluConfig
    | ParallelConfig
    | WordTagConfig
    | TreesConfig
    | SpansConfig
    | FasttextConfig
    | FoldersConfig
    | SquadConfig
    | MrcNerReaderConfig,
    Choice(),
]
