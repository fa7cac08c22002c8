"""A table of a report, its output as text, Markdown, CSV and LaTeX with escaping, and the number format of scores."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import pandas as pd

from analysis.statistics.intervals import ALPHA, Interval
from dice_ray.errors import one_line

_LATEX: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "[": "{[}",  # LaTeX reads a bracket or a star after a line break as an argument of the break
        "]": "{]}",
        "*": "{*}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)
_MARKDOWN: Final = re.compile(r"([\\|*_`\[\]#~$])")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a cell that begins so."""
_NUMBER: Final = re.compile(r"\[?[-+<]? ?\d|$")  # a number, an interval, `< 0.001`, or an empty cell


Mark: TypeAlias = Literal["bold", "grey"]
_IN_MARKDOWN: Final[dict[Mark, str]] = {"bold": "**{}**", "grey": "*{}*"}
"""Markdown has no colours: grey cells are italic there."""
_IN_LATEX: Final[dict[Mark, str]] = {"bold": r"\textbf{{{}}}", "grey": r"\textcolor{{gray}}{{{}}}"}


@dataclass(frozen=True)
class ReportTable:
    """A table: its numbers, and the text that shows them.

    Attributes:
        name: The stem of its files.
        title: One line that says what the table holds.
        data: The numbers, for CSV and for programs.
        shown: The cells as text, under the headings of the report.
        notes: Sentences below the table that explain it.
        marks: Emphasised and de-emphasised cells, by row number and heading.
        folds: The numbers of the first rows that the page folds away, with the name of what is folded up to the next
            one. All other formats show all rows.
        tips: What a heading means, for readers who hover over it.
    """

    name: str
    title: str
    data: pd.DataFrame
    shown: pd.DataFrame
    notes: tuple[str, ...] = ()
    marks: Mapping[tuple[int, str], Mark] = field(default_factory=dict)
    folds: Mapping[int, str] = field(default_factory=dict)
    tips: Mapping[str, str] = field(default_factory=dict)

    @property
    def bodies(self) -> list[tuple[str, range, bool]]:
        """The rows in parts: the name of a part that is folded, its rows, and whether it is open, as with a bold cell.

        The name of rows that are not folded is empty.
        """
        starts = [0, *self.folds, len(self.shown)]
        bold = {row for (row, _), mark in self.marks.items() if mark == "bold"}
        return [
            (self.folds.get(start, ""), range(start, end), bool(bold & {*range(start, end)}))
            for start, end in pairwise(starts)
        ]

    @property
    def cells(self) -> list[list[str]]:
        """The headings and the rows as plain text."""
        rows = [[*self.shown.columns], *self.shown.to_numpy().tolist()]
        return [[one_line(cell) for cell in row] for row in rows]

    def text(self) -> str:
        """The table as text, each row on one line."""
        columns = [*zip(*self.cells, strict=True)]
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, self.is_right, strict=True)
            ).rstrip()
            for row in zip(*columns, strict=True)
        ]
        rule = "-" * max(map(len, lines), default=0)
        return "\n".join([one_line(self.title), rule, *lines[:1], rule, *lines[1:], rule, *map(one_line, self.notes)])

    def markdown(self) -> str:
        """The table as GitHub's Markdown."""
        rules = ["---:" if right else "---" for right in self.is_right]
        rows = [map(in_markdown, self.shown.columns), rules, *self._cells(in_markdown, _IN_MARKDOWN)]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n\n".join([f"**{in_markdown(self.title)}**", "\n".join(lines), *map(in_markdown, self.notes)])

    def csv(self) -> str:
        """The unrounded numbers (of the paper's tables the cells as shown); missing values are empty.

        No cell is a formula to a spreadsheet.
        """
        return self.data.map(_as_text).rename(columns=_as_text).to_csv(index=False, lineterminator="\n")

    def latex(self) -> str:
        """A table environment; it needs the packages booktabs and xcolor."""
        cells = [[*map(_in_latex, self.shown.columns)], *self._cells(_in_latex, _IN_LATEX)]
        head, *rows = [" & ".join(row) + r" \\" for row in cells]
        notes = [rf"\par\footnotesize {_in_latex(note)}" for note in self.notes]
        return "\n".join(
            [
                r"\begin{table}[htbp]",
                r"\centering\small",
                rf"\caption{{{_in_latex(self.title)}}}",
                rf"\begin{{tabular}}{{{''.join('r' if right else 'l' for right in self.is_right)}}}",
                *(r"\toprule", head, r"\midrule", *rows, r"\bottomrule"),
                r"\end{tabular}",
                *notes,
                r"\end{table}",
                "",
            ]
        )

    def _cells(self, escape: Callable[[object], str], forms: Mapping[Mark, str]) -> list[list[str]]:
        """The escaped cells, those with a mark in its form."""
        return [
            [
                forms[mark].format(escape(cell))
                if cell and (mark := self.marks.get((number, str(name))))
                else escape(cell)
                for name, cell in zip(self.shown, row, strict=True)
            ]
            for number, row in enumerate(self.shown.itertuples(index=False))
        ]

    @property
    def is_right(self) -> list[bool]:
        """Which columns are right-aligned: those of numbers."""
        return [all(_NUMBER.match(str(cell)) for cell in self.shown[name]) for name in self.shown]


def _as_text(cell: object) -> object:
    """A cell of a CSV file, in which a spreadsheet reads a text from data as text: the quote mark says so to it."""
    if not isinstance(cell, str):
        return cell
    cell = cell.replace("\r\n", "\n").replace("\r", "\n")  # unquoted, a lone CR would end the row
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def in_markdown(text: object) -> str:
    """Text escaped for Markdown, which may hold HTML."""
    return _MARKDOWN.sub(r"\\\1", html.escape(one_line(text), quote=False))


def _in_latex(text: object) -> str:
    r"""Text escaped for LaTeX; the sign of a number becomes a minus.

    >>> _in_latex("a_b: -0.5 %")
    'a\\_b: $-$0.5 \\%'
    """
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", one_line(text).translate(_LATEX))


def numbers(name: str, interval: Interval | None) -> dict[str, float | None]:
    """The columns of a mean and its interval, empty without one."""
    mean, low, high = (interval.mean, interval.low, interval.high) if interval else (None, None, None)
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


HOLM_P: Final = "Holm p"
"""The heading of corrected p values."""


def shown_p(p: float) -> str:
    """A p value with three decimals, more where it would else seem to be at most `ALPHA`; an empty string for NaN.

    >>> shown_p(0.05), shown_p(0.05001), shown_p(1e-5)
    ('0.050', '0.0501', '< 0.001')
    """
    if math.isnan(p):
        return ""
    if ALPHA < p < ALPHA + 0.0005:
        return f"{math.ceil(10_000 * p) / 10_000:.4f}"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
