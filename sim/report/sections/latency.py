"""Latency, waiting and throughput of every plan in full."""

from collections.abc import Mapping, Sequence

from sim.answers.comparison import Comparison
from sim.contract import figure as named
from sim.contract.figure import FIGURES, bound_within, figure_of, levels_of, shares_within
from sim.report.content import Block, Bullets, Cell, Section, Table, table_of
from sim.report.figures.latency import latency_distribution
from sim.report.shown import columns, estimate_cell, figure_cells, missing, ms
from sim.report.words import decision_cell, delivered_cell, plan_cell
from sim.result.plan_result import PlanResult, WorkloadResult
from sim.result.result import Result
from sim.statistics.interval import Estimate
from sim.statistics.percentile import Missing

ROWS = (
    *levels_of(named.LATENCY),
    *levels_of(named.DELIVERED_LATENCY),
    *levels_of(named.WAITING),
    named.UTILISATION,
    named.THROUGHPUT,
    named.ACTIVE_REQUESTS,
    named.PARALLEL_SHARE,
    named.COST_PER_REQUEST,
    named.COST_PER_SUCCESS,
    named.REQUESTS,
)
ATTEMPTS = (named.ATTEMPTS_PER_CALL, named.REJECTED_SHARE)
WORKLOAD_TIMES = (named.REQUESTS, *named.LATENCIES, named.MEAN_WAIT, named.MAX_WAIT, named.SLOT_SHARE)

DELIVERED_WORDS = (
    "A request that was not delivered counts as later than any other, so that beside one there is no mean "
    "and no maximum of latency. Delivered latencies and waits are those of delivered requests alone. Every "
    "attempt is paid for, whatever came of it; what failed requests cost is part of the cost of a "
    "delivered one."
)
PERCENTILE_WORDS = (
    "Percentiles are nearest-rank: always a latency that a request had. One is shown only where at least 10 "
    "observations lie beyond it.",
    "Percentiles without the word pooled, the maximum too, are means over replications of each replication's "
    "own figure. Pooled ones are taken once, of all replications' latencies put together. With one "
    "replication both are the same, and only one is shown.",
    "Latency runs from arrival to completion of a request, queueing and join included. Waiting is that of a "
    "single call, from ready to start. Utilisation, throughput and active requests are those of the time "
    "from the end of the warm-up to the last arrival; all else leaves out the warm-up, by arrival.",
)


def latency(comparison: Comparison, names: Sequence[str]) -> Section:
    """Return a table and the distributions of each scenario; `names` begin the files of its figures."""
    pairs = zip(comparison.results, names, strict=True)
    distributions = [latency_distribution(result, name) for result, name in pairs if has_latencies(result)]
    tables = [figures_table(result) for result in comparison.results]
    tables += [workloads_table(result) for result in comparison.results if result.plans[0].workloads]
    some_fail = not all(all_delivered(result) for result in comparison.results)
    words = Bullets((*PERCENTILE_WORDS, *[DELIVERED_WORDS] * some_fail))
    # Words fill the place beside a drawing where the tables are too wide for it.
    wide = any(table.is_wide for table in tables)
    ending: tuple[Block, ...] = (words, *tables) if wide else (*tables, words)
    return Section("latency", "Latency", (*distributions, *ending))


def has_latencies(result: Result) -> bool:
    """Return whether any request was delivered after warm-up, under any plan."""
    return any(len(latency_ns) for plan in result.plans for latency_ns in plan.latency_ns)


def all_delivered(result: Result) -> bool:
    """Return whether every request succeeded, under every plan."""
    return all(plan.estimates[named.SUCCEEDED_SHARE].mean == 1 for plan in result.plans)


def rows_of(result: Result) -> tuple[str, ...]:
    """Return the figures to show: of attempts and outcomes only where calls may fail or be made again."""
    several = any(
        plan.estimates[name].mean != FIGURES[name].usual
        for plan in result.plans
        for name in ATTEMPTS
        if name in plan.estimates
    )
    some_lost = any(plan.estimates[named.MAX_LATENCY].undelivered for plan in result.plans)
    shown = [name for name in ROWS if some_lost or name not in levels_of(named.DELIVERED_LATENCY)]
    return (*shown, *(ATTEMPTS if several else ()), *(() if all_delivered(result) else named.OUTCOME_SHARES))


def figures_table(result: Result) -> Table:
    """Return every figure on a row, plan by plan."""
    rows = []
    for name in rows_of(result):
        rows.append(figure_row(FIGURES[name].title, name, result.plans))
        if name == named.MAX_LATENCY and result.replications > 1:
            rows += [pooled_row(level, result.plans) for level in result.plans[0].pooled_ms]
    for name in shares_within(result.plans[0].estimates):
        rows.append(figure_row(f"Answered {figure_of(name).heading}", name, result.plans))
    return Table(
        f"Figures: {result.scenario.name}",
        "l" + "r" * len(result.plans),
        (Cell("Figure"), *(plan_cell(plan, plan.label) for plan in result.plans)),
        tuple(rows),
    )


def figure_row(words: str, name: str, plans: Sequence[PlanResult]) -> tuple[Cell, ...]:
    """Return one figure of every plan."""
    kind = figure_of(name).kind
    return (Cell(words), *(estimate_cell(plan.estimates[name], kind) for plan in plans))


def pooled_row(name: str, plans: Sequence[PlanResult]) -> tuple[Cell, ...]:
    """Return a percentile of all replications together."""
    values, figure = [plan.pooled_ms[name] for plan in plans], FIGURES[name]
    cells = [missing(value.reason) if isinstance(value, Missing) else Cell(ms(value)) for value in values]
    return (Cell(f"{figure.heading.capitalize()} pooled, {figure.unit}"), *cells)


def workloads_table(result: Result) -> Table:
    """Return every workload on a row per plan."""
    rows = [
        workload_row(result, plan, plan.workloads[index])
        for index in range(len(result.plans[0].workloads))
        for plan in result.plans
    ]
    more = ("Delivered", "Within its bounds", FIGURES[named.COST_PER_SUCCESS].title, "Decision")
    headings = ("Workload", "Plan", *columns(WORKLOAD_TIMES), *more)
    return table_of(f"Workloads: {result.scenario.name}", "llrrrrrrrrrrl", headings, rows)


def workload_row(result: Result, plan: PlanResult, part: WorkloadResult) -> tuple[Cell, ...]:
    """Return what one plan did for one workload; its decision stands beside the first plan."""
    figures, measured = part.estimates, result.decision.by_workload.get(part.name)
    decided = measured is not None and plan is result.plans[0]
    return (
        Cell(part.name),
        plan_cell(plan, plan.label),
        *figure_cells(figures, WORKLOAD_TIMES),
        delivered_cell(figures),
        bounds_cell(figures),
        estimate_cell(figures[named.COST_PER_SUCCESS], "count"),
        decision_cell(measured.decision) if measured is not None and decided else Cell(""),
    )


def bounds_cell(figures: Mapping[str, Estimate]) -> Cell:
    """Return the share of a workload's requests within each latency that its SLO names."""
    shares = {bound_within(name): estimate_cell(figures[name], "share") for name in shares_within(figures)}
    return Cell("; ".join(f"{share.text} in {bound} ms" for bound, share in shares.items()))
