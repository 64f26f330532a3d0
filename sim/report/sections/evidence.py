"""Why the figures may be believed: bounds and theory beside them, SLO verdicts, and the checks."""

from sim.answers.comparison import Comparison
from sim.contract.figure import FIGURES
from sim.report.content import Cell, Mark, Paragraph, Section, table_of
from sim.report.shown import estimate_cell, ms
from sim.report.words import plan_cell
from sim.result.expected import Expected
from sim.result.objective import MET, MISSED, SloVerdict
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.statistics.digits import BLANK, fixed, trimmed
from sim.units import NS_PER_S

THEORY_HEADINGS = (
    "Scenario",
    "Plan",
    "Figure",
    "By theory",
    "Value",
    "Why",
    "Simulated",
    "Simulated / theory",
)
SLO_HEADINGS = ("Scenario", "Workload", "Plan", "Rule", "Value", "Verdict", "Reason")
SLO_MARKS: dict[str, Mark] = {MET: "good", MISSED: "bad"}
CHECK_HEADINGS = (
    "Scenario",
    "Plan",
    "Requests",
    "Exact",
    "Bounded",
    "Violated",
    "Calls conserved",
    "Isolated replays",
    "Active x time = sum of latencies, s",
    "Check",
)
THEORY_WORDS = (
    "Bounds of active requests take their time-average over the whole run, warm-up included. Exact values "
    "and approximations hold for a steady state; Allen-Cunneen treats the calls of a request as if "
    "independent."
)
CHECK_WORDS = (
    "Checked on every run; a violation would have stopped it. Exact: the latency equals, to the nanosecond, "
    "what the deterministic list scheduler gives the request's own service times. Bounded: the request "
    "waited for others' slots or for a limit, or made further attempts, and took no less than its critical "
    "path and its work allow. Calls conserved: each call, and each further attempt at one, ran once, for its "
    "drawn time unless it was cut short, on a slot of its own, in the order of the queue, and no free slot "
    "was left beside a call that could have had it. Isolated replays: one request alone equals the list "
    "scheduler for each number of slots. Active x time is Little's law, equal as whole nanoseconds. The "
    "readable check and the compiled one are written apart and find the same."
)


def theory(comparison: Comparison) -> Section | None:
    """Return bounds and theory beside what was simulated."""
    rows = [
        theory_row(result, plan, item)
        for result in comparison.results
        for plan in result.plans
        for item in plan.expected
    ]
    table = table_of("Theory beside simulation", "llllrlrr", THEORY_HEADINGS, rows)
    return Section("theory", "Bounds and theory", (table, Paragraph(THEORY_WORDS))) if rows else None


def theory_row(result: Result, plan: PlanResult, item: Expected) -> tuple[Cell, ...]:
    """Return one figure by theory and as simulated."""
    simulated = plan.estimates[item.figure]
    has_ratio = item.value > 0 and simulated.mean == simulated.mean
    return (
        Cell(result.scenario.name),
        plan_cell(plan, plan.label),
        Cell(FIGURES[item.figure].words),
        Cell(item.kind),
        Cell(ms(item.value)),
        Cell(item.why),
        estimate_cell(simulated),
        Cell(fixed(simulated.mean / item.value, 3) if has_ratio else BLANK),
    )


def slo(comparison: Comparison) -> Section | None:
    """Return the verdicts of every rule; None where no scenario has one."""
    rows = [slo_row(result, verdict) for result in comparison.results for verdict in result.slo]
    if not rows:
        return None
    table = table_of("Rules and verdicts", "llllrll", SLO_HEADINGS, rows)
    words = "An undecided rule counts as missed."
    return Section("slo", "Service-level objectives", (table, Paragraph(words)))


def slo_row(result: Result, verdict: SloVerdict) -> tuple[Cell, ...]:
    """Return one rule held against its plan."""
    return (
        Cell(result.scenario.name),
        Cell(verdict.workload),
        plan_cell(result.plan(verdict.plan), verdict.plan),
        Cell(str(verdict.rule)),
        *verdict_cells(verdict),
    )


def verdict_cells(one: SloVerdict) -> tuple[Cell, Cell, Cell]:
    """Return the figure that a rule is about, and what came of it."""
    mark = SLO_MARKS.get(one.verdict, "unsure")
    return estimate_cell(one.value, FIGURES[one.rule.metric].kind), Cell(one.verdict, mark), Cell(one.reason)


def checks(comparison: Comparison) -> Section:
    """Return what the checks of every plan counted."""
    rows = tuple(check_row(result, plan) for result in comparison.results for plan in result.plans)
    table = table_of("What was checked", "llrrrrrrrl", CHECK_HEADINGS, rows)
    total = sum(result.checks.requests_violated for result in comparison.results)
    requests = sum(result.checks.requests for result in comparison.results)
    words = f"{requests:,} requests checked, {total:,} violated."
    return Section("checks", "Checks", (Paragraph(words), table, Paragraph(CHECK_WORDS)))


def check_row(result: Result, plan: PlanResult) -> tuple[Cell, ...]:
    """Return the counts of one plan, over all its replications."""
    report = plan.checks
    return (
        Cell(result.scenario.name),
        plan_cell(plan, plan.label),
        Cell(f"{report.requests:,}"),
        Cell(f"{report.requests_exact:,}"),
        Cell(f"{report.requests_bounded:,}"),
        Cell(f"{report.requests_violated:,}", "bad" if report.requests_violated else "good"),
        Cell(f"{report.calls_conserved:,}"),
        Cell(report.replays_words),
        Cell(trimmed(report.active_integral_ns / NS_PER_S, 3)),
        Cell(report.run_by_words),
    )
