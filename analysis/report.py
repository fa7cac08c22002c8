"""A report: what was found in words, tables and figures, as text, Markdown, CSV, LaTeX, pictures and one page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from analysis import page
from analysis.classes import by_class
from analysis.figures import FIGURES
from analysis.figures.base import Figure
from analysis.found import Found
from analysis.layout import Table, in_latex, in_markdown, plain
from analysis.origin import Origin, origins
from analysis.paper import formulas, paper_tables
from analysis.pareto import pareto_front
from analysis.side_by_side import arms_side_by_side, losses_side_by_side
from analysis.study import across_data_sets, comparison, left_out
from analysis.summary import summary
from analysis.tables import alone, best_trials, by_loss, without_score
from dice_ray.errors import RunError

MakeTables: TypeAlias = Callable[[Found], list[Table]]
Part = TypeVar("Part", Table, Figure)

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

NOTES: Final = "report.sha256"
"""The files of a report beside it, with their digests, as `sha256sum --check` reads them."""


@dataclass(frozen=True)
class Report:
    """What was found in a sweep, a study, runs trained alone, or data sets.

    Attributes:
        title: Its names.
        tables: In the order of `TABLES`.
        figures: In the order of `FIGURES`.
        summary: What was found, in sentences.
        origins: How each sweep and study is run again.
    """

    title: str
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...] = ()
    summary: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()

    def text(self) -> str:
        """For a terminal."""
        parts = [plain(self.title), "\n".join(map(plain, self.summary)), *(table.text() for table in self.tables)]
        return "\n\n".join(filter(None, parts)) + "\n"

    def markdown(self) -> str:
        """For a page of a repository, with the pictures beside it."""
        figures = [
            f"![{in_markdown(figure.title)}]({figure.name}.svg)\n\n{in_markdown(figure.caption)}"
            for figure in self.figures
        ]
        again = [
            "\n".join([f"To run {in_markdown(origin.name)} again:", "", "```", *origin.commands, "```"])
            for origin in self.origins
            if origin.commands
        ]
        parts = [
            f"# {in_markdown(self.title)}",
            *map(in_markdown, self.summary),
            *(table.markdown() for table in self.tables),
            *figures,
            *again,
        ]
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """One page by itself: it needs no other file and no network."""
        return page.page(self.title, self.summary, self.tables, self.figures, self.origins)

    def latex(self) -> str:
        """A document of its own, which takes the tables and pictures from the files beside it."""
        figures = [
            (
                r"\begin{figure}[htbp]",
                rf"\centering\includegraphics[width=\linewidth,height=.8\textheight,keepaspectratio]{{{figure.name}.png}}",
                rf"\caption{{{in_latex(f'{figure.title}. {figure.caption}')}}}",
                r"\end{figure}",
            )
            for figure in self.figures
        ]
        return "\n".join(
            [
                "% pdflatex report.tex; lualatex where names go beyond Latin letters",
                r"\documentclass{article}",
                r"\usepackage{booktabs,graphicx,xcolor}",
                r"\usepackage[margin=2cm,landscape]{geometry}",
                rf"\title{{{in_latex(self.title)}}}",
                r"\date{}",
                r"\begin{document}",
                r"\maketitle",
                *(rf"{in_latex(sentence)}\par" for sentence in self.summary),
                *(rf"\input{{{table.name}.tex}}" for table in self.tables),
                *(line for figure in figures for line in figure),
                r"\end{document}",
                "",
            ]
        )

    def write(self, folder: Path) -> list[Path]:
        """Write the page and its parts; the paths written, the page first.

        `report.html`, `report.md`, `report.tex` and `report.txt`; each table as CSV and LaTeX, each figure as PNG and
        SVG, each plan as YAML. What an earlier report wrote there and this one does not is deleted.
        """
        contents = {
            "report.html": self.html(),
            "report.md": self.markdown(),
            "report.tex": self.latex(),
            "report.txt": self.text(),
        }
        for table in self.tables:
            contents |= {f"{table.name}.csv": table.csv(), f"{table.name}.tex": table.latex()}
        contents |= {origin.file: origin.plan for origin in self.origins if origin.plan is not None}
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_text(content, encoding="utf-8")
        pictures = [folder / f"{figure.name}.{ending}" for figure in self.figures for ending in ("png", "svg")]
        for figure in self.figures:
            for ending in ("png", "svg"):
                figure.save(folder / f"{figure.name}.{ending}")
        written = [*(folder / name for name in contents), *pictures]
        _delete_stale(folder, written)
        return written

    def _repr_html_(self) -> str:
        """Its summary and tables, where a notebook shows it."""
        return page.fragment(self.summary, self.tables)


def _delete_stale(folder: Path, written: Sequence[Path]) -> None:
    """Delete what the report before wrote and this one has not, and note what this one has, for the next.

    What is not noted, or is not as it was written any more, is someone else's.
    """
    notes = folder / NOTES
    for line in notes.read_text(encoding="utf-8").splitlines() if notes.is_file() else ():
        digest, _, name = line.partition("  ")
        file = folder / name
        if file not in written and file.parent == folder and file.is_file() and _digest(file) == digest:
            file.unlink()
    notes.write_text("".join(f"{_digest(file)}  {file.name}\n" for file in written), encoding="utf-8")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def side_by_side(founds: Mapping[str, Found]) -> Report:
    """Several experiments: first what they share in one table, then the report of each, by its name."""
    made = {name: report(found) for name, found in founds.items()}
    shared = [*arms_side_by_side(founds), *losses_side_by_side(founds)]
    return Report(
        ", ".join(founds),
        (*shared, *(_named(name, table) for name, each in made.items() for table in each.tables)),
        tuple(_named(name, figure) for name, each in made.items() for figure in each.figures),
        tuple(f"{name}: {sentence}" for name, each in made.items() for sentence in each.summary),
        tuple(origin for each in made.values() for origin in each.origins),
    )


def _named(experiment: str, part: Part) -> Part:
    """The same as a part of a report of several experiments."""
    stem = re.sub(r"[^\w.-]", "_", experiment)
    return replace(part, name=f"{stem}-{part.name}", title=f"{experiment}: {part.title}")


def report(found: Found) -> Report:
    """The words, tables and figures that an experiment allows.

    Raises:
        RunError: It holds no run that could stand in one.
    """
    tables = [table for make in TABLES for table in make(found)]
    if not tables:
        raise RunError(
            "a report must have runs, trials of a sweep or cells of a study, and the experiment holds none yet"
        )
    figures = [figure for make in FIGURES for figure in make(found)]
    frame = found.frame
    parents = frame.loc[frame["kind"].isin(["sweep", "study"]), "name"]
    title = ", ".join(dict.fromkeys(parents)) or "Runs"
    return Report(title, tuple(tables), tuple(figures), tuple(summary(found)), origins(found))
