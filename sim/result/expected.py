"""What first principles and queueing theory say of a plan, to stand beside what was simulated."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim.contract.figure import MEAN_LATENCY, MEAN_WAIT
from sim.contract.plan import FIXED_PLANS, PARALLEL, SERIAL
from sim.result.demand import Way, request_in
from sim.scenario import Scenario
from sim.scenario.distribution import Exponential
from sim.scenario.load import OpenLoad
from sim.scenario.model import PlanChoice
from sim.statistics.bounds import latency_bound_of_active
from sim.statistics.theory import allen_cunneen_wait, mmc_wait

Kind = Literal["at least", "exactly", "about"]


@dataclass(frozen=True, slots=True)
class Expected:
    """One figure by theory: a bound from below, an exact mean, or an approximation."""

    figure: str
    kind: Kind
    value: float
    why: str


def alone_ms(scenario: Scenario, plan: PlanChoice) -> float:
    """Return the least mean latency of a request that never waits for others: its times at their means.

    The mean of the longest branch is no less than the longest mean, and all work takes its time on the slots
    that the request may hold. An adaptive request may be either kind.
    """
    unloaded_ms = {
        name: request_in(scenario, Way(name == PARALLEL, max_degree=plan.max_degree)).unloaded_ms
        for name in FIXED_PLANS
    }
    return unloaded_ms.get(plan.plan, min(unloaded_ms.values()))


def expected(
    scenario: Scenario, plan: PlanChoice, active_mean: float, work_ms: float
) -> tuple[Expected, ...]:
    """Return what theory says of a plan.

    Parameters
    ----------
    active_mean, work_ms
        The time-average of active requests, and the mean slot-time of a request, both as simulated; NaN
        where a replication had no request.
    """
    return (*bounds(scenario, plan, active_mean, work_ms), *waits(scenario, plan))


def bounds(scenario: Scenario, plan: PlanChoice, active_mean: float, work_ms: float) -> Iterator[Expected]:
    """Yield what no allocation can beat."""
    slots = scenario.provider.concurrency
    alone = alone_ms(scenario, plan)
    yield Expected(MEAN_LATENCY, "at least", alone, "critical path and join, without waiting")
    if not math.isnan(active_mean):
        shared_ms = latency_bound_of_active(active_mean, work_ms, slots)
        yield Expected(MEAN_LATENCY, "at least", shared_ms, "mean active requests x work / slots")


def waits(scenario: Scenario, plan: PlanChoice) -> Iterator[Expected]:
    """Yield the mean wait of a call under an open load: Erlang C where it holds, else Allen and Cunneen."""
    load, branches, slots = scenario.load, scenario.workflow.branches, scenario.provider.concurrency
    if not isinstance(load, OpenLoad) or scenario.workflow.join_holds_slot:
        return
    calls_per_ms = load.rate_per_s * len(branches) / 1000
    mean_ms = sum(scenario.branch_means_ms) / len(branches)
    if calls_per_ms * mean_ms >= slots:
        return
    if len(branches) == 1 and isinstance(branches[0].duration_ms, Exponential) and load.arrivals == "poisson":
        yield Expected(MEAN_WAIT, "exactly", mmc_wait(calls_per_ms, mean_ms, slots), "Erlang C")
        return
    if plan.plan == SERIAL or len(branches) == 1:
        arrival_cv = {"poisson": 1.0, "fixed": 0.0}.get(load.arrivals, load.cv or 1.0)
        wait_ms = allen_cunneen_wait(calls_per_ms, mean_ms, slots, arrival_cv, call_cv(scenario))
        yield Expected(MEAN_WAIT, "about", wait_ms, "Allen-Cunneen, calls as if independent")


def call_cv(scenario: Scenario) -> float:
    """Return the coefficient of variation of a call picked from any branch."""
    means_ms = np.array(scenario.branch_means_ms)
    cvs = np.array([branch.duration_ms.cv for branch in scenario.workflow.branches])
    second_moment = np.mean(means_ms**2 * (1 + cvs**2))
    return float(np.sqrt(second_moment / np.mean(means_ms) ** 2 - 1))
