"""The page: nothing of the data becomes markup, nothing is loaded, and only its own script may run."""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from html.parser import HTMLParser

import pandas as pd
import pytest

from analysis.figures.base import INK
from analysis.figures.paper import _ImbalanceBars
from analysis.html_page import _inline
from analysis.origin import Origin
from analysis.report import Report
from analysis.tables.base import ReportTable
from analysis.verdict.base import Card

NASTY = '<script>alert(1)</script><img src=x onerror="alert(2)"> & "quoted" \'too\''
FIGURE = _ImbalanceBars("imbalance", NASTY, ((NASTY, 10, 1), ("b", 20, 5)))
TABLE = ReportTable(
    "t",
    NASTY,
    pd.DataFrame({"arm": [NASTY, "b"]}),
    pd.DataFrame({NASTY: [NASTY, "b"], "f1": ["9.10", "10.20"]}),
    (NASTY,),
    {(1, "f1"): "bold", (0, "f1"): "grey"},
)
CARD = Card(NASTY, NASTY, "NO", (NASTY,), NASTY, {"data": NASTY}, NASTY, is_command=True)
ORIGIN = Origin("study", f"name: {NASTY}\n", {NASTY: NASTY})


class Tags(HTMLParser):
    """Every element with its attributes, and the ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append((tag, dict(attrs)))


REPORT = Report(
    NASTY, (TABLE,), (FIGURE, _ImbalanceBars("other", "b", FIGURE.counts)), (NASTY,), (ORIGIN,), cards=(CARD,)
)


@pytest.fixture(scope="module")
def text() -> str:
    return REPORT.html()


def test_nothing_of_the_data_becomes_markup(text: str) -> None:
    tags = Tags(text).opened
    assert [tag for tag, _ in tags].count("script") == 1
    assert "img" not in [tag for tag, _ in tags]
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    escaped = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&#34;alert(2)&#34;&gt;"
    assert text.count(escaped) >= 13
    assert "<script>" not in REPORT._repr_html_()


def test_nothing_is_loaded_and_only_its_own_script_runs(text: str) -> None:
    tags = Tags(text).opened
    addresses = [
        attributes.get(name) or "" for _, attributes in tags for name in ("src", "href", "xlink:href", "action")
    ]
    assert {address[0] for address in addresses if address} == {"#"}
    assert not re.findall(r"url\((?!#)", text)
    (policy,) = [each["content"] for tag, each in tags if tag == "meta" and "http-equiv" in each]
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


def test_no_two_elements_have_one_id_and_every_reference_has_its_element(text: str) -> None:
    tags = Tags(text).opened
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    references = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    assert references
    assert references <= set(ids)


def test_a_picture_takes_the_colour_of_the_page() -> None:
    svg = _inline(FIGURE)
    assert svg.startswith('<svg viewBox="0 0 ')
    assert f'role="img" aria-label="{escape(NASTY)}"><title>{escape(NASTY)}</title>' in svg
    assert "currentColor" in svg
    assert INK not in svg


def test_numbers_stand_right_and_marks_are_classes(text: str) -> None:
    cells = [(attributes["class"] or "").split() for tag, attributes in Tags(text).opened if tag == "td"]
    assert cells == [[], ["number", "grey"], [], ["number", "bold"]]


def test_the_page_says_how_to_run_it_again(text: str) -> None:
    assert "cp study.plan.yaml &#34;$runs/plan.yaml&#34;\ndice-ray resume study\n" in text
    bare = Report("a", (TABLE,), origins=(Origin("study", None, {}),)).html()
    assert "The plan of study is not stored." in bare
    assert "dice-ray resume" not in bare
