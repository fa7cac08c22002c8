"""What the encoder sees of texts: windows of one tokenizer call that lose nothing, and rows padded to a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dice_ray.errors import DataError
from dice_ray.tasks.base import Row

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.encoder import Inputs


class Window(NamedTuple):
    """A row, and for each of its tokens the word and the characters of the text: none outside of the text.

    Attributes:
        words: The number of the word.
        spans: The first character and the one after the last, of the text, or of the word where words are given.
    """

    row: Row
    words: list[int | None]
    spans: list[tuple[int, int] | None]


def windows(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str] | Sequence[Sequence[str]],
    max_length: int,
    stride: int,
    questions: Sequence[str] | Sequence[Sequence[str]] | None = None,
) -> list[Window]:
    """Each text, or list of words, as one row, or as several that share `stride` tokens with their neighbours.

    With questions, every window of a text stands behind its question, which is never cut.

    Raises:
        DataError: A question leaves the windows of its text no room to move on.
    """
    if not texts:
        return []
    if questions is not None:
        _leave_room(tokenizer, questions, max_length, stride)
    encoded = tokenizer(
        *([list(texts)] if questions is None else [list(questions), list(texts)]),
        is_split_into_words=not isinstance(texts[0], str),
        truncation=True if questions is None else "only_second",
        max_length=max_length,
        stride=stride,
        return_overflowing_tokens=True,
    )
    records = encoded.pop("overflow_to_sample_mapping")
    found = []
    for number, record in enumerate(records):
        of_row = encoded.encodings[number]
        inside = [sequence == (questions is not None) for sequence in of_row.sequence_ids]
        row = {**{key: encoded[key][number] for key in encoded}, "record": record, "cut": False}
        words = [word if kept else None for word, kept in zip(of_row.word_ids, inside, strict=True)]
        spans = [span if kept else None for span, kept in zip(of_row.offsets, inside, strict=True)]
        found.append(Window(row, words, spans))
    return found


def _leave_room(
    tokenizer: PreTrainedTokenizerBase, questions: Sequence[str] | Sequence[Sequence[str]], max_length: int, stride: int
) -> None:
    """A window needs room for the stride and for one token more, else the next one begins where it began."""
    split = not isinstance(questions[0], str)
    sizes = map(len, tokenizer(list(questions), is_split_into_words=split, add_special_tokens=False)["input_ids"])
    longest, number = max((size, -number) for number, size in enumerate(sizes))
    room = max_length - longest - tokenizer.num_special_tokens_to_add(pair=True)
    if room <= stride:
        raise DataError(
            f"max_length must leave a window more than its stride of {stride} tokens behind the longest question, of "
            f"{longest} tokens: got max_length {max_length}, question {questions[-number]!r:.80}"
        )


def decided(windows_of_text: Sequence[Sequence[int | None]]) -> list[dict[int, int]]:
    """The words that each window of a text decides, with the place of their first piece.

    A word is decided once: in the window where its first piece has the most tokens on its poorer side, the ends of the
    text being no lack. A window that begins inside a word has none there, so the piece it begins with never decides.

    >>> decided([[None, 0, 1, 1, None], [None, 1, 1, 2, None]])
    [{0: 1, 1: 2}, {2: 3}]
    """
    best: dict[int, tuple[float, int, int]] = {}
    last = len(windows_of_text) - 1
    for number, words in enumerate(windows_of_text):
        inside = [place for place, word in enumerate(words) if word is not None]
        for before, place in zip([None, *inside], inside, strict=False):
            word = words[place]
            if word is None or (before is not None and words[before] == word):
                continue
            left = place - inside[0] if number > 0 else math.inf
            right = inside[-1] - place if number < last else math.inf
            if word not in best or min(left, right) > best[word][0]:
                best[word] = (min(left, right), number, place)
    found: list[dict[int, int]] = [{} for _ in windows_of_text]
    for word, (_, number, place) in best.items():
        found[number][word] = place
    return found


def padded(rows: Sequence[Row], tokenizer: PreTrainedTokenizerBase) -> Inputs:
    """What the encoder takes of these rows, padded to the longest."""
    names = [name for name in tokenizer.model_input_names if name in rows[0]]
    return dict(tokenizer.pad([{name: row[name] for name in names} for row in rows], return_tensors="pt"))
