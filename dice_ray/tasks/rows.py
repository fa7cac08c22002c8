"""What the encoder sees of texts: windows of one tokenizer call that lose nothing, and rows padded to a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dice_ray.tasks.base import Row

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.encoder import Inputs


def windows(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str] | Sequence[Sequence[str]], max_length: int, stride: int
) -> list[Row]:
    """Each text, or list of words, as one row, or as several that share `stride` tokens with their neighbours.

    Beside the tokenizer's keys a row has `word_ids`, the word of each token: none for special tokens.
    """
    if not texts:
        return []
    encoded = tokenizer(
        list(texts),
        is_split_into_words=not isinstance(texts[0], str),
        truncation=True,
        max_length=max_length,
        stride=stride,
        return_overflowing_tokens=True,
    )
    records = encoded.pop("overflow_to_sample_mapping")
    return [
        {
            **{key: encoded[key][number] for key in encoded},
            "record": record,
            "cut": False,
            "word_ids": encoded.encodings[number].word_ids,
        }
        for number, record in enumerate(records)
    ]


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
