"""Names are text wherever they come: in drawings, pages, tables, files and on the terminal."""

import csv
import json
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator
from typer.testing import CliRunner

import sim
from sim.cli import app
from sim.errors import InputError
from sim.report.compose import compose, figure_names
from sim.report.figures.drawing import drawn
from sim.report.figures.style import clipped, entry, legend_above
from sim.report.render import escaped, html, opening
from tests.nasty_names import NASTY_NAMES, REFUSED_NAMES
from tests.small_scenarios import CONTEXT

TEXT = "{http://www.w3.org/2000/svg}text"
TOGETHER = 6
GROUPS = [
    tuple(NASTY_NAMES[(first + more) % len(NASTY_NAMES)] for more in range(TOGETHER))
    for first in range(0, len(NASTY_NAMES), TOGETHER)
]


def one_line(text: str) -> str:
    return " ".join(text.split())


def texts_of(svg: str) -> list[str]:
    """Return the texts that a drawing shows."""
    return [one_line("".join(element.itertext())) for element in ET.fromstring(svg).iter(TEXT)]


def page_text(page: str) -> str:
    """Return the text of a page, whitespace as one space, drawings left out."""
    words: list[str] = []
    parser = HTMLParser(convert_charrefs=True)
    parser.handle_data = words.append  # type: ignore[method-assign, assignment]
    parser.feed(page)
    return one_line(" ".join("".join(words).split("\n")))


def branches(names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"id": name, "duration_ms": 40 + 10 * place, "carries_shared_context": place < 2}
        for place, name in enumerate(names)
    ]


def day(names: Sequence[str]) -> dict[str, Any]:
    """Return a scenario with a period; the first name is its own, the second the workflow's."""
    load = {
        "kind": "steps",
        "steps": [
            {"at_s": 0, "active_requests": 3, "name": names[2]},
            {"at_s": 2, "active_requests": 6, "name": names[3]},
        ],
        "end_s": 4,
    }
    return {
        "schema_version": 1,
        "name": names[0],
        "provider": {"concurrency": 8},
        "workflow": {"name": names[1], "branches": branches(names), "shared_context": CONTEXT},
        "load": load,
        "plans": ["serial", "parallel"],
    }


def mix(names: Sequence[str]) -> dict[str, Any]:
    """Return a scenario with two workloads on two providers."""
    workloads = [
        {
            "name": names[place],
            "workflow": {
                "name": names[5 - place],
                "branches": [{**one, "provider": names[2 + place]} for one in branches(names[place::2])],
            },
            "load": {"kind": "open", "rate_per_s": 5, "requests": 20},
        }
        for place in range(2)
    ]
    return {
        "schema_version": 1,
        "name": names[4],
        "providers": {names[2]: {"concurrency": 4}, names[3]: {"concurrency": 3}},
        "workloads": workloads,
        "plans": ["serial", "parallel"],
    }


def written(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content, ensure_ascii=False))
    return path


