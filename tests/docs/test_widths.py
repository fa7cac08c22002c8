"""The built documentation in a browser: no table and no picture is wider than its column, on wide or narrow screens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import REPOSITORY

CHROMIUM = Path("/usr/bin/chromium")
TOO_WIDE = """() => [...document.querySelectorAll("article .table-wrapper, article img")]
  .filter(each => each.scrollWidth > each.clientWidth + 1 || each.clientWidth > document.body.clientWidth)
  .map(each => each.alt || each.innerText.slice(0, 80))"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_table_or_picture_is_wider_than_its_column(tmp_path: Path) -> None:
    """A column is cut off: a table scrolls, or a picture leaves the page."""
    from playwright.sync_api import sync_playwright

    built = tmp_path / "html"
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-d", tmp_path / "trees", REPOSITORY / "docs", built], check=True
    )
    pages = sorted(page for page in built.rglob("*.html") if page.name not in ("genindex.html", "search.html"))
    assert len(pages) > 15
    wide = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        for width in (1280, 400):
            page = browser.new_page(viewport={"width": width, "height": 900})
            for file in pages:
                page.goto(file.as_uri())
                wide += [f"{file.relative_to(built)} at {width}: {text}" for text in page.evaluate(TOO_WIDE)]
        browser.close()
    assert wide == []
