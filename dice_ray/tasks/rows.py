"""Rows of texts: tokenized into overlapping windows that lose nothing, and padded to batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dice_ray.errors import DataError
from dice_ray.tasks.base import Row

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerBase

    from dice_ray.models.heads import Inputs


class Window(NamedTuple):
    """A row, and for each of its tokens the word and the characters of the text; `None` outside of the text.

    Attributes:
        sequence: The index of the text among the encoded sequences: 1 behind a question, else 0.
    """

    row: Row
    encoding: Encoding
    sequence: int

    @property
    def words(self) -> list[int | None]:
        """The index of each token's word."""
        words: list[int | None] = self.encoding.word_ids
        if self.sequence == 0:  # special tokens have no word
            return words
        return [word if inside else None for word, inside in zip(words, self._inside(), strict=True)]

    @property
    def spans(self) -> list[tuple[int, int] | None]:
        """The first character of each token and the one after its last, in the text or, with words, in its word."""
        return [span if inside else None for span, inside in zip(self.encoding.offsets, self._inside(), strict=True)]

    def _inside(self) -> list[bool]:
        return [sequence == self.sequence for sequence in self.encoding.sequence_ids]


def windows(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str] | Sequence[Sequence[str]],
    max_length: int,
    stride: int,
    questions: Sequence[str] | Sequence[Sequence[str]] | None = None,
) -> list[list[Window]]:
    """The windows of each text, or list of words: one, or several that share `stride` tokens with their neighbours.

    With questions, every window of a text follows its question, which is never cut.

    Raises:
        DataError: A question is so long that the windows of its text could not advance.
    """
    if not texts:
        return []
    if questions is not None:
        _check_room(tokenizer, questions, max_length, stride)
    encoded = _encodings(
        tokenizer,
        list(texts) if questions is None else list(zip(questions, texts, strict=True)),
        max_length,
        stride=stride,
        strategy="longest_first" if questions is None else "only_second",
        split=not isinstance(texts[0], str),
    )
    sequence = 0 if questions is None else 1
    return [
        [Window(_row(window, tokenizer, number), window, sequence) for window in (encoding, *encoding.overflowing)]
        for number, encoding in enumerate(encoded)
    ]


def text_rows(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str] | Sequence[tuple[str, ...]], max_length: int, stride: int
) -> list[Row]:
    """The rows of `windows` without the places of tokens: faster. A pair is one row, whose longer text is truncated."""
    if texts and not isinstance(texts[0], str):
        encoded = _encodings(tokenizer, texts, max_length, side=tokenizer.truncation_side, places=False)
        return [_row(each, tokenizer, number, cut=bool(each.overflowing)) for number, each in enumerate(encoded)]
    encoded = _encodings(tokenizer, texts, max_length, stride=stride, places=False)
    return [
        _row(window, tokenizer, number)
        for number, encoding in enumerate(encoded)
        for window in (encoding, *encoding.overflowing)
    ]


def _encodings(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[Any],
    max_length: int,
    *,
    stride: int = 0,
    strategy: Literal["longest_first", "only_second"] = "longest_first",
    side: str = "right",
    split: bool = False,
    places: bool = True,
) -> list[Encoding]:
    """The encodings of texts, lists of words, or pairs of these, by the tokenizers library.

    It is called directly because the tokenizers of transformers convert everything to lists and take twice as long.
    What is longer than `max_length` becomes `overflowing` encodings, which share `stride` tokens; cut on the left side
    they are in reverse order, so windows are cut on the right. `split` is for lists of words, and without `places` the
    words and characters of tokens are not known.
    """
    backend: Tokenizer = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(max_length, stride=stride, strategy=strategy, direction=side)
    encode = backend.encode_batch if places else backend.encode_batch_fast
    encoded: list[Encoding] = encode(texts, is_pretokenized=split)
    return encoded


def _row(encoding: Encoding, tokenizer: PreTrainedTokenizerBase, record: int, *, cut: bool = False) -> Row:
    """The row of an encoding; `padded` adds the attention mask."""
    segments = {"token_type_ids": encoding.type_ids} if "token_type_ids" in tokenizer.model_input_names else {}
    return {"input_ids": encoding.ids, **segments, "record": record, "cut": cut}


