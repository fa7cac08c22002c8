"""The page in a real browser: tables sort, pictures are drawn, nothing is asked of the network, no error is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from analysis.figures import sweep as sweep_figures
from analysis.report import side_by_side
from analysis.tables.base import ReportTable
from tests.analysis.frames import points, study, sweep
from tests.analysis.test_outcome import cells

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from playwright.sync_api import Browser, Page

    Scheme: TypeAlias = Literal["light", "dark"]
    Media: TypeAlias = Literal["screen", "print"]

CHROMIUM = Path("/usr/bin/chromium")
NASTY = "<script>document.title = 'taken'</script>"
SORTED = ReportTable(
    "sorted",
    "A table to sort",
    pd.DataFrame(),
    pd.DataFrame({"name": ["b", "a", "d", "c"], "number": ["9.10 [1.00, 2.00]", "", "1,800", "< 0.001"]}),
)

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    assert CHROMIUM.exists(), f"it takes a Chromium at {CHROMIUM}: `apt-get install chromium` on Debian"
    home = str(tmp_path_factory.mktemp("home"))
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, env={"HOME": home, "PATH": "/usr/bin:/bin"})
        yield opened
        opened.close()


class Opened:
    """A page with what it asked for and what it said."""

    def __init__(self, browser: Browser, file: Path) -> None:
        self.page: Page = browser.new_page(viewport={"width": 1200, "height": 900})
        self.asked: list[str] = []
        self.messages: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.goto(file.as_uri())

    def column(self, table: str, number: int) -> list[str]:
        return self.page.locator(f"#{table} tbody td:nth-child({number})").all_text_contents()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a study and a sweep; the sweep's points are a picture within a picture."""
    curves = points(*((f"{number:04d}", step, "dev/f1", 0.5) for number in (1, 2) for step in (1, 2)))
    trials = [{"params.loss": loss, "metrics.dev/f1": 0.5} for loss in ("self_adjusting_dice", NASTY)]
    tuned = {"metrics.test/f1_tuned": 0.5, "metrics.test/threshold": 0.4}
    compared = study(
        cells(5, 0.1, **{"tags.data": NASTY, "metrics.test/precision": 0.5, "metrics.test/recall": 0.6, **tuned})
    )
    plans = {"plan.yaml": {"study": "name: study\n"}}
    compared = replace(compared, texts=lambda runs, file: plans.get(file, {}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_figures, "NUM_POINTS", 1)
        made = side_by_side({"study": compared, "sweep": sweep(trials, curves=curves)})
        made = replace(made, tables=(SORTED, *made.tables))
        folder = tmp_path_factory.mktemp("report")
        return made.write(folder)[0]


@pytest.fixture
def opened(browser: Browser, file: Path) -> Iterator[Opened]:
    opened = Opened(browser, file)
    yield opened
    opened.page.close()


def test_it_asks_for_nothing_and_says_no_error(opened: Opened, file: Path) -> None:
    opened.page.emulate_media(media="print", color_scheme="dark")
    opened.page.wait_for_load_state("networkidle")
    assert opened.asked == [file.as_uri()]
    assert opened.messages == []
    assert opened.page.title() == "study, sweep"
    assert opened.page.locator(".card .answer + p").first.inner_text().startswith("Better than plain")


def test_the_pictures_are_drawn(opened: Opened, file: Path) -> None:
    pictures = opened.page.locator(".picture svg")
    drawn = {path.stem for path in file.parent.glob("*.svg")}
    assert len(drawn) == pictures.count() >= 4
    for picture in pictures.all():
        box = picture.bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] > 100
        assert picture.locator("path").count() > 5
    within = opened.page.locator("#sweep-best_so_far svg image").bounding_box()
    assert within is not None
    assert within["width"] > 100


def test_a_click_sorts_numbers_by_value_and_another_turns_them_over(opened: Opened) -> None:
    names, numbers = (opened.page.locator("#sorted th button").nth(number) for number in (0, 1))
    assert opened.column("sorted", 1) == ["b", "a", "d", "c"]
    numbers.click()
    assert opened.column("sorted", 2) == ["1,800", "9.10 [1.00, 2.00]", "< 0.001", ""]
    numbers.click()
    assert opened.column("sorted", 2) == ["< 0.001", "9.10 [1.00, 2.00]", "1,800", ""]
    assert opened.page.locator("#sorted th").nth(1).get_attribute("aria-sort") == "ascending"
    names.focus()
    opened.page.keyboard.press("Enter")
    assert opened.column("sorted", 1) == ["a", "b", "c", "d"]
    assert opened.page.locator("#sorted th").nth(1).get_attribute("aria-sort") is None
    assert opened.messages == []


def test_rows_are_folded_until_they_are_asked_for_and_shown_without_a_script(browser: Browser, file: Path) -> None:
    with_script = Opened(browser, file)
    tuned = with_script.page.locator("#study-comparison tbody[data-fold]")
    button = with_script.page.get_by_role("button", name="At the threshold tuned on dev (2)")
    assert not tuned.is_visible()
    button.click()
    assert tuned.is_visible()
    with_script.page.locator("#study-comparison th button").nth(0).click()
    assert with_script.column("study-comparison", 1)[-2:] == ["dice (tuned threshold)", "plain (tuned threshold)"]
    button.click()
    assert not tuned.is_visible()
    assert with_script.messages == []
    with_script.page.close()
    without = browser.new_page(java_script_enabled=False)
    without.goto(file.as_uri())
    assert without.locator("#study-comparison tbody[data-fold]").is_visible()
    without.close()


def test_names_stay_in_view_on_a_telephone(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 400, "height": 800})
    table = opened.page.locator("#study-comparison .wide")
    table.evaluate("wide => { wide.scrollLeft = 200 }")
    name, box = table.locator("tbody td").first.bounding_box(), table.bounding_box()
    assert name is not None
    assert box is not None
    assert name["x"] == box["x"]


def test_light_and_dark_are_readable(opened: Opened) -> None:
    def colours(scheme: str) -> tuple[str, str]:
        opened.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        style = "getComputedStyle(document.body)"
        return opened.page.evaluate(f"{style}.color"), opened.page.evaluate(f"{style}.backgroundColor")

    assert colours("light") == ("rgb(31, 35, 40)", "rgb(253, 253, 251)")
    assert colours("dark") == ("rgb(228, 229, 226)", "rgb(22, 24, 27)")


def test_no_page_is_wider_than_a_telephone(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 390, "height": 800})
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("media", "width"), [("screen", 1280), ("screen", 400), ("print", 1280)])
def test_axe_finds_no_barrier(opened: Opened, scheme: Scheme, media: Media, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    opened.page.set_viewport_size({"width": width, "height": 900})
    opened.page.emulate_media(media=media, color_scheme=scheme)
    found = Axe().run(opened.page)
    assert not found.response["violations"], found.generate_report()
