"""Scenarios, loads, plans and decisions in words."""

import math
import re
from collections.abc import Mapping, Sequence

from sim.answers.flip import PlanFigure
from sim.contract.allocation import allocation_named
from sim.contract.figure import FAILED_SHARE, SUCCEEDED_SHARE, TIMED_OUT_SHARE
from sim.plan.criteria import KEEP_SERIAL, MERGE
from sim.report.content import Cell, Mark
from sim.report.shown import count, missing, percent
from sim.result.measured_decision import UNDECIDED
from sim.result.plan_result import PeriodResult, PlanResult
from sim.result.result import Result
from sim.run.measure import warmup_rule
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, OpenLoad, StepsLoad, TraceLoad
from sim.scenario.model import WarmupCut
from sim.scenario.provider import Provider
from sim.statistics.digits import trimmed
from sim.statistics.interval import FASTER, SLOWER, Estimate
from sim.statistics.stability import OVERLOADED

DECISIONS = {MERGE: "Merge", KEEP_SERIAL: "Keep serial", UNDECIDED: "Undecided", OVERLOADED: "Overloaded"}
DECISION_MARKS: dict[str, Mark] = {
    MERGE: "good",
    KEEP_SERIAL: "bad",
    UNDECIDED: "unsure",
    OVERLOADED: "overloaded",
}
ARRIVALS = {
    "poisson": "Poisson arrivals at",
    "fixed": "arrivals at a fixed interval,",
    "gamma": "gamma arrivals at",
}
PART_WORDS = {
    "service": "service",
    "slots_busy": "every slot taken",
    "own_cap": "own cap",
    "limits": "limit or kept slot",
    "lost_attempts": "failed attempts",
    "pauses": "pauses",
    "join": "join",
}
"""The parts of a latency where there is little room; `sim.run.breakdown.PARTS` has them in full."""
CHEAPER = {FASTER: "cheaper", SLOWER: "dearer"}
LEAST_PER_SECOND = 0.1
SECONDS_PER_HOUR = 3600
FINITE_RUN = "its figures are those of a finite run, not of a steady state"


def decision_cell(decision: str) -> Cell:
    """Return a decision, set off by its kind."""
    return Cell(DECISIONS[decision], DECISION_MARKS[decision])


def plan_cell(plan: PlanResult | PeriodResult, label: str) -> Cell:
    """Return a plan's label, saying so where it was overloaded; the warnings at the top say why."""
    if plan.stability.label != OVERLOADED:
        return Cell(label)
    return Cell(f"{label} ⚠ {OVERLOADED}", OVERLOADED)


def delivered_share(figures: Mapping[str, Estimate]) -> float:
    """Return the share of requests that were answered with a join, of all branches or of some."""
    return 1 - figures[FAILED_SHARE].mean - figures[TIMED_OUT_SHARE].mean


def delivered_cell(figures: Mapping[str, Estimate]) -> Cell:
    """Return the share of delivered requests; blank where there was none at all."""
    share = delivered_share(figures)
    return missing(figures[SUCCEEDED_SHARE].reason) if math.isnan(share) else Cell(percent(share))


def plan_name(plan: PlanResult) -> str:
    """Return a plan's label as figures show it."""
    return f"{plan.label} ({OVERLOADED})" if plan.stability.label == OVERLOADED else plan.label


def level_cell(figure: PlanFigure, text: str) -> Cell:
    """Return the figure of one level of load, saying so where it was overloaded."""
    if figure.stability != OVERLOADED:
        return Cell(text)
    return Cell(f"{text} ⚠", OVERLOADED, f"{OVERLOADED}: {FINITE_RUN}")


def setting_words(scenario: Scenario) -> str:
    """Return the load and the providers in one line."""
    parts = scenario.parts
    several = len(parts) > 1
    loads = [f"{part.part_name}: {load_words(part)}" if several else load_words(part) for part in parts]
    providers = [
        provider_words(provider, f"{name}: " if len(scenario.providers) > 1 else "")
        for name, provider in scenario.providers.items()
    ]
    return "; ".join([*loads, *providers])


def provider_words(provider: Provider, name: str) -> str:
    """Return a provider in a few words: its slots, who gets them, and what else it has rules for."""
    slots = [provider.concurrency, *(step.concurrency for step in provider.concurrency_steps)]
    rules = {
        "rate limits": provider.limits,
        "a prefix cache": provider.prefix_cache,
        "prices by the hour": provider.prices,
    }
    words = [allocation_named(provider.allocation).words, *(text for text, rule in rules.items() if rule)]
    return f"{name}{joined(slots)} slots, {', '.join(words)}"


def load_words(scenario: Scenario) -> str:
    """Return the load in a few words."""
    load = scenario.load
    if isinstance(load, ClosedLoad):
        return f"{load.active_requests:,} active requests, closed load"
    if isinstance(load, OpenLoad):
        return f"{ARRIVALS[load.arrivals]} {rate_words(load.rate_per_s)}"
    if isinstance(load, TraceLoad):
        return f"trace of {len(scenario.trace.arrival_ns):,} requests"
    if isinstance(load, StepsLoad):
        return steps_words(load)
    return f"Poisson arrivals along a profile of {count(load.end_s - load.first_s)} s"


def rate_words(rate_per_s: float) -> str:
    """Return a rate with its unit: per second, or per hour where that would read as next to nothing."""
    if rate_per_s >= LEAST_PER_SECOND:
        return f"{trimmed(rate_per_s)} per second"
    return f"{trimmed(rate_per_s * SECONDS_PER_HOUR)} per hour"


def steps_words(load: StepsLoad) -> str:
    """Return the levels of a stepped load, one after another."""
    if load.is_closed:
        return f"{joined([step.active_requests or 0 for step in load.steps])} active requests"
    return f"Poisson arrivals at {joined([step.rate_per_s or 0 for step in load.steps])} per second"


def joined(levels: Sequence[float]) -> str:
    """Return levels with arrows between them."""
    return " → ".join(trimmed(level) for level in levels)


def warmup_words(result: Result) -> str:
    """Return how the start of the runs was treated."""
    warmup = warmup_rule(result.scenario)
    stated = "" if result.scenario.experiment.warmup is not None else ", the default for this load"
    if warmup == "none":
        return f"none left out{stated}"
    if isinstance(warmup, WarmupCut):
        cut = (
            f"{warmup.count:,} requests"
            if warmup.time_s is None
            else f"arrivals before {trimmed(warmup.time_s)} s"
        )
        return f"{cut} left out"
    return f"left out by MSER-5{stated}"


def attempts_words(result: Result) -> str:
    """Return what drawings of calls leave out where calls may take several attempts; empty where none do."""
    several = any(plan.first_run.out.attempts.attempt.any() for plan in result.plans)
    return " Of a call with several attempts the one that counted is drawn." if several else ""


def slug(text: str) -> str:
    """Return a name as part of a file name or an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "scenario"
