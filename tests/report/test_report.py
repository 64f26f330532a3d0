"""Reports: what they say, in HTML and in Markdown alike, and how they are written."""

import html as entities
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.errors import OutputError
from sim.report.content import Bullets, Cell, Figure, ReportContent, Table
from sim.report.render import escaped
from sim.report.write import write_report
from tests.reports import (
    SUBJECTS,
    content_of,
    hostile,
    html_of,
    markdown_of,
    mix,
    off_peak_and_peak,
    overloaded,
)

FIGURES = [
    "gains-1-moderation-classify",
    "latency-against-load",
    "mean-latency",
    "off-peak-latency",
    "off-peak-over-time",
    "off-peak-slots",
    "peak-latency",
    "peak-over-time",
    "peak-slots",
    "price-of-a-saved-ms",
    "where-the-time-went",
]


@pytest.fixture(params=SUBJECTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def page(name: str) -> ET.Element:
    return ET.fromstring(html_of(name).removeprefix("<!DOCTYPE html>\n"))


def tables(name: str) -> dict[str, Table]:
    return {
        block.caption: block
        for section in content_of(name).sections
        for block in section.blocks
        if isinstance(block, Table)
    }


def texts(row: tuple[Cell, ...]) -> list[str]:
    return [cell.text for cell in row]


def said(content: ReportContent) -> Iterator[str]:
    """Yield everything that a report says outside its drawings."""
    yield from (content.title, content.subtitle, content.headline, *content.warnings)
    for card in content.cards:
        yield from (card.title, card.setting, card.decision, card.reason)
        yield from (text for reading in card.readings for text in (reading.label, reading.value))
    for section in content.sections:
        yield section.heading
        for block in section.blocks:
            if isinstance(block, Table):
                yield from (block.caption, *block.notes)
                yield from (cell.text for row in (block.headings, *block.rows) for cell in row)
            elif isinstance(block, Figure):
                yield from (block.title, block.caption, block.description)
            else:
                yield from block.items if isinstance(block, Bullets) else (block.text,)


def test_the_verdict_comes_first_with_its_numbers() -> None:
    content = content_of("comparison")
    assert content.headline == "The verdict flips between 10 and 11 active requests"
    assert off_peak_and_peak().sentence.startswith(f"{content.headline}. ")
    readings = [[f"{one.label} {one.value}" for one in card.readings] for card in content.cards]
    assert readings == [
        ["serial 420.0 ms", "parallel 295.0 ms", "adaptive 295.0 ms"],
        ["serial 420.0 ms", "parallel 455.0 ms", "adaptive 420.0 ms"],
    ]
    assert [card.decision for card in content.cards] == ["Merge", "Keep serial"]
    assert content.cards[0].reason == (
        "Saves 125 ms; costs 368 micros extra (2.94 <= 4 micros per saved ms); "
        "prefix reuse 60 % reaches the break-even 41.67 %; 2 slots earn their keep (measured)"
    )
    first = next(element for element in page("comparison").iter() if element.tag in ("h1", "h2"))
    assert first.text == content.headline
    assert markdown_of("comparison").startswith(f"# {content.headline}\n")


def test_the_flip_table_has_every_plan_of_every_scenario() -> None:
    table = tables("comparison")["Scenarios and plans side by side"]
    assert [texts(row) for row in table.rows] == [
        ["off-peak", "serial", "420.0", "420.0", "368", "50.0 %", "deterministic", "Merge"],
        ["off-peak", "parallel", "295.0", "295.0", "736", "71.2 %", "deterministic", ""],
        ["off-peak", "adaptive", "295.0", "295.0", "736", "71.2 %", "deterministic", ""],
        ["peak", "serial", "420.0", "420.0", "368", "100.0 %", "deterministic", "Keep serial"],
        ["peak", "parallel", "455.0", "455.0", "736", "92.3 %", "deterministic", ""],
        ["peak", "adaptive", "420.0", "420.0", "368", "100.0 %", "deterministic", ""],
    ]


def test_the_criteria_stand_measured_beside_arithmetic() -> None:
    table = tables("comparison")["The four criteria: off-peak"]
    arithmetic = "arithmetic, 10 active on 2 slots each"
    assert [texts(row)[:5] for row in table.rows] == [
        [basis, *figures, "pass"]
        for basis in ("measured", arithmetic)
        for figures in (
            ["Time saved, ms", "125.0", "> 0"],
            ["Micros per saved ms", "2.94", "≤ 4"],
            ["Prefix reuse against break-even", "60 %", "≥ 41.67 %"],
            ["Recommended degree, slots", "2", "≥ 2"],
        )
    ]
    peak = tables("comparison")["The four criteria: peak"]
    assert [row[4].text for row in peak.rows] == ["fail", "fail", "fail", "pass", *["fail"] * 4]


def test_the_levels_of_load_have_their_bounds() -> None:
    table = tables("comparison")["Mean latency by active requests"]
    assert texts(table.headings)[:7] == [
        "Allocation",
        "Active requests",
        "serial, ms",
        "parallel, ms",
        "adaptive, ms",
        "serial at least, ms",
        "parallel at least, ms",
    ]
    assert [texts(row) for row in table.rows] == [
        ["fair share", "10", "420.0", "295.0", "295.0", "420.0", "295.0", "parallel", "Merge"],
        ["fair share", "11", "420.0", "455.0", "420.0", "420.0", "295.0", "serial", "Keep serial"],
    ]


def test_a_report_without_levels_has_no_curve() -> None:
    content = content_of("overloaded")
    assert "load" not in [section.anchor for section in content.sections]
    assert "latency-against-load" not in [figure.name for figure in content.figures]


def test_checks_and_origin_are_stated() -> None:
    content = content_of("comparison")
    rows = [texts(row) for row in tables("comparison")["What was checked"].rows]
    assert rows[0] == ["off-peak", "serial", "200", "200", "0", "0", "400", "2", "84", "readable"]
    scenario = off_peak_and_peak().results[0].scenario
    facts = {row[0].text: row[1].text for row in tables("comparison")["To run this again"].rows}
    assert facts["SHA-256 of its content"] == scenario.digest
    assert facts["Overrides"] == "load.requests=200"
    assert facts["Seed"] == "1"
    assert facts["Engine"] == off_peak_and_peak().results[0].engine
    everything = list(said(content))
    assert "Command: slotsim compare off-peak.yaml peak.yaml" in everything
    assert "Service times do not depend on the number of calls in flight." in everything


def test_percentiles_that_cannot_be_shown_are_blank_with_the_reason() -> None:
    table = tables("comparison")["Figures: peak"]
    rows = {row[0].text: row[1:] for row in table.rows}
    assert rows["Latency p95, ms"][0] == Cell("420.0")
    assert rows["Latency p99, ms"][0] == Cell("\N{EN DASH}", note="needs 1,000 observations, has 200")
    assert "needs 1,000 observations, has 200" in table.notes
    assert not any("pooled" in name for name in rows)


def test_replications_show_means_of_percentiles_and_pooled_ones() -> None:
    rows = {row[0].text: texts(row[1:]) for row in tables("overloaded")["Figures: open"].rows}
    assert all("±" in text for text in rows["Latency p90, ms"])
    assert all("±" not in text for text in rows["Latency p90 pooled, ms"])
    pooled = overloaded().plans[0].pooled_ms["latency_ms_p90"]
    assert rows["Latency p90 pooled, ms"][0] == f"{float(pooled):,.1f}"


def test_overload_is_marked_wherever_its_figures_stand() -> None:
    content = content_of("overloaded")
    assert content.headline == "Overloaded: no steady state, no verdict"
    assert content.warnings == (
        "Overloaded: open (serial, parallel, adaptive). Slots loaded to 126.0 %, 25.2 of 20 slots; "
        "its figures are those of a finite run, not of a steady state; "
        "at most 47.62 requests/s can be sustained.",
    )
    labels = {"serial", "parallel", "adaptive"}
    for card in content.cards:
        assert [one.label for one in card.readings] == [
            f"{label} ⚠ overloaded" for label in ("serial", "parallel", "adaptive")
        ]
    for caption, table in tables("overloaded").items():
        if caption == "What binds, by arithmetic":
            continue  # what is asked of constraints is so with or without a run
        for row in (table.headings, *table.rows):
            assert not labels & set(texts(row)), table.caption
    assert not any("25.2 of 20" in note for table in tables("overloaded").values() for note in table.notes)
    for text in (html_of("overloaded"), markdown_of("overloaded")):
        assert text.count("⚠") > 20


def test_the_slo_of_an_overloaded_plan_is_missed_with_the_reason() -> None:
    table = tables("overloaded")["Rules and verdicts"]
    assert [row[5].text for row in table.rows] == ["missed", "undecided"]
    assert table.rows[0][6].text.startswith("overloaded: slots loaded to 126.0 %, 25.2 of 20 slots")


def test_periods_are_rows_by_arrival_with_what_spills_over() -> None:
    table = tables("day")["Periods by arrival: day"]
    by_plan = [texts(row) for row in table.rows if row[3].text == "parallel"]
    assert [row[0] for row in by_plan] == ["off-peak", "peak", "recovery"]
    assert [row[9:11] for row in by_plan] == [["0", "10"], ["10", "20"], ["20", "10"]]
    assert [row[12].text for row in table.rows if row[12].text] == ["Merge", "Keep serial", "Merge"]


def test_html_and_markdown_say_the_same(name: str) -> None:
    document = page(name)
    in_html = " ".join("".join(document.itertext()).split())
    in_markdown = markdown_of(name)
    for text in said(content_of(name)):
        assert " ".join(text.split()) in in_html
        assert escaped(text) in in_markdown
    rows = sum(len(table.rows) + 1 for table in tables(name).values())
    assert len(list(document.iter("tr"))) == rows
    assert len(re.findall(r"^\| (?!:?-)", in_markdown, flags=re.MULTILINE)) == rows


def test_markdown_tables_have_as_many_cells_as_headings(name: str) -> None:
    lines = markdown_of(name).splitlines()
    for table in tables(name).values():
        start = lines.index(f"**{escaped(table.caption)}**") + 2
        for line in lines[start : start + len(table.rows) + 2]:
            assert len(re.findall(r"(?<!\\)\|", line)) == len(table.alignment) + 1


def test_the_page_needs_nothing_else(name: str) -> None:
    text = html_of(name)
    assert "http:" not in text
    assert "https:" not in text
    assert "<script" not in text
    assert "@import" not in text
    assert " src=" not in text
    assert re.findall(r'href="([^#][^"]*)"', text) == ["data:,"]
    assert re.findall(r"url\((?!#)", text) == []


def test_links_and_labels_lead_to_one_place_each(name: str) -> None:
    elements = list(page(name).iter())
    ids = [element.get("id", "") for element in elements if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in elements:
        for label in ("aria-labelledby", "aria-describedby"):
            assert element.get(label, ids[0]) in ids
        target = element.get("href", "")
        assert not target.startswith("#") or target[1:] in ids
    links = re.findall(r"\]\(#([^)]+)\)", markdown_of(name))
    assert links == [section.anchor for section in content_of(name).sections]
    assert all(f'<a id="{anchor}"></a>' in markdown_of(name) for anchor in links)


def test_a_name_is_text_and_never_markup() -> None:
    written = entities.escape(hostile().scenario.name, quote=False)
    assert written in html_of("hostile").replace("&#39;", "'")
    assert r"\<script>alert('1')\</script> \| \*\*bold\*\* & \_it\_" in markdown_of("hostile")
    assert {figure.name for figure in content_of("hostile").figures} >= {
        "script-alert-1-script-bold-it-latency"
    }


def test_a_report_is_written_with_its_figures_beside_it(tmp_path: Path) -> None:
    written = write_report(hostile(), tmp_path / "report")
    assert written == tmp_path / "report" / "report.html"
    content = content_of("hostile")
    assert written.read_text() == html_of("hostile")
    assert (tmp_path / "report" / "report.md").read_text() == markdown_of("hostile")
    for figure in content.figures:
        assert (tmp_path / "report" / figure.file).read_text() == figure.svg
    files = [path for path in (tmp_path / "report").rglob("*") if path.is_file()]
    assert len(files) == len(content.figures) + 2


def test_the_figures_of_a_comparison() -> None:
    assert sorted(figure.name for figure in content_of("comparison").figures) == FIGURES
    assert len(html_of("comparison")) < 1_000_000


def test_markdown_refers_to_the_figures_that_are_written(name: str) -> None:
    assert re.findall(r"^!\[.*\]\((.*)\)$", markdown_of(name), flags=re.MULTILINE) == [
        figure.file for figure in content_of(name).figures
    ]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as caught:
        write_report(hostile(), tmp_path / "file" / "report")
    assert str(caught.value) == f"{tmp_path}/file/report could not be written: Not a directory"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_workloads_have_rows_of_their_own() -> None:
    table = tables("mix")["Workloads: mix-peak"]
    names = [row[0].text for row in table.rows]
    plans = len(mix().plans)
    assert names == [one.name for one in mix().plans[0].workloads for _ in range(plans)]
    assert all(row[3].text != "" for row in table.rows)
