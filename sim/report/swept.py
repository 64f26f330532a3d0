"""The report of a sweep: verdicts over what was varied, figures against it, and where the verdict changes."""

from collections.abc import Iterator
from itertools import pairwise

from sim.report.answers import page
from sim.report.content import Block, Bullets, Cell, Paragraph, ReportContent, Section, Table
from sim.report.figures.heat_map import axis_words, can_be_drawn, heat_map, one_value, value_words
from sim.report.figures.line_family import line_families
from sim.report.shown import BLANK, fixed, ms
from sim.report.words import DECISION_MARKS, DECISIONS, FINITE_RUN, OVERLOADED
from sim.sweep import Sweep

MOST_AXES_DRAWN = 2
MOST_ROWS = 200
FIGURE_HEADINGS = (
    "Plan",
    "Mean latency, ms",
    "p95, ms",
    "Succeeded, %",
    "Micros per delivered request",
    "Verdict",
)
VERDICTS = DECISIONS | {OVERLOADED: "Overloaded"}


def sweep_report(sweep: Sweep, command: str) -> ReportContent:
    """Return the report of a sweep."""
    names = " and ".join(axis_words(axis) for axis in sweep.grid.axes)
    sections = (verdicts(sweep), lines(sweep), table(sweep))
    return page(
        sweep.scenario,
        headline(sweep),
        f"What changes with {names}?",
        tuple(section for section in sections if section is not None),
        command,
    )


def headline(sweep: Sweep) -> str:
    """Return how many points have each verdict."""
    found = [(VERDICTS[verdict], sweep.verdicts[verdict]) for verdict in VERDICTS if sweep.verdicts[verdict]]
    if len(found) == 1:
        return f"{found[0][0]} at all {found[0][1]:,} points"
    counts = "; ".join(f"{words} at {count:,}" for words, count in found)
    return f"{counts} of {sum(sweep.verdicts.values()):,} points"


def verdicts(sweep: Sweep) -> Section:
    """Return the map of verdicts, and where they change along the first axis."""
    blocks: list[Block] = [heat_map(sweep)] if can_be_drawn(sweep) else []
    if len(sweep.grid.axes) <= MOST_AXES_DRAWN:
        sentences = tuple(change_sentences(sweep))
        blocks.append(Bullets(sentences))
    simulated = sum(sweep.verdicts.values())
    words = f"{simulated:,} of {len(sweep.grid):,} points were simulated."
    if sweep.verdicts[OVERLOADED]:
        words += f" Overloaded: {FINITE_RUN}."
    return Section("verdicts", "Where the verdict changes", (*blocks, Paragraph(words)))


def change_sentences(sweep: Sweep) -> Iterator[str]:
    """Yield for each value of the second axis where along the first the verdict changes."""
    first, *others = sweep.grid.axes
    across = axis_words(first)
    for row in range(len(others[0]) if others else 1):
        known = [
            (value_words(first.values[column]), sweep.cells[row, column])
            for column in range(len(first))
            if (row, column) in sweep.cells
        ]
        if not known:
            continue
        changes = [
            f"{before} → {after} between {low} and {high}"
            for (low, before), (high, after) in pairwise(known)
            if before != after
        ]
        where = f"{axis_words(others[0])} {value_words(others[0].values[row])}: " if others else ""
        yield f"{where}{', '.join(changes)} {across}" if changes else f"{where}{known[0][1]} everywhere"


def lines(sweep: Sweep) -> Section | None:
    """Return the figures against what is varied."""
    if len(sweep.grid.axes) > MOST_AXES_DRAWN:
        return None
    figures = tuple(line_families(sweep))
    return Section("lines", "Figures against what is varied", figures) if figures else None


def table(sweep: Sweep) -> Section:
    """Return the points and plans, where they are few enough to be read."""
    rows = sum(sweep.verdicts.values()) * len(sweep.scenario.plans)
    words = Paragraph(f"sweep.parquet has all {rows:,} rows, one for each point and plan, with every figure.")
    if rows > MOST_ROWS:
        return Section("points", "Points", (words,))
    keys = sweep.grid.keys
    headings = (
        *keys,
        "Plan",
        "Mean latency, ms",
        "p95, ms",
        "Succeeded, %",
        "Micros per delivery",
        "Verdict",
    )
    shown = Table(
        "Points and plans",
        "l" * (len(keys) + 1) + "rrrrl",
        tuple(Cell(text) for text in headings),
        tuple(row_cells(row, keys) for row in sweep.rows()),
    )
    return Section("points", "Points", (shown, words))


def row_cells(row: dict[str, object], keys: tuple[str, ...]) -> tuple[Cell, ...]:
    """Return one point and plan."""
    verdict = str(row["verdict"])
    mark = OVERLOADED if verdict == OVERLOADED else DECISION_MARKS[verdict]
    return (
        *(Cell(one_value(row[key])) for key in keys),  # type: ignore[arg-type]
        Cell(str(row["plan"])),
        time_cell(row.get("latency_ms_mean")),
        time_cell(row.get("latency_ms_p95")),
        number_cell(row.get("succeeded_share"), 100),
        number_cell(row.get("cost_micros_per_success"), 1),
        Cell(VERDICTS[verdict], mark),
    )


def time_cell(value: object) -> Cell:
    return Cell(ms(value) if isinstance(value, float) else BLANK)


def number_cell(value: object, unit: float) -> Cell:
    return Cell(fixed(unit * value, 1) if isinstance(value, float) else BLANK)