def _check_room(
    tokenizer: PreTrainedTokenizerBase, questions: Sequence[str] | Sequence[Sequence[str]], max_length: int, stride: int
) -> None:
    """A window must be longer than the stride, or the next window would start at the same token."""
    split = not isinstance(questions[0], str)
    distinct = list(dict.fromkeys(map(tuple, questions) if split else questions))
    encoded = tokenizer(distinct, is_split_into_words=split, add_special_tokens=False)["input_ids"]
    size, question = max(zip(map(len, encoded), distinct, strict=True), key=itemgetter(0))
    if max_length - size - tokenizer.num_special_tokens_to_add(pair=True) <= stride:
        text = question if isinstance(question, str) else " ".join(question)
        raise DataError(
            f"max_length must leave room for more than the stride of {stride} tokens after the longest question, of "
            f"{size} tokens: got max_length {max_length}, question {text!r:.80}"
        )


def decided(windows_of_text: Sequence[Sequence[int | None]]) -> list[dict[int, int]]:
    """Assign each word to one window of its text; for each window the words and the places of their first pieces.

    A word is decided in the window in which its first piece has the most context: the most tokens on the side that has
    fewer of them, where an end of the text counts as unlimited context. The first piece of a window that begins inside
    a word is not the word's first piece, and never decides it.

    >>> decided([[None, 0, 1, 1, None], [None, 1, 1, 2, None]])
    [{0: 1, 1: 2}, {2: 3}]
    """
    if len(windows_of_text) == 1:
        (words,) = windows_of_text
        first = dict(zip(reversed(words), reversed(range(len(words))), strict=True))
        return [{word: first[word] for word in dict.fromkeys(words) if word is not None}]
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
    by_window: list[dict[int, int]] = [{} for _ in windows_of_text]
    for word, (_, number, place) in best.items():
        by_window[number][word] = place
    return by_window


def padded(rows: Sequence[Row], tokenizer: PreTrainedTokenizerBase) -> Inputs:
    """The encoder's inputs for these rows, padded to the longest one."""
    fillers = {"input_ids": tokenizer.pad_token_id or 0, "token_type_ids": tokenizer.pad_token_type_id}
    inputs = {
        name: torch.from_numpy(_stacked([row[name] for row in rows], filler, tokenizer.padding_side))
        for name, filler in fillers.items()
        if name in rows[0]
    }
    if "attention_mask" in tokenizer.model_input_names:
        ones = [np.ones(len(row["input_ids"]), dtype=np.int64) for row in rows]
        inputs["attention_mask"] = torch.from_numpy(_stacked(ones, 0, tokenizer.padding_side))
    return inputs


def _stacked(values: Sequence[Any], filler: int, side: str = "right") -> NDArray[np.int64]:
    """Lists or arrays of integers as one array, padded with the filler."""
    length = max(map(len, values))
    array_BL = np.full((len(values), length), filler, dtype=np.int64)
    for array_L, value in zip(array_BL, values, strict=True):
        if side == "left":
            array_L[length - len(value) :] = value
        else:
            array_L[: len(value)] = value
    return array_BL


def whole_numbers(rows: Sequence[Row], name: str) -> list[list[int]]:
    """The lists of one key of all rows, also where the rows hold arrays."""
    return [np.asarray(row[name]).tolist() for row in rows]


def labels_of(rows: Iterable[Row]) -> NDArray[np.int64]:
    """The targets `label` of rows, as an array."""
    return np.array([row["label"] for row in rows], dtype=np.int64)


def paddings_before(rows: Sequence[Row], tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The number of tokens that `padded` puts in front of each of these rows."""
    lengths = [len(row["input_ids"]) for row in rows]
    longest = max(lengths, default=0)
    return [longest - length if tokenizer.padding_side == "left" else 0 for length in lengths]


def classification_place(row: Row, tokenizer: PreTrainedTokenizerBase) -> int:
    """The place of a row's classification token, which must be at one of its ends: last for XLNet, else first."""
    ids = row["input_ids"]
    for place in (len(ids) - 1, 0):  # last one first: a text may itself begin with the token
        if ids[place] == tokenizer.cls_token_id:
            return place
    ends = tokenizer.convert_ids_to_tokens([int(ids[0]), int(ids[-1])])
    raise DataError(
        f"the tokenizer must put its classification token {tokenizer.cls_token!r} first or last in each row, got {ends}"
    )


def classification_places(rows: Sequence[Row], tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """The place of the classification token in each of these rows, after padding."""
    paddings = paddings_before(rows, tokenizer)
    return torch.tensor(paddings) + torch.tensor([classification_place(row, tokenizer) for row in rows])
