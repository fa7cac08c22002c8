"""A report: what was found as tables, and those as text, Markdown, CSV and LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from analysis.classes import by_class
from analysis.found import Found
from analysis.layout import Table, in_latex, in_markdown, plain
from analysis.paper import formulas, paper_tables
from analysis.pareto import pareto_front
from analysis.study import across_data_sets, comparison, left_out
from analysis.tables import alone, best_trials, by_loss, without_score
from dice_ray.errors import RunError

MakeTables: TypeAlias = Callable[[Found], list[Table]]

TABLES: Final[tuple[MakeTables, ...]] = (
    comparison,
    across_data_sets,
    by_class,
    paper_tables,
    formulas,
    pareto_front,
    best_trials,
    by_loss,
    alone,
    without_score,
    left_out,
)
"""In the order of the report; each makes no table where nothing was found for it."""


@dataclass(frozen=True)
class Report:
    """The tables of a sweep, a study, or runs trained alone."""

    title: str
    tables: tuple[Table, ...]

    def text(self) -> str:
        """For a terminal."""
        return "\n\n".join([plain(self.title), *(table.text() for table in self.tables)]) + "\n"

    def markdown(self) -> str:
        """For a page."""
        return "\n\n".join([f"# {in_markdown(self.title)}", *(table.markdown() for table in self.tables)]) + "\n"

    def latex(self) -> str:
        """A document of its own, which takes the tables from the files beside it."""
        return "\n".join(
            [
                "% pdflatex report.tex; lualatex where names go beyond Latin letters",
                r"\documentclass{article}",
                r"\usepackage{booktabs,xcolor}",
                r"\usepackage[margin=2cm,landscape]{geometry}",
                rf"\title{{{in_latex(self.title)}}}",
                r"\date{}",
                r"\begin{document}",
                r"\maketitle",
                *(rf"\input{{{table.name}.tex}}" for table in self.tables),
                r"\end{document}",
                "",
            ]
        )

    def write(self, folder: Path) -> list[Path]:
        """Write `report.txt`, `report.md`, `report.tex` and each table as CSV and LaTeX; the paths written."""
        contents = {"report.txt": self.text(), "report.md": self.markdown(), "report.tex": self.latex()}
        for table in self.tables:
            contents |= {f"{table.name}.csv": table.csv(), f"{table.name}.tex": table.latex()}
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_text(content, encoding="utf-8")
        return [folder / name for name in contents]


def report(found: Found) -> Report:
    """The tables that the runs of an experiment allow.

    Raises:
        RunError: It holds no run that could stand in one.
    """
    tables = [table for make in TABLES for table in make(found)]
    if not tables:
        raise RunError(
            "a report must have runs, trials of a sweep or cells of a study, and the experiment holds none yet"
        )
    frame = found.frame
    parents = frame.loc[frame["kind"].isin(["sweep", "study"]), "name"]
    return Report(", ".join(dict.fromkeys(parents)) or "Runs", tuple(tables))
