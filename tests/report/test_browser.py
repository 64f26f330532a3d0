"""The report in a browser: it opens from disk, asks for nothing, and fits a screen and a phone."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.reports import html_of

CHROMIUM = os.environ.get("SLOTSIM_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
REQUIRED = os.environ.get("SLOTSIM_REQUIRE_BROWSER") == "1"
WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        if REQUIRED:
            pytest.fail("no Chromium found, and SLOTSIM_REQUIRE_BROWSER=1 asks for one")
        pytest.skip("no Chromium found; SLOTSIM_CHROMIUM may name one")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    written = {name: folder / f"{name}.html" for name in ("comparison", "overloaded")}
    for name, path in written.items():
        path.write_text(html_of(name), encoding="utf-8")
    return written


def opened(browser: Browser, report: Path, width: int) -> tuple[Page, list[str]]:
    """Open a report and return its page with everything that the browser complained about or asked for."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    heard: list[str] = []
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("request", lambda request: heard.append(f"request: {request.url}"))
    page.goto(report.as_uri())
    return page, [entry for entry in heard if entry != f"request: {report.as_uri()}"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["comparison", "overloaded"])
def test_it_opens_in_silence_and_fits(
    browser: Browser, reports: dict[str, Path], name: str, width: int
) -> None:
    page, heard = opened(browser, reports[name], width)
    assert [entry for entry in heard if "data:," not in entry] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    verdict = page.locator("h1")
    box = verdict.bounding_box()
    assert verdict.is_visible()
    assert box is not None
    assert box["y"] + box["height"] < 900
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_it_shows_the_verdict_and_every_drawing(
    browser: Browser, reports: dict[str, Path], width: int
) -> None:
    page, _ = opened(browser, reports["comparison"], width)
    assert page.locator("h1").inner_text() == "The verdict flips between 10 and 11 active requests"
    cards = [" ".join(text.split()) for text in page.locator(".card h2").all_inner_texts()]
    assert cards == ["off-peak Merge", "peak Keep serial"]
    assert page.locator("figure svg").count() == 11
    assert all(figure.is_visible() for figure in page.locator("figure svg").all())
    page.close()


def test_wide_tables_scroll_in_their_own_place(browser: Browser, reports: dict[str, Path]) -> None:
    page, _ = opened(browser, reports["overloaded"], 390)
    table = page.locator(".table", has_text="Scenarios and plans side by side")
    assert table.evaluate("one => one.scrollWidth > one.clientWidth")
    page.close()


def test_drawings_change_their_ink_on_a_dark_screen(browser: Browser, reports: dict[str, Path]) -> None:
    page, _ = opened(browser, reports["comparison"], 1280)
    ink = "getComputedStyle(document.querySelector('figure svg text')).fill"
    light = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ink) != light
    page.emulate_media(color_scheme="dark", media="print")
    assert page.evaluate(ink) == light
    page.close()
