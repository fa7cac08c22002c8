"""What a file of the user's is, guessed: readers are tried on its first rows, and the one that reads them is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from dice_ray.data.guess.base import NUM_ROWS, Guess
from dice_ray.data.guess.documents import queries, questions, trees
from dice_ray.data.guess.tables import json_lines, parquet, table
from dice_ray.data.guess.tagged import columns, parallel, universal, word_tag
from dice_ray.data.readers.base import lines
from dice_ray.errors import DataError

__all__ = ["GUESSERS", "Guess", "guess"]

GUESSERS: Final[dict[str, Callable[[Path], Guess | str]]] = {
    "SQuAD JSON": questions,
    "MRC-NER JSON": queries,
    "JSON lines": json_lines,
    "PTB trees": trees,
    "CoNLL-U": universal,
    "CoNLL columns": columns,
    "sentences with a file of tags beside": parallel,
    "word_TAG": word_tag,
    "a table": table,
}
"""From the format that is least easily mistaken to the one that takes most files; each gives a guess or why not."""


def guess(path: Path) -> Guess:
    """How a file is read, and the task it is for.

    Raises:
        DataError: No reader takes it; the error says what each one missed.
    """
    if not path.is_file():
        raise DataError(f"there must be a file {path} to look at, and there is none")
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if not is_parquet and not any(text.strip() for _, text in lines(path)):
        raise DataError(f"{path}: a file to look at must hold rows, and it is empty")
    tried = {}
    for name, guesser in ({"Parquet": parquet} if is_parquet else GUESSERS).items():
        found = guesser(path)
        if isinstance(found, Guess):
            return found
        tried[name] = found
    looked_for = "".join(f"\n  {name}: {missed}" for name, missed in tried.items())
    raise DataError(
        f"{path}: one format must read its first {NUM_ROWS:,} rows, and none does. Looked for:{looked_for}\n"
        "If it is one of them, write the preset by hand: `dice-ray validate NAME` shows what one holds, as mrpc of a "
        "table, wnut17 of tagged words, squad2 of questions."
    )
