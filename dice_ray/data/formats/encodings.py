"""Guesses the encoding of a text file; where several are about as likely, the user is asked."""

from __future__ import annotations

import codecs
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from itertools import zip_longest
from pathlib import Path
from typing import Final

from dice_ray.data.formats.text import UTF_8, blocks, readable, unreadable
from dice_ray.errors import DataError, shown

_BLOCK: Final = 2**20
_NUM_BYTES: Final = 2**17
"""The bytes of lines that are not ASCII from which an encoding other than UTF-8 is guessed."""
_CANDIDATES: Final = (
    *("gb18030", "big5hkscs", "cp932", "euc_jp", "cp949"),
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp874", "koi8_r"),
)
"""One of each family of encodings; a larger one stands for those that it contains."""
_NOT_IN_CP1252: Final = frozenset(b"\x81\x8d\x8f\x90\x9d")
_REPLACED: Final = "\ufffd"
_SYMBOL_IN_WORD: Final = re.compile(
    r"[^\W\d_][^\w\s\x00-\x7f\u2013\u2014\u2018\u2019\u2026\xad\xb4\xb7][^\W\d_]|\w[\xb2\xb3\xb9]\w|[a-z][\xc0-\xd6\xd8-\xde]"
)
"""A symbol other than dashes, apostrophes and dots between letters, or a capital letter after a small one."""


def guess_encoding(path: Path) -> tuple[str, str]:
    """The encoding of a file, and the reason if it is not UTF-8.

    A file that is UTF-8 but for some bytes counts as UTF-8, so that its reader names the line of the first one.

    Raises:
        DataError: The file is no text, or several encodings are about as likely; the error shows a line in each.
    """
    decoder, num_good, num_bad, foreign = codecs.getincrementaldecoder(UTF_8)("replace"), 0, 0, b""
    with readable(path) as file:
        block = file.read(_BLOCK)
        if block.startswith((BOM_UTF32_LE, BOM_UTF32_BE)):
            return "utf-32", "utf-32, as the file begins with its byte order mark."
        if block.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            return "utf-16", "utf-16, as the file begins with its byte order mark."
        for encoding, zeros in (("utf-16-le", block[1::2]), ("utf-16-be", block[::2])):
            if 4 * zeros.count(0) > len(block) // 2 and _is_text(block, encoding):
                return encoding, f"{encoding}, as every other byte is 0."
        if b"\0" in block:
            raise unreadable(path, "the file", "text", "bytes that are 0, as in a binary file")
        while block:
            if not block.isascii():
                # Some programs write half of a surrogate pair in UTF-8: its row is bad, not the encoding of the file.
                text = decoder.decode(re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]", "é".encode(), block))
                num_bad += text.count(_REPLACED)
                num_good += sum(not letter.isascii() for letter in text) - text.count(_REPLACED)
                if len(foreign) < _NUM_BYTES:
                    foreign += b"\n".join(line for line in block.split(b"\n") if not line.isascii())
            block = file.read(_BLOCK)
    if num_bad <= num_good:
        return UTF_8, ""
    foreign = foreign[:_NUM_BYTES].rpartition(b"\n")[0] or foreign
    if _is_western(foreign):
        name = "latin-1" if _NOT_IN_CP1252 & set(foreign) or not set(foreign) & set(range(0x80, 0xA0)) else "cp1252"
        others = "If letters of the first records are wrong, it is another encoding: see --encoding."
        return name, f"{name}, as the bytes are not UTF-8, and all words are plausible in it. {others}"
    return _by_plausibility(path, foreign)


def refuse_other_encoding(file: Path, train: Path, encoding: str) -> None:
    """Raise a DataError if a file has clearly another encoding than the one guessed for the training file."""
    try:
        own, _ = guess_encoding(file)
    except DataError:  # several are plausible, that of the training file may be one of them
        return
    # A text may be the same in both, such as one in ASCII.
    if own != encoding and any(one != other for one, other in zip_longest(blocks(file, own), blocks(file, encoding))):
        raise DataError(
            f"all files must have one encoding, and {train} looks like {encoding}, but {file} like {own}: store them "
            "in one encoding, such as UTF-8, or name the right one by --encoding"
        )


def _is_western(foreign: bytes) -> bool:
    """Whether these lines are a plausible text of a Western European language in cp1252 or Latin-1."""
    text = foreign.decode("cp1252", errors="replace" if not _NOT_IN_CP1252 & set(foreign) else "ignore")
    letters = [letter for letter in text if letter.isalpha()]
    num_foreign = sum(not letter.isascii() for letter in letters)
    # Letters of Icelandic, in whose place Turkish encodings have their own letters.
    is_rare = not set(letters).isdisjoint("ðýþÐÝÞ")
    return num_foreign <= 0.3 * len(letters) and not _SYMBOL_IN_WORD.search(text) and not is_rare


def _by_plausibility(path: Path, foreign: bytes) -> tuple[str, str]:
    """The candidate in which these lines make the most plausible text, if it is clearly ahead of the others."""
    # Not `best()`: of the lines in `test_encoding` it reads Spanish as cp1250, Shift JIS as Korean, Polish as Chinese.
    from charset_normalizer import from_bytes

    matches = [
        match
        for match in from_bytes(foreign, cp_isolation=list(_CANDIDATES), threshold=0.3)
        # A text in a single-byte encoding is valid in cp932, as half-width kana, which are rare in Japanese.
        if 2 * len(re.findall("[\uff61-\uff9f]", str(match))) < len(str(match))
    ]
    # Its share of implausible text must be clearly below that of all others.
    if matches and all(other.chaos >= matches[0].chaos + 0.1 for other in matches[1:]):
        best = matches[0].encoding
        return best, f"{best}, as the bytes are not UTF-8, and no other encoding gives as plausible a text."
    first = foreign.partition(b"\n")[0]
    samples = "".join(f"\n  --encoding {match.encoding}: {shown(str(first, match.encoding))}" for match in matches[:5])
    raise DataError(
        f"{path}: the encoding must be given by --encoding, since it is not UTF-8 and several others are plausible. "
        f"The first line that is not ASCII, in each of them:{samples or ' none of those tried'}"
    )


def _is_text(block: bytes, encoding: str) -> bool:
    text = block[: len(block) // 2 * 2].decode(encoding, errors="replace")
    return sum(letter.isprintable() or letter.isspace() for letter in text) > 0.95 * len(text)
