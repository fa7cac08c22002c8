"""The tokenizer of the tiny encoder."""

from __future__ import annotations

from dice_ray.models.tiny import tiny_tokenizer, wordpiece

TEXTS = ["the router is broken", "we sent a new one", "the phone feels slow"]


def test_a_tiny_tokenizer_is_trained_on_the_texts() -> None:
    tokenizer = tiny_tokenizer(wordpiece(TEXTS))
    pair = tokenizer("the router", "a new one")
    assert tokenizer.convert_ids_to_tokens(pair["input_ids"]) == [
        "[CLS]",
        "the",
        "router",
        "[SEP]",
        "a",
        "new",
        "one",
        "[SEP]",
    ]
    assert pair["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1, 1]
    again = tiny_tokenizer(wordpiece(TEXTS))
    assert again.get_vocab() == tokenizer.get_vocab()
    assert tokenizer.tokenize("rooter") == ["r", "##o", "##o", "##t", "##e", "##r"]


def test_of_many_characters_the_most_frequent_are_pieces() -> None:
    """They were cut by their number in Unicode: the comma of Chinese, the last but some, was an unknown token."""
    rare = [chr(0x4E00 + number) for number in range(4700)]
    tokenizer = tiny_tokenizer(wordpiece([*rare, *["\uff0c \u9fa5 hello"] * 50]))
    assert tokenizer.tokenize("\uff0c\u9fa5 hello") == ["\uff0c", "\u9fa5", "hello"]
    assert len(tokenizer) == 4000
