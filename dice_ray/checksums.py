"""Checksums of the files that a run is resumed from: a flipped bit in a number would be read as another number.

A line of JSON has its checksum as the last key, a text in its first line, a comment. What an earlier version of
dice_ray wrote has none, and is read as it is.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

_LINE: Final = re.compile(r', "crc32": "([0-9a-f]{8})"\}$')
_TEXT: Final = re.compile(r"# crc32 of the lines below: ([0-9a-f]{8})\n")


def sealed(line: str) -> str:
    """A line of JSON, an object with at least one key, with its checksum.

    >>> sealed('{"id": "0001"}')
    '{"id": "0001", "crc32": "fcb73c73"}'
    """
    return f'{line[:-1]}, "crc32": "{_checksum(line)}"}}'


def unsealed(line: str) -> str:
    """The line without its checksum.

    Raises:
        ValueError: It was damaged.
    """
    if (seal := _LINE.search(line)) is None:
        return line
    return _checked(line[: seal.start()] + "}", seal[1])


def sealed_text(text: str) -> str:
    """A text in a format in which a line that begins with # is a comment, with its checksum."""
    return f"# crc32 of the lines below: {_checksum(text)}\n{text}"


def unsealed_text(text: str) -> str:
    """The text without its checksum.

    Raises:
        ValueError: It was changed.
    """
    if (seal := _TEXT.match(text)) is None:
        return text
    return _checked(text[seal.end() :], seal[1])


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _checked(text: str, expected: str) -> str:
    if (actual := _checksum(text)) != expected:
        raise ValueError(f"its checksum must be {expected}, and is {actual}")
    return text
