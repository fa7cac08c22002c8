"""Scripts that put no spaces between words: each of their characters counts as a word."""

from __future__ import annotations

import re
from typing import Final

UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
"""A character of Thai, Lao, Burmese, Khmer, kana or Han."""


def words_of(text: str) -> list[str]:
    """The words of a text, and each character of a script that puts no spaces between words.

    >>> words_of("the tower of 東京")
    ['the', 'tower', 'of', '東', '京']
    """
    return UNSPACED.sub(r" \g<0> ", text).split()
