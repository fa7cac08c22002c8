"""One HTML page by itself: words, sortable tables, figures, how to run it again; every string of data is escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analysis.figures.base import INK, Figure
from analysis.layout import Table, plain
from analysis.origin import Origin

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER: Final = Path(__file__).with_name("templates")


def page(
    title: str, summary: Sequence[str], tables: Sequence[Table], figures: Sequence[Figure], origins: Sequence[Origin]
) -> str:
    """The whole page.

    What it may load is nothing, and what it may run is its own script, by its hash: both are said to the browser.
    """
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            summary=summary,
            tables=tables,
            figures=figures,
            origins=origins,
            style=(FOLDER / "page.css").read_text(encoding="utf-8"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            version=metadata.version("dice-ray"),
        )
    )


def fragment(summary: Sequence[str], tables: Sequence[Table]) -> str:
    """Words and tables alone, for a notebook."""
    return _environment().get_template("fragment.html").render(summary=summary, tables=tables)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": plain, "inline": inline}
    return environment


def inline(figure: Figure) -> str:
    """The picture within a page: text in the page's colour, and ids that no other picture has."""
    svg = figure.svg().replace(INK, "currentColor")
    svg = re.sub(r'^<svg[^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1" role="img">', svg, count=1, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL).replace("xlink:href", "href")
    asked = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: f' id="{figure.name}-{found[1]}"' if found[1] in asked else "", svg)
    return re.sub(r'(href="|url\()#', rf"\1#{figure.name}-", svg)
