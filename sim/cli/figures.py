"""Figures as text, and what they are called in tables."""

import math
from collections.abc import Iterable, Sequence

from sim.contract.plan import PARALLEL, PLANS
from sim.result.plan_result import PlanResult
from sim.statistics.interval import Difference, Estimate
from sim.units import round_half_away

BLANK = "-"
OVERLOADED = "overloaded"
MOST_DECIMALS = 6
ORDER = {name: place for place, name in enumerate(sorted(PLANS, key=lambda name: name != PARALLEL))}
"""Plans in tables: the question, what it is held against, the mixture of both, and the lead for a cache."""

TIME, SHARE, NUMBER = "time", "share", "number"
FIGURES = {
    "latency_ms_mean": ("latency mean, ms", TIME),
    "latency_ms_p50": ("latency p50, ms", TIME),
    "latency_ms_p90": ("latency p90, ms", TIME),
    "latency_ms_p95": ("latency p95, ms", TIME),
    "latency_ms_p99": ("latency p99, ms", TIME),
    "latency_ms_max": ("latency max, ms", TIME),
    "waiting_ms_mean": ("waiting of a call, mean, ms", TIME),
    "waiting_ms_p95": ("waiting of a call, p95, ms", TIME),
    "waiting_ms_max": ("waiting of a call, max, ms", TIME),
    "utilisation": ("utilisation, %", SHARE),
    "throughput_per_s": ("throughput, requests/s", TIME),
    "active_requests_mean": ("active requests, mean", TIME),
    "parallel_share": ("requests run in parallel, %", SHARE),
    "cost_micros_per_request": ("cost per request, micros", NUMBER),
}
SPECIAL_FIGURES = {
    "cost_micros_per_success": ("cost per success, micros", NUMBER),
    "succeeded_share": ("succeeded, %", SHARE),
    "degraded_share": ("degraded, %", SHARE),
    "failed_share": ("failed, %", SHARE),
    "timed_out_share": ("timed out, %", SHARE),
    "attempts_per_call": ("attempts of a call", TIME),
    "rejected_share": ("attempts rejected, %", SHARE),
    "prefix_reuse_ratio": ("prefix reuse, %", SHARE),
    "follow_up_ms_mean": ("follow-up turnaround, mean, ms", TIME),
    "follow_up_backlog_at_half": ("follow-up backlog at half time", NUMBER),
    "follow_up_backlog_at_end": ("follow-up backlog at the end", NUMBER),
}
"""Figures that are shown only where they say something."""
USUAL = {"succeeded_share": 1.0, "attempts_per_call": 1.0}
"""What a special figure is where nothing special happens; 0 for the others."""


def shown_figures(plans: Sequence[PlanResult]) -> dict[str, tuple[str, str]]:
    """Return the figures to show of plans, with their words and kinds."""
    estimates = [plan.estimates for plan in plans]
    special = {name: figure for name, figure in SPECIAL_FIGURES.items() if _tells(name, estimates)}
    attained = [name for name in estimates[0] if name.startswith("share_within_")]
    return FIGURES | special | {name: (attainment_words(name), SHARE) for name in attained}


def _tells(name: str, estimates: Sequence[dict[str, Estimate]]) -> bool:
    means = [each[name].mean for each in estimates if name in each]
    if name == "cost_micros_per_success":
        return means != [each["cost_micros_per_request"].mean for each in estimates]
    return any(mean != USUAL.get(name, 0) for mean in means)


def attainment_words(name: str) -> str:
    """Return `within 400 ms, %` for `share_within_400_ms`."""
    return f"{name.removeprefix('share_').removesuffix('_ms').replace('_', ' ')} ms, %"


def number(value: float, decimals: int | None = None) -> str:
    """Return a number as text, with more decimals where it is small."""
    if math.isnan(value):
        return BLANK
    places = decimals_of(value) if decimals is None else decimals
    return f"{round_half_away(value, places):,.{places}f}"


def decimals_of(value: float) -> int:
    """Return how many decimals a number is shown with."""
    size = abs(value)
    return 1 if size >= 10 or size == 0 else 2 if size >= 1 else 3


def whole(value: float) -> str:
    """Return a number with no decimals where it has none."""
    return f"{value:,.0f}" if value == int(value) else number(value)


def estimate(figure: Estimate | Difference, kind: str = TIME) -> str:
    """Return a mean with the half-width of its interval, unless that is 0; a blank where it is missing."""
    if math.isnan(figure.mean):
        return BLANK
    scale = 100 if kind == SHARE else 1
    mean, half_width = scale * figure.mean, scale * (figure.half_width or 0)
    if not half_width:
        return whole(mean) if kind == NUMBER else number(mean)
    decimals = decimals_of(mean)
    while half_width < 0.5 * 10**-decimals and decimals < MOST_DECIMALS:
        decimals += 1
    return f"{number(mean, decimals)} ± {number(half_width, decimals)}"


def in_order(plans: Iterable[PlanResult]) -> list[PlanResult]:
    """Return plans as tables show them."""
    return sorted(plans, key=lambda plan: ORDER[plan.plan.plan])


def heading(plan: PlanResult) -> str:
    """Return a plan's label, with a word where its figures are no steady state."""
    return f"{plan.label} ({OVERLOADED})" if plan.stability.label == OVERLOADED else plan.label
