"""The report as one self-contained HTML page; every string that comes from data is escaped."""

from __future__ import annotations

import base64
import hashlib
import html
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
    from markupsafe import Markup

    from analysis.verdict.base import Card

_FOLDER: Final = Path(__file__).with_name("templates")


def page(
    title: str,
    cards: Sequence[Card],
    summary: Sequence[str],
    tables: Sequence[ReportTable],
    figures: Sequence[Figure],
    origins: Sequence[Origin],
) -> str:
    """The whole page.

    Its content security policy forbids the browser to load anything, and to run any script but the page's own, which
    is allowed by its hash.
    """
    script = (_FOLDER / "page.js").read_text(encoding="utf-8")
    template = _environment().get_template("page.html")
    return template.render(
        title=title,
        cards=cards,
        summary=summary,
        tables=tables,
        figures=figures,
        origins=origins,
        style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=metadata.version("dice-ray"),
    )


def fragment(cards: Sequence[Card], summary: Sequence[str], tables: Sequence[ReportTable]) -> str:
    """Verdict, summary and tables only, for a notebook."""
    return _environment().get_template("fragment.html").render(cards=cards, summary=summary, tables=tables)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": one_line, "inline": _inline, "breakable": _breakable}
    return environment


def _breakable(cell: object) -> Markup:
    """A cell that may break after an underscore of a name, and has an interval in a line of its own."""
    from markupsafe import Markup, escape

    text = one_line(cell)
    if interval := re.fullmatch(r"(\S*) ?(\[[^]]*\])", text):
        return Markup('{} <span class="interval">{}</span>').format(*interval.groups())
    return Markup(str(escape(text)).replace("_", "_<wbr>"))  # nosec B704  # escaped


def _inline(figure: Figure) -> str:
    """A figure as an inline SVG: text in the colour of the page, and unique ids, prefixed with the figure's name.

    Its title is shown on hover, and its alternative text is read aloud.
    """
    svg = figure.svg().replace(INK, "currentColor")
    opened = re.match(r'<svg[^>]*?viewBox="([^"]+)"[^>]*>', svg, flags=re.DOTALL)
    assert opened, "matplotlib writes a view box"
    title, alt = html.escape(one_line(figure.title)), html.escape(one_line(figure.alt))
    svg = f'<svg viewBox="{opened[1]}" role="img" aria-label="{alt}"><title>{title}</title>{svg[opened.end() :]}'
    # Inside HTML there are no XML namespaces, and `href` needs no prefix.
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL).replace("xlink:href", "href")
    # An id must be unique in the page, and matplotlib uses the same ones in several figures.
    referenced = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    svg = re.sub(
        r' id="([^"]+)"', lambda match: f' id="{figure.name}-{match[1]}"' if match[1] in referenced else "", svg
    )
    return re.sub(r'(href="|url\()#', rf"\1#{figure.name}-", svg)
