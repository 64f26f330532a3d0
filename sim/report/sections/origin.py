"""What the figures rest on, and what it takes to make them again."""

from collections.abc import Sequence

from sim.answers.comparison import Comparison
from sim.report.content import Bullets, Cell, Paragraph, Section, Table
from sim.report.words import warmup_words
from sim.result.result import Result

ASSUMPTIONS = (
    "Service times do not depend on the number of calls in flight.",
    "Every run issues exactly the requests that its load asks for and drains: every request ends, and none "
    "is cut off.",
    "Time is whole nanoseconds inside the simulation; all randomness is drawn before a run starts, so that "
    "plans and scenarios of one seed and workflow meet the same draws.",
)
ROWS = {
    "scenario_file": "Scenario file",
    "scenario_sha256": "SHA-256 of its content",
    "overrides": "Overrides",
    "seed": "Seed",
    "replications": "Replications",
    "warmup": "Warm-up",
    "engine": "Engine",
    "slotsim_version": "slotsim version",
}


def notes(comparison: Comparison) -> Section:
    """Return the assumptions, and what the runs had to say."""
    several = len(comparison.results) > 1
    said = [
        f"{result.scenario.name}: {note}" if several else note
        for result in comparison.results
        for note in result.notes
    ]
    return Section("notes", "Assumptions and notes", (Bullets((*ASSUMPTIONS, *said)),))


def origin(comparison: Comparison, command: str | None) -> Section:
    """Return the provenance of every scenario, and the command where it is known."""
    table = Table(
        "To run this again",
        "l" + "l" * len(comparison.results),
        (Cell(""), *(Cell(result.scenario.name) for result in comparison.results)),
        tuple(rows(comparison.results)),
    )
    blocks = (table,) if command is None else (Paragraph(f"Command: {command}"), table)
    return Section("provenance", "Provenance", blocks)


def rows(results: Sequence[Result]) -> list[tuple[Cell, ...]]:
    """Return one fact on each row, scenario by scenario."""
    facts = [facts_of(result) for result in results]
    return [(Cell(words), *(Cell(fact[name]) for fact in facts)) for name, words in ROWS.items()]


def facts_of(result: Result) -> dict[str, str]:
    """Return what it takes to run a scenario again, as text."""
    known = result.provenance
    return {
        **{name: str(value) for name, value in known.items()},
        "overrides": ", ".join(known["overrides"]) or "none",
        "replications": f"{result.replications:,}",
        "warmup": warmup_words(result),
    }
