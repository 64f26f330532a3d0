"""Latency, waiting and throughput of every plan in full."""

from collections.abc import Callable, Mapping, Sequence

from sim.comparison import Comparison
from sim.interval import Estimate
from sim.percentile import Missing
from sim.plan_result import PlanResult, WorkloadResult
from sim.report.content import Block, Bullets, Cell, Section, Table
from sim.report.figures.latency import latency_distribution
from sim.report.shown import missing, ms, ms_estimate, number_estimate, percent_estimate
from sim.report.words import decision_cell, delivered_cell, plan_cell
from sim.result import Result

ATTAINED = "share_within_"
LEVELS = ("p50", "p90", "p95", "p99", "p99_9")
Show = Callable[[Estimate], Cell]


def level_words(level: str) -> str:
    """Return `p99.9` for `p99_9`."""
    return level.replace("_", ".")


def times(name: str, words: str) -> tuple[tuple[str, str, Show], ...]:
    """Return the rows of one kind of time."""
    kinds = ("mean", *LEVELS, "max")
    return tuple((f"{name}_{kind}", f"{words}, {level_words(kind)}, ms", ms_estimate) for kind in kinds)


ROWS: tuple[tuple[str, str, Show], ...] = (
    *times("latency_ms", "Latency"),
    *times("waiting_ms", "Waiting per call"),
    ("utilisation", "Utilisation", percent_estimate),
    ("throughput_per_s", "Throughput, requests per s", number_estimate),
    ("active_requests_mean", "Active requests, mean", number_estimate),
    ("parallel_share", "Requests run in parallel", percent_estimate),
    ("cost_micros_per_request", "Cost per request, micros", number_estimate),
    ("cost_micros_per_success", "Cost per delivered request, micros", number_estimate),
    ("requests", "Requests counted", number_estimate),
)
ATTEMPTS: tuple[tuple[str, str, Show], ...] = (
    ("attempts_per_call", "Attempts per call", number_estimate),
    ("rejected_share", "Attempts turned away", percent_estimate),
)
USUAL = (("attempts_per_call", 1), ("rejected_share", 0))
OUTCOMES: tuple[tuple[str, str, Show], ...] = (
    ("succeeded_share", "Succeeded", percent_estimate),
    ("degraded_share", "Degraded", percent_estimate),
    ("failed_share", "Failed", percent_estimate),
    ("timed_out_share", "Timed out", percent_estimate),
)

DELIVERED_WORDS = (
    "Latencies and waits are those of delivered requests. Every attempt is paid for, whatever came of it; "
    "what failed requests cost is part of the cost of a delivered one."
)
PERCENTILE_WORDS = (
    "Percentiles are nearest-rank: always a latency that a request had. One is shown only where at least 10 "
    "observations lie beyond it.",
    "Percentiles without the word pooled, the maximum too, are means over replications of each replication's "
    "own figure. Pooled ones are taken once, of all replications' latencies put together. With one "
    "replication both are the same, and only one is shown.",
    "Latency runs from arrival to completion of a request, queueing and join included. Waiting is that of a "
    "single call, from ready to start. Utilisation, throughput and active requests are those of the whole "
    "run, to its last completion; all else leaves out the warm-up, by arrival.",
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
    return all(plan.estimates["succeeded_share"].mean == 1 for plan in result.plans)


def rows_of(result: Result) -> tuple[tuple[str, str, Show], ...]:
    """Return the figures to show: of attempts and outcomes only where calls may fail or be made again."""
    several = any(
        plan.estimates[name].mean != usual
        for plan in result.plans
        for name, usual in USUAL
        if name in plan.estimates
    )
    return (*ROWS, *(ATTEMPTS if several else ()), *(() if all_delivered(result) else OUTCOMES))


def figures_table(result: Result) -> Table:
    """Return every figure on a row, plan by plan."""
    rows = []
    for name, words, show in rows_of(result):
        rows.append((Cell(words), *(show(plan.estimates[name]) for plan in result.plans)))
        if name == "latency_ms_max" and result.replications > 1:
            rows += [pooled_row(level, result.plans) for level in LEVELS]
    rows += attainment_rows(result)
    return Table(
        f"Figures: {result.scenario.name}",
        "l" + "r" * len(result.plans),
        (Cell("Figure"), *(plan_cell(plan, plan.label) for plan in result.plans)),
        tuple(rows),
    )


def pooled_row(level: str, plans: Sequence[PlanResult]) -> tuple[Cell, ...]:
    """Return a percentile of all replications together."""
    values = [plan.pooled_ms[f"latency_ms_{level}"] for plan in plans]
    cells = [missing(value.reason) if isinstance(value, Missing) else Cell(ms(value)) for value in values]
    return (Cell(f"Latency, {level_words(level)} pooled, ms"), *cells)


def attainment_rows(result: Result) -> list[tuple[Cell, ...]]:
    """Return the share of requests within each latency that the SLO names."""
    names = [name for name in result.plans[0].estimates if name.startswith(ATTAINED)]
    return [
        (
            Cell(f"Answered within {bound_of(name)} ms"),
            *(percent_estimate(plan.estimates[name]) for plan in result.plans),
        )
        for name in names
    ]


def bound_of(name: str) -> str:
    """Return `400` for `share_within_400_ms`."""
    return name.removeprefix(ATTAINED).removesuffix("_ms")


WORKLOAD_HEADINGS = (
    "Workload",
    "Plan",
    "Requests",
    "Mean latency, ms",
    "p95, ms",
    "Latency, max, ms",
    "Mean wait, ms",
    "Longest wait, ms",
    "Slot-time of all",
    "Delivered",
    "Within its bounds",
    "Cost per delivered request, micros",
    "Decision",
)


def workloads_table(result: Result) -> Table:
    """Return every workload on a row per plan."""
    rows = [
        workload_row(result, plan, plan.workloads[index])
        for index in range(len(result.plans[0].workloads))
        for plan in result.plans
    ]
    return Table(
        f"Workloads: {result.scenario.name}",
        "llrrrrrrrrrrl",
        tuple(Cell(text) for text in WORKLOAD_HEADINGS),
        tuple(rows),
    )


def workload_row(result: Result, plan: PlanResult, part: WorkloadResult) -> tuple[Cell, ...]:
    """Return what one plan did for one workload; its decision stands beside the first plan."""
    figures, measured = part.estimates, result.decision.by_workload.get(part.name)
    decided = measured is not None and plan is result.plans[0]
    return (
        Cell(part.name),
        plan_cell(plan, plan.label),
        number_estimate(figures["requests"]),
        ms_estimate(figures["latency_ms_mean"]),
        ms_estimate(figures["latency_ms_p95"]),
        ms_estimate(figures["latency_ms_max"]),
        ms_estimate(figures["waiting_ms_mean"]),
        ms_estimate(figures["waiting_ms_max"]),
        percent_estimate(figures["slot_share"]),
        delivered_cell(figures),
        bounds_cell(figures),
        number_estimate(figures["cost_micros_per_success"]),
        decision_cell(measured.decision) if measured is not None and decided else Cell(""),
    )


def bounds_cell(figures: Mapping[str, Estimate]) -> Cell:
    """Return the share of a workload's requests within each latency that its SLO names."""
    shares = {name: figure for name, figure in figures.items() if name.startswith(ATTAINED)}
    return Cell(
        "; ".join(f"{percent_estimate(one).text} in {bound_of(name)} ms" for name, one in shares.items())
    )
