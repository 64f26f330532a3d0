"""What the README says is so: its commands, its outputs, its scenario, its Python, its reference."""

import doctest
import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sim
from sim.cli import app
from sim.scenario import json_schema
from tests.benchmarks.contenders import CPP_TABLES, EVENTS, HANDWRITTEN
from tests.scenario_reference import README, figures, reference, written

ROOT = Path(__file__).parent.parent
TEXT = README.read_text(encoding="utf-8")
COMMAND = re.compile(r"(?:\.venv/bin/)?slotsim ((?:\w+ )?[^`\n]+)")


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def blocks(language: str) -> list[str]:
    """Return the blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Return the words of every command in a block of shell."""
    found = (COMMAND.fullmatch(line) for block in blocks("sh") for line in block.splitlines())
    return [shlex.split(match[1]) for match in found if match]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_its_commands_exist_with_their_options(words: list[str]) -> None:
    assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0
    assert all(Path(word).exists() for word in words if word.startswith("scenarios/"))


def test_its_table_of_commands_has_every_command() -> None:
    assert re.findall(r"^\| `slotsim (\w+)", TEXT, re.MULTILINE) == [
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    ]


def test_the_demo_prints_what_it_says() -> None:
    (demo,) = blocks("text")
    makefile = Path("Makefile").read_text()
    words = re.search(r"slotsim (compare .*) --out reports/demo$", makefile, re.MULTILINE)
    assert words is not None
    assert CliRunner().invoke(app, words[1].split()).stdout.startswith(demo)


def test_its_scenario_runs(tmp_path: Path) -> None:
    (scenario,) = blocks("yaml")
    file = tmp_path / "mine.yaml"
    file.write_text(scenario)
    short = sim.load_scenario(file, ["load.requests=300"])
    assert sim.simulate(short, workers=1).decision.decision in ("merge", "keep-serial", "undecided")


def test_its_python_gives_what_it_shows() -> None:
    runner = doctest.DocTestRunner(verbose=False)
    parser = doctest.DocTestParser()
    examples = [parser.get_doctest(block, {}, "README.md", "README.md", 0) for block in blocks("python")]
    assert examples
    for example in examples:
        runner.run(example)
    assert runner.failures == 0


def test_its_reference_has_every_key() -> None:
    assert written() == reference(json_schema()), "write it anew with: python -m tests.scenario_reference"


def test_its_reference_has_every_figure() -> None:
    assert written("figures") == figures(), "write it anew with: python -m tests.scenario_reference"


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", TEXT)
    assert "reports/sample/figures/latency-against-load.svg" in links


def test_its_speeds_are_those_of_the_benchmark() -> None:
    goals = json.loads(Path("reports/bench/bench.json").read_text())["goals"]
    for words, to in (("a SimPy model", HANDWRITTEN), ("a C++ event loop", CPP_TABLES)):
        row = re.search(rf"^\| {re.escape(words)}[^|]* \| ([^\n]*) \|$", TEXT, re.MULTILINE)
        assert row is not None
        medians = [
            one["ratio"]["median"]
            for one in goals
            if (one["of"], one["to"], one["slots"]) == (EVENTS, to, 20) and one["ratio"]
        ]
        shown = [f"{median:.0f}" if median >= 100 else f"{median:.2f}" for median in medians]
        assert row[1].split(" | ") == shown
