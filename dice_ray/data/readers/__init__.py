"""ReaderConfig: the union of all readers; a new reader is registered here."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from dice_ray.data.readers.conll import ConllConfig
from dice_ray.data.readers.conllu import ConlluConfig
from dice_ray.data.readers.mrc_ner import MrcNerReaderConfig
from dice_ray.data.readers.rows import ArrowConfig, JsonlConfig, ParquetConfig
from dice_ray.data.readers.sentences import ParallelConfig, WordTagConfig
from dice_ray.data.readers.spans import SpansConfig
from dice_ray.data.readers.squad import SquadConfig
from dice_ray.data.readers.tables import TablesConfig
from dice_ray.data.readers.texts import FasttextConfig, FoldersConfig
from dice_ray.data.readers.trees import TreesConfig
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
