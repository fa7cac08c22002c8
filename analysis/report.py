"""The report of an experiment: summary, tables and figures, as HTML, Markdown, text, CSV, LaTeX and pictures."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from analysis import html_page
from analysis.comparison import Comparison, comparisons
from analysis.data_sets import sentence_over_data_sets
from analysis.figures.base import Figure
from analysis.figures.by_number import gain_by_ratio, score_by_budget, score_by_ratio, tversky_alpha
from analysis.figures.curves import training_curves
from analysis.figures.differences import forests, ranks, ranks_of
from analysis.figures.paper import signs_of_dsc
from analysis.figures.precision_recall import planes, pr_curves
from analysis.figures.reliability import reliability
from analysis.figures.settings import slices
from analysis.figures.sweep import best_so_far, importance
from analysis.frames import Findings, of_kind
from analysis.origin import Origin, origins
from analysis.outcome import summary
from analysis.paper.tables import formulas, paper_tables
from analysis.tables.across import across_data_sets, across_data_sets_of, arms_side_by_side, losses_side_by_side
from analysis.tables.base import ReportTable, in_markdown
from analysis.tables.by_number import at_equal_budget, scores_by_ratio, variance_components
from analysis.tables.calibration import calibration
from analysis.tables.items import by_class, confusion, worst_items
from analysis.tables.runs import all_runs, best_trials, by_loss, pareto_front, trained_alone, without_score
from analysis.tables.study import comparison, left_out
from analysis.verdict import verdicts
from analysis.verdict.base import Card, card_of
from dice_ray.errors import InputError, RunError, one_line

_MakeTables: TypeAlias = Callable[[Findings], list[ReportTable]]
_Part = TypeVar("_Part", ReportTable, Figure)

_TABLES: Final[tuple[_MakeTables, ...]] = (
    scores_by_ratio,
    comparison,
    across_data_sets,
    at_equal_budget,
    variance_components,
    by_class,
    confusion,
    calibration,
    worst_items,
    paper_tables,
    formulas,
    pareto_front,
    best_trials,
    by_loss,
    trained_alone,
    without_score,
    left_out,
)
"""THE list of tables, in the order of the report; each function returns no table if it does not apply."""

_FIGURES: Final[tuple[Callable[[Findings], Iterator[Figure]], ...]] = (
    forests,
    ranks,
    score_by_budget,
    planes,
    pr_curves,
    reliability,
    score_by_ratio,
    gain_by_ratio,
    tversky_alpha,
    best_so_far,
    slices,
    importance,
    training_curves,
    signs_of_dsc,
)
"""THE list of figures, in the order of the report; each function returns no figure if it does not apply."""

_CHECKSUMS: Final = "report.sha256"
"""The file with the digests of all written files, in the format of `sha256sum --check`."""


@dataclass(frozen=True)
class Report:
    """The report of a sweep, a study, runs trained alone, or data sets.

    Attributes:
        title: The names of what it reports on.
        tables: In the order of `_TABLES`.
        figures: In the order of `_FIGURES`.
        summary: The main results, in sentences.
        origins: How to rerun each sweep and study.
        cards: The verdict of each comparison of a study.
        unshown: Tables for other programs, which are written as CSV only.
        findings: What it was made from, if that is one experiment.
    """

    title: str
    tables: tuple[ReportTable, ...]
    figures: tuple[Figure, ...] = ()
    summary: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    cards: tuple[Card, ...] = ()
    unshown: tuple[ReportTable, ...] = ()
    findings: Findings | None = field(default=None, repr=False, compare=False)

    def text(self) -> str:
        """The report as text, without figures."""
        parts = [
            one_line(self.title),
            *(card.text() for card in self.cards),
            "\n".join(map(one_line, self.summary)),
            *(table.text() for table in self.tables),
        ]
        return "\n\n".join(filter(None, parts)) + "\n"

    def markdown(self) -> str:
        """The report for a repository page, with the pictures in files beside it."""
        reruns = [
            "\n".join([f"To run {in_markdown(origin.name)} again:", "", "```", *origin.commands, "```"])
            for origin in self.origins
            if origin.commands
        ]
        parts = [
            f"# {in_markdown(self.title)}",
            *(card.markdown() for card in self.cards),
            *(figure.markdown() for figure in self.figures if figure.is_first),
            *map(in_markdown, self.summary),
            *(table.markdown() for table in self.tables),
            *(figure.markdown() for figure in self.figures if not figure.is_first),
            *reruns,
        ]
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """The report as one page that needs no other file and no network."""
        return html_page.render("page.html", vars(self))

    def write(self, folder: Path) -> list[Path]:
        """Write the report and return the paths written, the HTML page first.

        Writes `report.html` and `report.md`, each table as CSV and LaTeX, all trials or cells as CSV, each figure as
        PNG and SVG, and each plan as YAML. Deletes files of the previous report that this
        one does not write.

        Raises:
            InputError: A file would be replaced that no report has written, or that was changed since.
        """
        contents = {"report.html": self.html(), "report.md": self.markdown()}
        for table in self.tables:
            contents |= {f"{table.name}.csv": table.csv(), f"{table.name}.tex": table.latex()}
        contents |= {f"{table.name}.csv": table.csv() for table in self.unshown}
        contents |= {origin.file: origin.plan for origin in self.origins if origin.plan is not None}
        pictures = {f"{figure.name}.{ending}": figure for figure in self.figures for ending in ("png", "svg")}
        names, before = (*contents, *pictures), _listed(folder)
        # What a report has written in this very folder: a line of a changed checksum file must not delete another file.
        # One that was changed since is the user's.
        ours = {
            name
            for digest, name in before
            if (file := folder / name).parent == folder and file.is_file() and _digest(file) == digest
        }
        if foreign := [name for name in names if name not in ours and (folder / name).exists()]:
            raise InputError(
                f"a report must not replace files that it has not written, or that were changed since, and {folder} "
                f"has {', '.join(foreign)}: move them away, or choose another folder by --out"
            )
        folder.mkdir(parents=True, exist_ok=True)
        # All files are whole before the first one is replaced: a full disk leaves the previous report as it was.
        with tempfile.TemporaryDirectory(prefix=".report-", dir=folder) as unfinished:
            for name, content in contents.items():
                (Path(unfinished) / name).write_text(content, encoding="utf-8")
            for name, figure in pictures.items():
                figure.save(Path(unfinished) / name)
            now = {(_digest(Path(unfinished) / name), name) for name in names}
            # Those of both reports, so that what a process leaves that is killed here is known to be of a report.
            _list(folder, before | now, Path(unfinished))
            written = [(Path(unfinished) / name).replace(folder / name) for name in names]
            for name in ours - {*names}:
                if (stale := folder / name).is_file() and (_digest(stale), name) in before:
                    stale.unlink()
            _list(folder, now, Path(unfinished))
        return written

    def _repr_html_(self) -> str:
        """Summary and tables, for a notebook."""
        return html_page.render("fragment.html", vars(self))


def _listed(folder: Path) -> set[tuple[str, str]]:
    """The digests and names of the files of the previous report."""
    file = folder / _CHECKSUMS
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {(digest, name) for digest, _, name in (line.partition("  ") for line in lines)}


def _list(folder: Path, files: Set[tuple[str, str]], unfinished: Path) -> None:
    """Replace the checksums; they are written whole to another folder first."""
    lines = sorted(f"{digest}  {name}\n" for digest, name in files)
    (unfinished / _CHECKSUMS).write_text("".join(lines), encoding="utf-8")
    (unfinished / _CHECKSUMS).replace(folder / _CHECKSUMS)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def side_by_side(experiments: Mapping[str, Findings]) -> Report:
    """The report of several experiments: first the tables that compare them, then the parts of each under its name."""
    reports: dict[str, Report] = {}
    studies: dict[str, tuple[Comparison, ...]] = {}
    for name, findings in experiments.items():
        # One experiment after the other: `comparisons` keeps the latest alone.
        reports[name], studies[name] = report(findings), comparisons(findings)
    compared = [each for of_study in studies.values() for each in of_study]
    shared = [*arms_side_by_side(studies), *across_data_sets_of(compared), *losses_side_by_side(experiments)]
    return Report(
        ", ".join(experiments),
        (*shared, *(_named(name, table) for name, each in reports.items() for table in each.tables)),
        (
            *ranks_of(compared),
            *(_named(name, figure) for name, each in reports.items() for figure in each.figures),
        ),
        (
            *sentence_over_data_sets(compared),
            *(f"{name}: {sentence}" for name, each in reports.items() for sentence in each.summary),
        ),
        tuple(origin for each in reports.values() for origin in each.origins),
        tuple(
            replace(card, name=f"{name}: {card.name}" if card.name else name)
            for name, each in reports.items()
            for card in each.cards
        ),
        tuple(_named(name, table) for name, each in reports.items() for table in each.unshown),
    )


def _named(experiment: str, part: _Part) -> _Part:
    """The part with the experiment's name in its title and file name."""
    stem = re.sub(r"[^\w.-]", "_", experiment)
    return replace(part, name=f"{stem}-{part.name}", title=f"{experiment}: {part.title}")


def report(findings: Findings) -> Report:
    """The report of an experiment, with every table and figure that applies to it.

    Raises:
        RunError: The experiment has no runs.
    """
    tables = [table for make in _TABLES for table in make(findings)]
    if not tables:
        raise RunError("a report must have runs, trials of a sweep or cells of a study; the experiment has none yet")
    figures = [figure for make in _FIGURES for figure in make(findings)]
    parents = of_kind(findings.frame, "sweep", "study")["name"].dropna()  # a damaged store may hold none
    title = ", ".join(dict.fromkeys(parents)) or "Runs"
    made = verdicts(findings)
    cards = tuple(card_of(each, findings, each.place if len(made) > 1 else "") for each in made)
    sentences, runs = tuple(summary(findings, below_cards=True)), tuple(all_runs(findings))
    return Report(title, tuple(tables), tuple(figures), sentences, origins(findings), cards, runs, findings)
