"""The report of a sweep: verdicts over what was varied, figures against it, and where the verdict changes."""

from collections.abc import Iterator
from itertools import groupby, pairwise

from sim.contract.figure import COST_PER_SUCCESS, FIGURES, MEAN_LATENCY, P95_LATENCY, SUCCEEDED_SHARE
from sim.report.answers import page
from sim.report.content import Block, Bullets, Cell, Mark, Paragraph, ReportContent, Section, table_of
from sim.report.figures.heat_map import axis_words, can_be_drawn, heat_map, one_value, value_words
from sim.report.figures.line_family import line_families
from sim.report.shown import VALUES, columns
from sim.report.words import DECISION_MARKS, DECISIONS, FINITE_RUN
from sim.statistics.digits import BLANK
from sim.statistics.stability import OVERLOADED
from sim.sweeps.sweep import NOT_COMPARED, Sweep

MOST_AXES_DRAWN = 2
MOST_ROWS = 200
POINT_FIGURES = (MEAN_LATENCY, P95_LATENCY, SUCCEEDED_SHARE, COST_PER_SUCCESS)
VERDICTS = DECISIONS | {NOT_COMPARED: "Not compared"}
MARKS: dict[str, Mark] = {**DECISION_MARKS, NOT_COMPARED: ""}


def sweep_report(sweep: Sweep, command: str) -> ReportContent:
    """Return the report of a sweep."""
    names = " and ".join(axis_words(axis) for axis in sweep.grid.axes)
    sections = (None if sweep.verdicts[NOT_COMPARED] else verdicts(sweep), lines(sweep), table(sweep))
    return page(
        sweep.scenario,
        headline(sweep),
        f"What changes with {names}?",
        tuple(section for section in sections if section is not None),
        command,
    )


def headline(sweep: Sweep) -> str:
    """Return how many points have each verdict, or of what there are points where plans are not compared."""
    if sweep.verdicts[NOT_COMPARED]:
        plans = ", ".join(plan.label for plan in sweep.scenario.plans)
        return f"{sum(sweep.verdicts.values()):,} points, {plans} alone: no verdict"
    found = [(VERDICTS[verdict], sweep.verdicts[verdict]) for verdict in VERDICTS if sweep.verdicts[verdict]]
    if len(found) == 1:
        return f"{found[0][0]} at all {found[0][1]:,} points"
    counts = ", ".join(f"{words} at {count:,}" for words, count in found).lower().capitalize()
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
    """Yield where along the first axis the verdict changes, once for neighbours on the second that agree."""
    others = sweep.grid.axes[1:]
    if not others:
        yield changes(sweep, 0)
        return
    values = [value_words(each) for each in others[0].values]
    told = [(changes(sweep, row), value) for row, value in enumerate(values)]
    for words, same in groupby((item for item in told if item[0]), key=lambda item: item[0]):
        span = [value for _, value in same]
        where = span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}"
        yield f"{axis_words(others[0])} {where}: {words}"


def changes(sweep: Sweep, row: int) -> str:
    """Return where along the first axis the verdict changes in one row; empty where nothing is known."""
    first = sweep.grid.axes[0]
    known = [
        (value_words(values), sweep.cells[row, column])
        for column, values in enumerate(first.values)
        if (row, column) in sweep.cells
    ]
    found = [
        f"{before} → {after} between {low} and {high}"
        for (low, before), (high, after) in pairwise(known)
        if before != after
    ]
    if found:
        return f"{', '.join(found)} {axis_words(first)}"
    return f"{known[0][1]} everywhere" if known else ""


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
    headings = (*keys, "Plan", *columns(POINT_FIGURES), "Verdict")
    shown = table_of(
        "Points and plans",
        "l" * (len(keys) + 1) + "rrrrl",
        headings,
        (row_cells(row, keys) for row in sweep.rows()),
    )
    return Section("points", "Points", (shown, words))


def row_cells(row: dict[str, object], keys: tuple[str, ...]) -> tuple[Cell, ...]:
    """Return one point and plan."""
    verdict = str(row["verdict"])
    return (
        *(Cell(one_value(row[key])) for key in keys),  # type: ignore[arg-type]
        Cell(str(row["plan"])),
        *(value_cell(name, row.get(name)) for name in POINT_FIGURES),
        Cell(VERDICTS[verdict], MARKS[verdict]),
    )


def value_cell(name: str, value: object) -> Cell:
    """Return a figure as its kind is shown; blank where it is not known."""
    return Cell(VALUES[FIGURES[name].kind](value) if isinstance(value, float) else BLANK)
