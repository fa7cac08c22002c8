"""The report as one self-contained HTML page; every string that comes from data is escaped."""

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
from analysis.origin import Origin
from analysis.tables.base import ReportTable
from dice_ray.errors import one_line

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER: Final = Path(__file__).with_name("templates")


def page(
    title: str,
    summary: Sequence[str],
    tables: Sequence[ReportTable],
    figures: Sequence[Figure],
    origins: Sequence[Origin],
) -> str:
    """The whole page.

    Its content security policy forbids the browser to load anything, and to run any script but the page's own, which
    is allowed by its hash.
    """
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    template = _environment().get_template("page.html")
    return template.render(
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


def fragment(summary: Sequence[str], tables: Sequence[ReportTable]) -> str:
    """Summary and tables only, for a notebook."""
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
    environment.filters |= {"plain": one_line, "inline": inline}
    return environment


def inline(figure: Figure) -> str:
    """A figure as an inline SVG: text in the colour of the page, and unique ids, prefixed with the figure's name."""
    svg = figure.svg().replace(INK, "currentColor")
    svg = re.sub(r'^<svg[^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1" role="img">', svg, count=1, flags=re.DOTALL)
    # Inside HTML there are no XML namespaces, and `href` needs no prefix.
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL).replace("xlink:href", "href")
    # An id must be unique in the page, and matplotlib uses the same ones in several figures.
    referenced = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    svg = re.sub(
        r' id="([^"]+)"', lambda match: f' id="{figure.name}-{match[1]}"' if match[1] in referenced else "", svg
    )
    return re.sub(r'(href="|url\()#', rf"\1#{figure.name}-", svg)
