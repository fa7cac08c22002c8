"""ReaderConfig: the union of all formats; a new format is registered here."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias, get_args

from dice_ray.data.formats.base import ReaderBranch
from dice_ray.data.formats.conll import ConllConfig, ConlluConfig
from dice_ray.data.formats.questions import MrcNerReaderConfig, SquadConfig
from dice_ray.data.formats.rows import ArrowConfig, JsonlConfig, ParquetConfig
from dice_ray.data.formats.sentences import ParallelConfig, WordTagConfig
from dice_ray.data.formats.span_files import SpansConfig
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.texts import FasttextConfig, FoldersConfig, TreesConfig
from dice_ray.settings import Choice

ReaderConfig: TypeAlias = Annotated[
    SquadConfig
    | MrcNerReaderConfig
    | SpansConfig
    | JsonlConfig
    | TreesConfig
    | FasttextConfig
    | ConlluConfig
    | ConllConfig
    | ParallelConfig
    | WordTagConfig
    | TablesConfig
    | ParquetConfig
    | ArrowConfig
    | FoldersConfig,
    Choice(),
]
"""In the order in which `dice-ray init` tries them: strict formats first, tables last, as they take most files."""
FORMATS: Final[tuple[type[ReaderBranch], ...]] = get_args(get_args(ReaderConfig)[0])
