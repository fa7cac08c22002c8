"""README's picture: the verdict and the forest plot of a report, as Chromium draws them.

Run it after `make demo`: `make picture`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

CHROMIUM: Final = Path("/usr/bin/chromium")
OUT: Final = Path(__file__).with_name("images") / "verdict.png"
MARGIN: Final = 12


def take(report: Path, out: Path) -> None:
    """Draw the page from its verdict to the end of its first figure."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page(viewport={"width": 860, "height": 1200}, device_scale_factor=1.5)
        page.goto(report.resolve().as_uri())
        first, last = page.locator(".card").first.bounding_box(), page.locator(".picture").first.bounding_box()
        assert first is not None, f"{report} must have a verdict"
        assert last is not None, f"{report} must have a figure"
        top, bottom = first["y"] - MARGIN, last["y"] + last["height"] + MARGIN
        page.screenshot(path=out, clip={"x": 0, "y": top, "width": 860, "height": bottom - top})
        browser.close()


if __name__ == "__main__":
    OUT.parent.mkdir(exist_ok=True)
    take(Path(sys.argv[1]), OUT)
