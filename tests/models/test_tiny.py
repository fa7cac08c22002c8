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
