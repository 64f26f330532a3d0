"""What the runs went through: slots of the first requests, numbers over time, periods, warm-up."""

from collections.abc import Sequence

from sim.answers.comparison import Comparison
from sim.contract import figure as named
from sim.report.content import Bullets, Cell, Paragraph, Section, Table, table_of
from sim.report.figures.gantt import gantt
from sim.report.figures.over_time import over_time
from sim.report.figures.warm_up import warm_up
from sim.report.shown import columns, count, figure_cells
from sim.report.words import decision_cell, plan_cell, warmup_words
from sim.result.plan_result import PeriodResult, PlanResult
from sim.result.result import Result
from sim.statistics.digits import trimmed
from sim.statistics.stability import OVERLOADED

PERIOD_FIGURES = (named.REQUESTS, named.MEAN_LATENCY, named.P95_LATENCY, named.MEAN_WAIT, named.UTILISATION)
ENDS = (named.ACTIVE_AT_START, named.ACTIVE_AT_END)
SPILL_WORDS = (
    "Requests belong to the period in which they arrive, even where they complete in a later one. Active at "
    "start is what the period before spills over into this one: requests that arrived earlier and are not "
    "complete yet."
)
NOT_DRAWN = "The first replication of {} made no call under some plan: there is nothing to draw."


def time(comparison: Comparison, names: Sequence[str]) -> Section:
    """Return drawings over time, the periods, and what was left out at the start."""
    pairs = list(zip(comparison.results, names, strict=True))
    drawn = [(result, name) for result, name in pairs if made_calls(result)]
    figures = [draw(result, name) for result, name in drawn for draw in (gantt, over_time)]
    figures += [warm_up(result, name) for result, name in drawn if shows_warm_up(result)]
    idle = [NOT_DRAWN.format(result.scenario.name) for result, _ in pairs if not made_calls(result)]
    sentences = Bullets((*idle, *(warm_up_sentence(result) for result in comparison.results)))
    periods = [periods_table(result) for result in comparison.results if result.plans[0].periods]
    spill = (Paragraph(SPILL_WORDS),) if periods else ()
    return Section("time", "Over time", (*figures, sentences, *periods, *spill))


def made_calls(result: Result) -> bool:
    """Return whether the first replication of every plan made calls, so that there is something to draw."""
    return all(plan.first_run.out.counted.any() for plan in result.plans)


def shows_warm_up(result: Result) -> bool:
    """Return whether there is a start-up to look at."""
    return not result.deterministic or any(any(plan.dropped) for plan in result.plans)


def warm_up_sentence(result: Result) -> str:
    """Return how the start of the runs was treated, and how much that left out."""
    drops = "; ".join(f"{plan.label} {dropped_words(plan)}" for plan in result.plans)
    return f"Warm-up of {result.scenario.name}: {warmup_words(result)}. Requests left out: {drops}."


def dropped_words(plan: PlanResult) -> str:
    """Return how many requests the replications left out."""
    least, most = min(plan.dropped), max(plan.dropped)
    if len(plan.dropped) == 1 or least == most:
        return f"{most:,}"
    return f"{least:,} to {most:,} by replication"


def periods_table(result: Result) -> Table:
    """Return every period on a row per plan."""
    rows = [
        period_row(result, plan, plan.periods[index])
        for index in range(len(result.plans[0].periods))
        for plan in result.plans
    ]
    figures = columns((*PERIOD_FIGURES, *ENDS))
    headings = ("Period", "From, s", "To, s", "Plan", *figures, "Stability", "Decision")
    return table_of(f"Periods by arrival: {result.scenario.name}", "lrrlrrrrrrrll", headings, rows)


def period_row(result: Result, plan: PlanResult, part: PeriodResult) -> tuple[Cell, ...]:
    """Return what one plan did in one period."""
    figures, label = part.estimates, part.stability.label
    measured = result.decision.by_period.get(part.period.name)
    decided = measured is not None and plan is result.plans[0]
    return (
        Cell(part.period.name),
        Cell(trimmed(part.period.from_s)),
        Cell(trimmed(part.period.to_s)),
        plan_cell(part, plan.label),
        *figure_cells(figures, PERIOD_FIGURES),
        *(Cell(count(figures[name].mean)) for name in ENDS),
        Cell(label, "overloaded" if label == OVERLOADED else ""),
        decision_cell(measured.decision) if measured is not None and decided else Cell(""),
    )
