"""Layout of all printed text and tables: at most `WIDTH` columns, with names and commands whole.

Output that programs read is left as it is: JSON, predictions, presets. So are commands to copy and paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, chop_cells

WIDTH: Final = 100
_GAP: Final = "  "
_LONGEST_WORD: Final = 60
"""Longer words of a cell go on in its next line, except in names of rows, which are to be copied."""
_MIN_TEXT: Final = 20
# A command in backquotes is one word, and further spaces behind a word belong to it: they align what follows.
_WORD: Final = re.compile(r"(?:[^\s`]*`[^`\n]*`[^\s`]*|\S+)(?: +(?= ))?")


def folded(text: str, hanging: int = 4) -> str:
    """Text with its long lines folded between words; a line goes on `hanging` columns right of its indentation.

    >>> print(folded("  " + 40 * "word "))
      word word word word word word word word word word word word word word word word word word word
          word word word word word word word word word word word word word word word word word word word
          word word
    """
    return "\n".join(
        line if cell_len(line) <= WIDTH else joined(_WORD.findall(line), " ", len(line) - len(line.lstrip()), hanging)
        for line in text.split("\n")
    )


def clock(seconds: float) -> str:
    """A time in hours, minutes and seconds.

    >>> clock(61.4), clock(3600)
    ('1:01', '1:00:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def joined(parts: Sequence[str], gap: str = _GAP, indent: int = 0, hanging: int = 4) -> str:
    """Parts side by side, on as many lines as they need; no part is cut."""
    return "\n".join(_lines(parts, gap, WIDTH, indent * " ", (indent + hanging) * " "))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool] = ()) -> str:
    """A table; where it is too wide, its headings and texts are folded, and then its columns are put below each other.

    Args:
        header: Headings. The first columns, as many as tell the rows apart, are never folded and repeated in each part.
        rows: Cells of one line each.
        right: Which columns hold numbers, which are aligned on the right and never folded; by default none.
    """
    columns = [*zip(header, *rows, strict=True)]
    are_right = right or [False] * len(columns)
    num_names = next((num for num in range(1, 4) if len({tuple(row[:num]) for row in rows}) == len(rows)), 1)
    least = [max(map(cell_len, column)) for column in columns[:num_names]]
    longest = max(_MIN_TEXT, WIDTH - sum(width + len(_GAP) for width in least))
    least += [_least_width(*column, longest) for column in zip(columns, are_right, strict=True)][num_names:]
    parts = [
        "\n".join(_part([columns[n] for n in part], [least[n] for n in part], [are_right[n] for n in part]))
        for part in _parts(least, num_names)
    ]
    return "\n\n".join(parts)


def _least_width(column: Sequence[str], is_number: bool, longest: int) -> int:
    """The smallest width of a column: numbers are never folded, a text down to its longest word."""
    heading, *cells = column
    longest_word = max(map(cell_len, _WORD.findall(heading)), default=0)
    if is_number:
        return max(longest_word, *map(cell_len, cells), 0)
    words = [cell_len(word) for cell in cells for word in _WORD.findall(cell)]
    return max(min(max([longest_word, *words]), _LONGEST_WORD, longest), min(_MIN_TEXT, max(map(cell_len, column))))


def _parts(least: Sequence[int], num_names: int) -> list[list[int]]:
    """The columns of each part: as many as fit beside the names."""
    names = [*range(num_names)]
    parts, used = [names], sum(least[number] + len(_GAP) for number in names)
    for number in range(num_names, len(least)):
        if used + least[number] > WIDTH and len(parts[-1]) > num_names:
            parts.append(names)
            used = sum(least[name] + len(_GAP) for name in names)
        parts[-1] = [*parts[-1], number]
        used += least[number] + len(_GAP)
    return parts


def _part(columns: Sequence[Sequence[str]], least: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    widths = [max(map(cell_len, column)) for column in columns]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > WIDTH and widths != least:
        widest = max((n for n, width in enumerate(widths) if width > least[n]), key=widths.__getitem__)
        widths[widest] -= 1
    for row in zip(*columns, strict=True):
        # Words that are wider than their column are in pieces.
        cells = [
            [*_lines([piece for word in _WORD.findall(cell) for piece in chop_cells(word, width)], " ", width)]
            for cell, width in zip(row, widths, strict=True)
        ]
        for number in range(max(map(len, cells))):
            shown = [lines[number] if number < len(lines) else "" for lines in cells]
            yield _GAP.join(map(_padded, shown, widths, right)).rstrip()


def _padded(cell: str, width: int, is_right: bool) -> str:
    space = (width - cell_len(cell)) * " "
    return space + cell if is_right else cell + space


def _lines(parts: Sequence[str], gap: str, width: int, indent: str = "", hanging: str = "") -> Iterator[str]:
    line, is_empty = indent, True
    for part in parts:
        if not is_empty and cell_len(line) + cell_len(gap) + cell_len(part) > width:
            yield line.rstrip()
            line, is_empty = hanging, True
        line, is_empty = line + (part if is_empty else gap + part), False
    yield line
