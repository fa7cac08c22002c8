"""The report as one self-contained HTML page; every string that comes from data is escaped."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.figures.base import INK, Figure
from dice_ray.errors import one_line

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(template: str, parts: Mapping[str, object]) -> str:
    """A template with the fields of a report: `page.html`, or `fragment.html` for a notebook."""
    return _environment().get_template(template).render(parts)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).with_name("templates")
    script = (folder / "page.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": one_line, "inline": _inline, "breakable": _breakable}
    environment.globals |= {
        "style": (folder / "page.css").read_text(encoding="utf-8"),
        "script": script,
        # The page's content security policy lets the browser load nothing, and run this script alone.
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "version": metadata.version("dice-ray"),
    }
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
    size = f"max-width: {7.3 * figure.width:.0f}rem"  # letters are as large as those of the caption
    svg = (
        f'<svg viewBox="{opened[1]}" style="{size}" role="img" aria-label="{alt}">'
        f"<title>{title}</title>{svg[opened.end() :]}"
    )
    # Inside HTML there are no XML namespaces, and `href` needs no prefix.
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL).replace("xlink:href", "href")
    # An id must be unique in the page, and matplotlib uses the same ones in several figures.
    referenced = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    svg = re.sub(
        r' id="([^"]+)"', lambda match: f' id="{figure.name}-{match[1]}"' if match[1] in referenced else "", svg
    )
    return re.sub(r'(href="|url\()#', rf"\1#{figure.name}-", svg)
