"""What each further slot is worth to a request."""

from collections.abc import Sequence

from sim.answers.comparison import Comparison
from sim.answers.flip import Gains, gains
from sim.report.content import Block, Cell, Paragraph, Section, Table, table_of
from sim.report.figures.gains import gains_figure
from sim.report.words import slug
from sim.scenario import Scenario
from sim.statistics.digits import trimmed

MOST_ROWS = 40
DEGREE_WORDS = (
    "The recommended degree steps to the number of slots with the highest gain per added slot, as long as "
    "that gain exceeds the join and is at least the stated share of the makespan before the step."
)


def slots(comparison: Comparison) -> Section:
    """Return makespan and gain by slot, once for each different workflow."""
    blocks: list[Block] = []
    for number, scenario in enumerate(workflows(comparison), start=1):
        found = gains(scenario)
        name = f"gains-{number}-{slug(scenario.workflow.name)}"
        blocks += [gains_figure(found, name), gains_table(found)]
    return Section("slots", "Makespan and gain per slot", (*blocks, Paragraph(DEGREE_WORDS)))


def workflows(comparison: Comparison) -> Sequence[Scenario]:
    """Return one scenario for each different workflow."""
    parts = [part for result in comparison.results for part in result.scenario.parts]
    found: dict[object, Scenario] = {}
    for part in parts:
        found.setdefault((part.parallel_plan(1), part.criteria.min_marginal_gain_ratio), part)
    return tuple(found.values())


def gains_table(found: Gains) -> Table:
    """Return slots, makespan and gain."""
    shown = found.gains[:MOST_ROWS]
    left_out = len(found.gains) - len(shown)
    ending = f" (the first {MOST_ROWS} of {len(found.gains):,} slots)" if left_out else ""
    rows = tuple(
        (
            Cell(f"{gain.concurrency:,}"),
            Cell(trimmed(gain.make_span_ms)),
            Cell("" if gain.concurrency == 1 else trimmed(gain.saved_vs_previous_ms)),
            Cell("recommended", "good") if gain.concurrency == found.recommended_degree else Cell(""),
        )
        for gain in shown
    )
    headings = ("Slots", "Makespan, ms", "Gain of this slot, ms", "")
    title = f"{found.scenario.workflow.name}: serial {trimmed(found.serial_ms)} ms{ending}"
    return table_of(title, "rrrl", headings, rows)
