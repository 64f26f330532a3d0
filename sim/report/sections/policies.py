"""A policy as tables: the rule by hour and load, and what it came to period by period."""

from sim.answers.policy import POLICY, PolicyPeriod, PolicyResult
from sim.answers.policy_table import PolicyHours, PolicyLevel
from sim.answers.words import above_words, active_words, difference_words
from sim.contract.figure import COST_PER_REQUEST, MEAN_LATENCY, figure_of, shares_within
from sim.contract.plan import FIXED_PLANS
from sim.report.content import Bullets, Cell, Section, Table, table_of
from sim.report.figures.policy_periods import policy_periods
from sim.report.sections.evidence import verdict_cells
from sim.report.shown import estimate_cell

RULE_HEADINGS = ("Hours", "Active requests", "Plan", "Slots at most", "Why")
SLO_HEADINGS = ("Rule", "Plan", "Value", "Verdict", "Reason")


def rule(result: PolicyResult) -> Section:
    """Return the table that a service loads."""
    rows = tuple(row(hours, level) for hours in result.table.hours for level in hours.levels)
    table = table_of("What a request runs", "lrlrl", RULE_HEADINGS, rows)
    return Section("policy", "Policy", (Bullets((f"{result.sentence}.",)), table))


def row(hours: PolicyHours, level: PolicyLevel) -> tuple[Cell, ...]:
    """Return one level of load at some hours."""
    return (
        Cell(f"{hours.from_hour:g} to {hours.to_hour:g}"),
        Cell(active_words(level)),
        Cell(level.plan),
        Cell(f"{level.max_degree:,}"),
        Cell(level.reason),
    )


def outcome(result: PolicyResult) -> Section:
    """Return what each plan came to in each period, and whether it keeps the objectives."""
    attained = shares_within(result.whole.figures[POLICY])
    labels = (*FIXED_PLANS, POLICY)
    headings = [
        "Period",
        *(f"{label}, ms" for label in labels),
        "Policy against the better",
        *(f"{label}, micros" for label in labels),
        *(f"{label}, {figure_of(name).heading}" for name in attained for label in labels),
    ]
    rows = tuple(period_row(one, attained) for one in (*result.periods, result.whole))
    table = table_of(
        "Mean latency, cost of a request and attainment", "l" + "r" * (len(headings) - 1), headings, rows
    )
    words = Bullets(tuple(f"{difference_words(result, label).capitalize()}." for label in FIXED_PLANS))
    slo = (slo_table(result),) if result.slo else ()
    return Section("periods", "Over the whole load", (policy_periods(result), words, table, *slo))


def period_row(period: PolicyPeriod, attained: list[str]) -> tuple[Cell, ...]:
    """Return one period."""
    figures = [period.figures[label] for label in (*FIXED_PLANS, POLICY)]
    return (
        Cell(period.name),
        *(estimate_cell(one[MEAN_LATENCY]) for one in figures),
        Cell(above_words(period)),
        *(estimate_cell(one[COST_PER_REQUEST], "count") for one in figures),
        *(estimate_cell(one[name], "share") for name in attained for one in figures),
    )


def slo_table(result: PolicyResult) -> Table:
    """Return the rules, held against each plan."""
    rows = [(Cell(str(one.rule)), Cell(one.plan), *verdict_cells(one)) for one in result.slo]
    return table_of("Objectives", "llrll", SLO_HEADINGS, rows)
