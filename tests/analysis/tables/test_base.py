"""A table as text, Markdown, CSV and LaTeX: numbers where they belong, strings as they are."""

from __future__ import annotations

import io
import math
from collections.abc import Callable

import pandas as pd
import pytest

from analysis.formats import ScoreFormat
from analysis.frames import Findings
from analysis.report import _TABLES
from analysis.statistics.intervals import Interval
from analysis.tables.base import ReportTable, _in_latex, in_markdown
from analysis.tables.runs import all_runs
from dice_ray.errors import one_line
from tests.analysis.experiments import experiments

NASTY = '<script>&|*_`$%#{}~^\\"[x]\n\x1b[31m'


@pytest.mark.parametrize("make", [*_TABLES, all_runs], ids=lambda make: make.__name__)
def test_each_table_is_written_in_every_format(make: Callable[[Findings], list[ReportTable]]) -> None:
    made = [table for findings in experiments().values() for table in make(findings)]
    assert made, "each table must be one of some experiment"
    for table in made:
        num, columns = len(table.shown), len(table.shown.columns)
        rows = [line for line in table.markdown().splitlines() if line.startswith("|")]
        assert [row.replace("\\|", "").count("|") for row in rows] == [columns + 1] * (num + 2)
        assert "<script" not in table.markdown()
        body = table.latex().partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
        assert [line.replace(r"\&", "").count("&") for line in body] == [columns - 1] * num
        assert len(pd.read_csv(io.StringIO(table.csv()))) == len(table.data)
        assert {row for row, _ in table.marks} <= set(range(num))
        assert {heading for _, heading in table.marks} <= set(table.shown)
        assert table.title


def table() -> ReportTable:
    data = pd.DataFrame({"arm": ["dice", NASTY], "mean": [0.123456789, None]})
    return ReportTable(
        "t", "Title_1", data, pd.DataFrame({"arm": ["dice", NASTY], "f1 (%)": ["12.35", "-1.00"]}), ("Note.",)
    )


def test_text_stands_in_columns() -> None:
    simple = ReportTable(
        "t", "Title", pd.DataFrame(), pd.DataFrame({"arm": ["a", "long"], "f1": ["9.1", "10.25"]}), ("Note.",)
    )
    assert simple.text().splitlines() == [
        "Title",
        "-----------",
        "arm      f1",
        "-----------",
        "a       9.1",
        "long  10.25",
        "-----------",
        "Note.",
    ]


def test_no_string_gets_out_of_its_cell() -> None:
    assert "\x1b" not in table().text() + table().markdown() + table().latex()
    assert len(table().text().splitlines()) == 8
    assert "<script>" not in table().markdown()
    rows = [line for line in table().markdown().splitlines() if line.startswith("|")]
    assert [row.replace("\\|", "").count("|") for row in rows] == [3] * 4


def test_an_empty_cell_has_no_mark() -> None:
    """Of a difference without a p value: `**` begins bold text in Markdown."""
    shown = pd.DataFrame({"difference": ["+0.00"], "p": [""]})
    marked = ReportTable("t", "Title", shown, shown, marks={(0, "difference"): "grey", (0, "p"): "grey"})
    assert marked.markdown().splitlines()[-1] == "| *+0.00* |  |"


def test_csv_reads_back() -> None:
    back = pd.read_csv(io.StringIO(table().csv()))
    assert back["arm"].tolist() == ["dice", NASTY]
    assert back["mean"].tolist()[0] == 0.123456789
    assert math.isnan(back["mean"].tolist()[1])


def test_no_cell_of_a_csv_file_is_a_formula() -> None:
    """A label such as `=HYPERLINK(...)` would be run by the spreadsheet that opens the file."""
    data = pd.DataFrame({"=a()": ["=b()", "@c", "+d", "-e", "\tf"], "mean": [-0.5, 1, 2, 3, 4]})
    lines = ReportTable("t", "Title", data, data.astype(str)).csv().splitlines()
    assert ReportTable("t", "", pd.DataFrame({"arm": ["a\r=b()"]}), data).csv() == 'arm\n"a\n=b()"\n', "one cell"
    assert lines == ["'=a(),mean", "'=b(),-0.5", "'@c,1.0", "'+d,2.0", "'-e,3.0", "'\tf,4.0"]


def test_latex_escapes_what_it_reads() -> None:
    assert _in_latex("50 % of a_b & {c} #1 $x$") == r"50 \% of a\_b \& \{c\} \#1 \$x\$"
    assert _in_latex("\\~^<>|[*]") == (
        r"\textbackslash{}\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}{[}{*}{]}"
    )
    assert _in_latex("-0.5, self-adjusting, e-5") == "$-$0.5, self-adjusting, e-5"
    assert in_markdown("a|b_<c>") == r"a\|b\_&lt;c&gt;"
    assert one_line("a\nb\tc") == "a b c"


def test_latex_is_a_table_of_booktabs() -> None:
    lines = table().latex().splitlines()
    assert lines[0] == r"\begin{table}[htbp]"
    assert r"\caption{Title\_1}" in lines
    assert r"\begin{tabular}{lr}" in lines
    assert r"dice & 12.35 \\" in lines
    assert [line for line in lines if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]


def test_shares_are_percent_and_others_have_four_digits() -> None:
    """Finds an MCC that is percent on one data set and not on another, where a mean is below 0."""
    share, other = ScoreFormat.of("f1", pd.Series([0.0, 1.0, math.nan])), ScoreFormat.of("loss", [0.5, 0.7])
    assert not ScoreFormat.of("test/mcc", [0.5, 0.7]).percent
    assert not ScoreFormat.of("test/f1", [0.5, 70.0]).percent, "a user's function of that name, in percent already"
    assert (other.show(12349.0, "+"), other.show(-1234.5)) == ("+12,349", "-1,234")
    assert (share.heading("f1"), other.heading("loss")) == ("f1 (%)", "loss")
    assert (share.show(0.75314), share.show(0.012, "+"), other.show(1.23456)) == ("75.31", "+1.20", "1.235")
    assert share.show(math.nan) == ""
    assert share.show_interval(Interval(0.5, 0.4, 0.6, 3)) == "50.00 [40.00, 60.00]"
    assert share.show_interval(Interval(0.5, math.nan, math.nan, 1)) == "50.00"
