"""A policy, and what it came to, for the terminal."""

from rich.console import RenderableType
from rich.table import Table

from sim.answers.policy import MEAN, POLICY, PolicyResult
from sim.answers.words import above_words, active_words, difference_words, within
from sim.cli.figures import NUMBER, SHARE, estimate
from sim.cli.terminal import new_table
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
    attained = [name for name in result.whole.figures[POLICY] if name.startswith("share_within_")]
    table = new_table(
        "latency mean, ms",
        *labels,
        "against the better",
        *(f"{label}, micros" for label in labels),
        *(f"{label} {within(name)}, %" for name in attained for label in labels),
    )
    for period in (*result.periods, result.whole):
        figures = [period.figures[label] for label in labels]
        table.add_row(
            period.name,
            *(estimate(one[MEAN]) for one in figures),
            above_words(period),
            *(estimate(one["cost_micros_per_request"], NUMBER) for one in figures),
            *(estimate(one[name], SHARE) for name in attained for one in figures),
        )
    return table
