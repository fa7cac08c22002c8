"""Windows: every word is decided once, where it has the most context."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.errors import DataError
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.tasks.rows import classification_places, decided, padded, text_rows, windows

TOKENIZER = load_tokenizer(ModelConfig(), ["a bc def", "the router broke"])
WORDS = st.lists(st.text("abcdef", min_size=1, max_size=12), min_size=1, max_size=30)


@given(words=WORDS, stride=st.integers(0, 8))
def test_the_first_piece_of_every_word_decides_it_once(words: list[str], stride: int) -> None:
    (rows,) = windows(TOKENIZER, [words], max_length=16, stride=stride)
    found = decided([window.words for window in rows])
    assert sorted(word for items in found for word in items) == list(range(len(words)))
    for window, items in zip(rows, found, strict=True):
        pieces = TOKENIZER.convert_ids_to_tokens(window.row["input_ids"])
        assert list(items.values()) == sorted(items.values())
        for word, place in items.items():
            assert pieces[place] == TOKENIZER.tokenize(words[word])[0]


def test_a_word_is_decided_in_the_window_with_the_most_context() -> None:
    words = [None, *range(8), None], [None, *range(4, 12), None], [None, *range(8, 16), None]
    assert [list(items) for items in decided(words)] == [[*range(6)], [6, 7, 8, 9], [*range(10, 16)]]


@pytest.mark.parametrize("texts", [["a bc de " * 4 + "ff " * 9, "a"], [["a", "bc", "de"] * 4 + ["ff"] * 9, ["a"]]])
def test_windows_overlap_by_the_stride_and_name_their_record(texts: list[str]) -> None:
    rows, (other,) = windows(TOKENIZER, texts, max_length=10, stride=3)
    assert [window.row["record"] for window in (*rows, other)] == [0] * len(rows) + [1]
    for before, after in pairwise(rows):
        assert before.row["input_ids"][-4:-1] == after.row["input_ids"][1:4]
    words = [word for window in rows for word in window.words[1:-1]]
    assert (
        len(words) - 3 * (len(rows) - 1)
        == len(TOKENIZER(texts[0], is_split_into_words=isinstance(texts[0], list))["input_ids"]) - 2
    )
    assert windows(TOKENIZER, [], max_length=10, stride=3) == []


@pytest.mark.parametrize("split", [False, True])
def test_a_question_precedes_every_window(split: bool) -> None:
    text, question = "a bc de " * 9 + "ff", "bc ff"
    texts = [text.split() if split else text, ["a"] if split else "a"]
    questions = [question.split() if split else question] * 2
    rows, (other,) = windows(TOKENIZER, texts, max_length=14, stride=3, questions=questions)
    assert [window.row["record"] for window in (*rows, other)] == [0] * len(rows) + [1]
    assert len(rows) > 1
    pieces = TOKENIZER(questions[0], is_split_into_words=split)["input_ids"]
    for window in (*rows, other):
        assert window.row["input_ids"][: len(pieces)] == pieces
        assert all(word is None for word in [*window.words[: len(pieces)], window.words[-1]])
    read = {
        word: text.split()[word][span[0] : span[1]] if split else text[span[0] : span[1]]
        for window in rows
        for word, span in zip(window.words, window.spans, strict=True)
        if word is not None and span is not None
    }
    assert sorted(read) == list(range(28))
    assert all(text.split()[word].endswith(piece) for word, piece in read.items())


def test_a_question_that_leaves_no_room_is_an_error() -> None:
    with pytest.raises(DataError, match="of 16 tokens: got max_length 16, question 'a bc"):
        windows(TOKENIZER, ["a", "a"], max_length=16, stride=1, questions=["a", "a bc de " * 4])


@pytest.mark.parametrize("side", ["left", "right"])
def test_rows_are_padded_as_the_tokenizer_pads(side: str) -> None:
    tokenizer = load_tokenizer(ModelConfig(), ["a word or two"])
    tokenizer.padding_side = side
    tokenizer.add_special_tokens({"pad_token": "[MASK]"})  # another id than the 0 that arrays are filled with
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    texts = ["a word", "or two or a word", "two"]
    rows = [window.row for (window,) in windows(tokenizer, texts, 16, 4, questions=["a", "word or", "two"])]
    expected = tokenizer.pad(
        [{name: row[name] for name in tokenizer.model_input_names if name in row} for row in rows], return_tensors="pt"
    )
    found = padded(rows, tokenizer)
    assert found.keys() == set(expected)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name])
    assert set(tokenizer.model_input_names) == set(found)
    assert tokenizer.pad_token_id != 0


@pytest.mark.parametrize(("side", "places"), [("right", [0, 3]), ("left", [2, 5])])
def test_the_classification_token_is_found_on_either_side_of_the_padding(side: str, places: list[int]) -> None:
    tokenizer = load_tokenizer(ModelConfig(), ["a b c d"])
    tokenizer.padding_side = side
    cls, other = tokenizer.cls_token_id, tokenizer.sep_token_id
    # Of the second one, the text itself begins with the token.
    rows = [{"input_ids": [cls, other, other, other]}, {"input_ids": [cls, other, other, cls]}]
    longest = {"input_ids": [cls, cls, other, other, other, other]}
    found_B = classification_places([*rows, longest], tokenizer)
    assert found_B.tolist() == [*places, 0]
    ids_BL = padded([*rows, longest], tokenizer)["input_ids"]
    assert ids_BL.gather(1, found_B[:, None]).unique().tolist() == [cls]


@pytest.mark.parametrize("questions", [None, ["bc ff"]])
def test_windows_go_from_left_to_right_whatever_side_the_tokenizer_cuts(questions: list[str] | None) -> None:
    tokenizer = load_tokenizer(ModelConfig(), ["a bc def"])
    text = ["a bc de " * 9 + "ff"]
    (expected,) = windows(tokenizer, text, 14, 3, questions)
    plain = text_rows(tokenizer, text, 14, 3)
    tokenizer.truncation_side = "left"
    (found,) = windows(tokenizer, text, 14, 3, questions)
    assert len(found) > 2
    assert [window.row for window in found] == [window.row for window in expected]
    assert text_rows(tokenizer, text, 14, 3) == plain


def test_a_row_without_a_classification_token_at_its_ends_is_an_error() -> None:
    cls, other = TOKENIZER.cls_token_id, TOKENIZER.sep_token_id
    with pytest.raises(DataError, match=r"first or last in each row, got \['\[SEP\]', '\[SEP\]'\]"):
        classification_places([{"input_ids": [other, cls, other]}], TOKENIZER)
