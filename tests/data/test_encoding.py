"""Encodings: which are recognised, for which the user is asked, and which files are no text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dice_ray.data.formats.base import Given
from dice_ray.data.formats.encodings import guess_encoding
from dice_ray.data.formats.text import _BINARY, lines
from dice_ray.data.guess import guess
from dice_ray.errors import DataError

CHINESE = "这个产品非常好 我很喜欢。\n质量很差 不推荐。\n物流很快 包装完整 客服态度恶劣。\n"
KOREAN = "이 제품은 정말 좋아요\n배송이 늦어요\n가격이 저렴합니다 품질이 나빠요\n"
TRADITIONAL = "這個產品非常好 我很喜歡。\n物流很快 包裝完整 客服態度惡劣。\n"


@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        (CHINESE, "gb18030", "gb18030"),
        (CHINESE, "gbk", "gb18030"),
        (TRADITIONAL, "big5", "big5hkscs"),
        (KOREAN, "euc_kr", "cp949"),
        ("Zażółć gęślą jaźń\nplain\n", "cp1250", "cp1250"),
        ("สินค้าดีมาก\nไม่ดี\n", "tis-620", "cp874"),
        ("das Gerät ist schön und groß\n", "latin-1", "latin-1"),
        ("El niño comió piñas en España\n", "latin-1", "latin-1"),
        ("“quoted” he said \u2013 it\u2019s\n", "cp1252", "cp1252"),
        (CHINESE, "utf-16", "utf-16"),
        (CHINESE, "utf-32", "utf-32"),
        (CHINESE, "utf-8", "utf-8"),
    ],
)
def test_an_encoding_is_recognised_by_the_text_that_it_makes(
    text: str, encoding: str, found: str, tmp_path: Path
) -> None:
    """Every file that is not UTF-8 was read as Latin-1, as are Chinese texts that become mojibake in it."""
    path = tmp_path / "text.txt"
    content = (text * 9).encode(encoding)
    path.write_bytes(content)
    assert guess_encoding(path)[0] == found
    assert content.decode(found) == text * 9


@pytest.mark.parametrize(
    ("text", "encoding", "candidate"),
    [
        ("この製品はとても良いです。配送が遅い\n二度と買わない\n", "shift_jis", "cp932"),
        ("очень хороший товар доставка\n", "koi8-r", "koi8_r"),
        ("Błąd, święta, ćma żółw\n", "cp1250", "cp1250"),
        ("çok güzel ürün şahane \u0131ğd\u0131r\n", "cp1254", "cp1254"),
    ],
)
def test_the_user_is_asked_where_several_encodings_are_plausible(
    text: str, encoding: str, candidate: str, tmp_path: Path
) -> None:
    """A guess between them would be wrong for one of them, and nobody would see it in the scores."""
    path = tmp_path / "text.txt"
    path.write_bytes((text * 9).encode(encoding))
    first = text.partition("\n")[0]
    with pytest.raises(DataError, match=rf"must be given by --encoding(.|\n)*--encoding {candidate}: '{first}'"):
        guess_encoding(path)


def test_half_a_surrogate_pair_is_a_bad_row_of_a_file_in_utf_8(tmp_path: Path) -> None:
    """Three bytes of a row that is malformed made the whole file one in cp1252."""
    path = tmp_path / "text.tsv"
    path.write_bytes(b"text\tlabel\n" + b"a nice day\t1\na bad day\t0\n" * 40 + b"half \xed\xa0\x80 pair\t1\n")
    assert guess_encoding(path) == ("utf-8", "")


@pytest.mark.parametrize("magic", _BINARY)
def test_a_binary_file_is_named_and_not_read_as_text(magic: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(magic + b"text,label\n" * 9)
    with pytest.raises(DataError, match=r"data.csv.*(a file of|expected a whole file of (Parquet|Arrow))"):
        guess(path)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, None])
def test_a_file_that_unpacks_to_what_no_text_has_is_refused(tmp_path: Path, compress: Any) -> None:
    """Finds that a file of some kilobytes fills the memory, as one line of zeros: 64 MiB of it took 1 GiB."""
    path = tmp_path / "data.tsv"
    if compress:
        path.write_bytes(b"".join([compress(bytes(1 << 20))] * 17))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("../data.tsv", bytes(17 << 20), compresslevel=1)
    reads: tuple[Callable[[], object], ...] = (
        partial(guess, path, Given(encoding="utf-8")),
        partial(list, lines(path)),
    )
    for read in reads:
        with pytest.raises(DataError, match=r"expected a whole \w+ file, found more than 200 times its size"):
            read()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv.gz", b"no gzip"),
        ("a.tsv", gzip.compress(b"a\tb\n" * 99, mtime=0)[:-9]),
        ("a.tsv", b"BZh91AY&SYno"),
        ("a.zip", b"PK"),
    ],
)
def test_a_damaged_file_is_named_before_its_encoding_is_guessed(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}, line 1: expected a whole \w+ file"):
        guess(tmp_path / name)


@pytest.mark.parametrize(
    ("place", "value", "found"), [(8, 1, "encrypted"), (6, 93, "zip file version 9.3")], ids=["encrypted", "version"]
)
def test_an_archive_that_python_cannot_unpack_is_refused(tmp_path: Path, place: int, value: int, found: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.tsv", "a\tb\n")
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[place - 2] |= value  # of the member, and of its entry in the directory
    content[content.index(b"PK\x01\x02") + place] |= value
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(DataError, match=rf"expected a whole zip file, found .*{found}"):
        guess(tmp_path / "a.zip")


def test_a_file_with_bytes_that_are_0_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(bytes(range(256)) * 9)
    with pytest.raises(DataError, match="bytes that are 0"):
        guess(path)