def slotsim(*words: str | Path) -> str:
    """Run a command, which must end well and say nothing on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=ResourceWarning)
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="slotsim")
    assert result.exit_code == 0, result.output
    return result.stdout


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def hold_files(folder: Path, content: dict[str, Any], names: Sequence[str]) -> None:
    """Hold the tables, the summary and the resolved scenario of a folder against the names in a scenario."""
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["provenance"]["scenario"] == content["name"]
    again = sim.load_scenario(written(folder.parent / "again.yaml", content))
    assert sim.load_scenario(folder / "scenario.yaml").to_dict() == again.to_dict()
    assert {row["branch"] for row in rows_of(folder / "calls.csv")} == set(names)
    assert (folder / "figures").is_dir()
    for path in folder.rglob("*"):
        assert re.fullmatch(r"[a-z0-9._-]+", path.name), path


def hold_report(folder: Path, shown: Sequence[str]) -> None:
    """Hold page and Markdown of a report against the names that they must show."""
    page = page_text((folder / "report.html").read_text())
    marked = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    text = page_text(marked.render((folder / "report.md").read_text()))
    ET.fromstring((folder / "report.html").read_text().split("\n", 1)[1])
    for name in shown:
        assert one_line(name) in page
        assert one_line(name) in text


def hold_run(tmp_path: Path, names: Sequence[str]) -> None:
    """Run a scenario with periods and one with workloads, each with names everywhere."""
    first, second = day(names), mix(names)
    for number, content in enumerate((first, second)):
        folder = tmp_path / f"out-{number}"
        said = one_line(slotsim("run", written(tmp_path / f"{number}.yaml", content), "--out", folder))
        parts = content.get("workloads", [content])
        shown = [content["name"], *(part["workflow"]["name"] for part in parts)]
        shown += [part["name"] for part in parts] + [
            step["name"] for step in content.get("load", {}).get("steps", ())
        ]
        assert all(one_line(name) in said for name in shown if name not in shown[1 : 1 + len(parts)])
        hold_files(folder, content, names)
        hold_report(folder, shown)
    files = {path.name: path.read_text() for path in (tmp_path / "out-0" / "figures").iterdir()}
    (slots,) = (svg for name, svg in files.items() if name.endswith("-slots.svg"))
    (over_time,) = (svg for name, svg in files.items() if name.endswith("-over-time.svg"))
    assert {one_line(clipped(name)) for name in names} <= set(texts_of(slots))
    assert {one_line(clipped(name)) for name in names[2:4]} <= set(texts_of(over_time))
    assert one_line(clipped(names[0])) in texts_of(files["mean-latency.svg"])


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_a_name_is_text_in_whatever_a_run_writes(group: int, tmp_path: Path) -> None:
    hold_run(tmp_path, GROUPS[group])


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(1, TOGETHER))
@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_a_name_is_text_in_every_place(group: int, turn: int, tmp_path: Path) -> None:
    names = GROUPS[group]
    hold_run(tmp_path, (*names[turn:], *names[:turn]))


@pytest.mark.parametrize("name", NASTY_NAMES)
def test_a_name_is_text_in_every_part_of_a_drawing(name: str) -> None:
    def paint(canvas: Canvas) -> None:
        above, below = canvas.subplots(2)
        shown = clipped(name)
        above.plot([1, 2], [1, 2], label=entry(name))
        above.set_title(shown)
        above.set_xlabel(shown)
        above.annotate(shown, (1, 1))
        below.text(0, 0, shown)
        below.bar_label(below.bar([1], [1]), labels=[shown])
        below.xaxis.set_major_locator(FixedLocator([1]))
        below.xaxis.set_major_formatter(lambda _value, _place: shown)
        legend_above(above)
        canvas.legend(handles=[Patch(label=entry(name))])
        canvas.suptitle(shown)

    def paint_rows(canvas: Canvas) -> None:
        canvas.subplots().set_yticks([0, 1], [clipped(name), "other"])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = drawn("names", (name, name, name), 4, paint)
        rows = drawn("rows", ("", "", ""), 2, paint_rows)
    assert ET.fromstring(figure.svg).findtext("{http://www.w3.org/2000/svg}title") == name
    assert texts_of(figure.svg).count(one_line(clipped(name))) == 9
    assert texts_of(rows.svg).count(one_line(clipped(name))) == 1
    assert "\ufffe" not in figure.svg


def test_files_of_figures_are_told_apart() -> None:
    names = ("a/b", "a b", "a-b-2", "a.b", "a-b-3", "名", "前", "..", "mean", "Mean!", "x" * 200)
    results: Any = [SimpleNamespace(scenario=SimpleNamespace(name=name)) for name in names]
    assert figure_names(results) == (
        "a-b", "a-b-2", "a-b-2-3", "a-b-4", "a-b-3", "scenario", "scenario-7", "scenario-8", "mean-9",
        "mean-10", "x" * 200,
    )  # fmt: skip
    scenarios = [
        scenario_of({"name": name, "load.requests": 20, "plans": ["serial"]}) for name in ("mean", "a")
    ]
    files = [figure.file for figure in compose(sim.compare(scenarios)).figures]
    assert len(files) == len(set(files))


def scenario_of(content: dict[str, Any]) -> sim.Scenario:
    base = sim.load_scenario(Path(__file__).parents[2] / "scenarios" / "moderation.yaml")
    return base.replace(content)


@pytest.mark.parametrize("name", NASTY_NAMES)
def test_markdown_shows_a_name_as_it_stands(name: str) -> None:
    marked = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for before, after in (("- **", "**"), ("*", "*")):
        shown = page_text(marked.render(f"{before}{escaped(name)}{after}\n"))
        assert shown == one_line(name)
    for before in ("", "- ", "# "):
        assert page_text(marked.render(f"{before}{opening(name)}\n")) == one_line(name)
    table = page_text(marked.render(f"| {escaped(name)} | other |\n| :--- | ---: |\n| 1 | 2 |\n"))
    assert table == one_line(f"{one_line(name)} other 1 2")


def test_a_page_keeps_a_colour_that_is_a_name() -> None:
    scenario = scenario_of({"name": "color: #20262d", "load.requests": 20, "plans": ["serial"]})
    page = html(compose(sim.simulate(scenario)))
    assert "var(--c-20262d, #20262d)" in page
    assert re.search(r">color: #20262d</text>", page)


@pytest.mark.parametrize("name", REFUSED_NAMES)
def test_what_nothing_can_show_is_no_name(name: str, tmp_path: Path) -> None:
    content = day(("a", "b", "c", "d", "e", "f"))
    path = tmp_path / "refused.yaml"
    path.write_text(
        f"workflow: {{branches: [{{id: {json.dumps(name)}, duration_ms: 1}}], name: w}}\n" + rest(content)
    )
    with pytest.raises(InputError) as caught:
        sim.load_scenario(path)
    rule = (
        "text without lone surrogates" if "\ud800" in name else "not hold control characters or line breaks"
    )
    assert str(caught.value).startswith(f"{path}:1: ")
    assert rule in str(caught.value)


def rest(content: dict[str, Any]) -> str:
    return yaml.safe_dump({key: value for key, value in content.items() if key != "workflow"})
