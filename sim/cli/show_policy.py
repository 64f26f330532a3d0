"""A policy, and what it came to, for the terminal."""

from rich.console import RenderableType
from rich.table import Table

from sim.answers.policy import POLICY, PolicyResult
from sim.answers.words import above_words, active_words, difference_words
from sim.cli.figures import text_of
from sim.cli.terminal import new_table
from sim.contract.figure import COST_PER_REQUEST, FIGURES, MEAN_LATENCY, figure_of, shares_within
from sim.contract.plan import FIXED_PLANS


def policy_parts(result: PolicyResult) -> list[RenderableType]:
    """Return the rule first, then each period under each plan."""
    return [
        f"{result.scenario.name}: {result.sentence}",
        "",
        rule_table(result),
        "",
        period_table(result),
        "",
        *(difference_words(result, label) for label in FIXED_PLANS),
        *(f"slo: {one.rule} on {one.plan}: {one.verdict}" for one in result.slo),
    ]


def rule_table(result: PolicyResult) -> Table:
    """Return a row for each level of load at each price."""
    table = new_table("hours", "active requests", "plan", "slots at most", "why", words=3, last_words=1)
    for hours in result.table.hours:
        span = f"{hours.from_hour:g} to {hours.to_hour:g}"
        for level in hours.levels:
            table.add_row(span, active_words(level), level.plan, f"{level.max_degree:,}", level.reason)
    return table


def period_table(result: PolicyResult) -> Table:
    """Return a row for each period and the whole load."""
    labels = (*FIXED_PLANS, POLICY)
    attained = shares_within(result.whole.figures[POLICY])
    table = new_table(
        FIGURES[MEAN_LATENCY].words,
        *labels,
        "against the better",
        *(f"{label}, micros" for label in labels),
        *(f"{label} {figure_of(name).words}" for name in attained for label in labels),
    )
    for period in (*result.periods, result.whole):
        figures = [period.figures[label] for label in labels]
        table.add_row(
            period.name,
            *(text_of(one, MEAN_LATENCY) for one in figures),
            above_words(period),
            *(text_of(one, COST_PER_REQUEST) for one in figures),
            *(text_of(one, name) for name in attained for one in figures),
        )
    return table
