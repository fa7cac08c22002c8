"""Guesses the encoding of a text file: UTF-8, UTF-16, or one byte a character."""

from __future__ import annotations

import codecs
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import Final

from dice_ray.data.readers.base import UTF_8, known_encoding, opened
from dice_ray.errors import InputError

BLOCK: Final = 2**20
NOT_IN_CP1252: Final = frozenset(b"\x81\x8d\x8f\x90\x9d")
REPLACED: Final = "\ufffd"


def checked_encoding(name: str) -> str:
    """Returns the name of an encoding.

    Raises:
        InputError: Python does not know it.
    """
    try:
        return known_encoding(name)
    except ValueError as error:
        raise InputError(f"the encoding {error}, got {name!r}") from None


def guess_encoding(path: Path) -> tuple[str, str]:
    """The encoding of a file, and the reason if it is not UTF-8.

    A file that is UTF-8 but for some bytes counts as UTF-8, so that its reader names the line of the first one.
    """
    with opened(path) as file:
        head = file.read(BLOCK)
        if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            return "utf-16", "utf-16, as the file begins with its byte order mark."
        for encoding, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
            if 4 * zeros.count(0) > len(head) // 2:
                return encoding, f"{encoding}, as every other byte is 0."
        decoder, upper, num_good, num_bad = codecs.getincrementaldecoder(UTF_8)("replace"), set[int](), 0, 0
        block = head
        while block:
            if not block.isascii():
                text = decoder.decode(block)
                num_bad += text.count(REPLACED)
                num_good += sum(not letter.isascii() for letter in text) - text.count(REPLACED)
                upper.update(byte for byte in block if 0x80 <= byte < 0xA0)
            block = file.read(BLOCK)
    if num_bad <= num_good:
        return UTF_8, ""
    found = "cp1252" if upper and not upper & NOT_IN_CP1252 else "latin-1"
    return (
        found,
        f"{found}, as the bytes are not UTF-8. If letters of the first records are wrong, it is another encoding.",
    )
