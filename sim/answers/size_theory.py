"""What bounds and queueing theory say of an SLO before anything is simulated, and beside what was."""

import math

from sim.contract.figure import MAX_LATENCY, MEAN_LATENCY, MEAN_WAIT, THROUGHPUT
from sim.result.capacity import capacity_of
from sim.result.expected import alone_ms, waits
from sim.result.label import is_finite, overload_of
from sim.result.plan_result import PlanResult
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, OpenLoad
from sim.scenario.model import PlanChoice
from sim.scenario.slo import SloRule
from sim.statistics.bounds import (
    closed_latency_bound,
    closed_throughput_bound,
    open_latency_bound,
    open_throughput_bound,
)

FROM_BELOW = (MEAN_LATENCY, MAX_LATENCY)
"""Figures for which a bound of the mean latency is one too."""


def bound_of(rule: SloRule, plan: PlanResult) -> tuple[str, float] | None:
    """Return what theory says of a rule's figure as simulated: (`exactly`, `at least` or `about`, value)."""
    if rule.scope is not None:
        return None
    metric = MEAN_LATENCY if rule.metric in FROM_BELOW else rule.metric
    items = [item for item in plan.expected if item.figure == metric]
    for kind in ("exactly", "at least", "about"):
        values = [item.value for item in items if item.kind == kind]
        if values:
            return kind, max(values)
    return None


def ruled_out(scenario: Scenario, choice: PlanChoice, rule: SloRule) -> bool:
    """Return whether a steady state of a plain run cannot keep a rule, by bounds or by Erlang C."""
    if not is_finite(scenario) and any(map(overload_of, capacity_of(scenario, choice).stretches)):
        return True
    if not scenario.is_plain or rule.scope is not None:
        return False
    if rule.metric in FROM_BELOW and rule.at_most:
        return not rule.holds(latency_bound_ms(scenario, choice))
    if rule.metric == THROUGHPUT and not rule.at_most:
        return not rule.holds(1000 * throughput_bound_per_ms(scenario, choice))
    if rule.metric == MEAN_WAIT and rule.at_most:
        return any(not rule.holds(item.value) for item in waits(scenario, choice) if item.kind == "exactly")
    return False


def latency_bound_ms(scenario: Scenario, choice: PlanChoice) -> float:
    """Return the least mean latency that the load allows."""
    alone, load = alone_ms(scenario, choice), scenario.load
    if isinstance(load, ClosedLoad):
        users, think_ms = load.active_requests, load.think_time_ms.mean
        return closed_latency_bound(users, think_ms, alone, work_ms(scenario), slots(scenario))
    return open_latency_bound(alone, work_ms(scenario), slots(scenario))


def throughput_bound_per_ms(scenario: Scenario, choice: PlanChoice) -> float:
    """Return the most requests per ms that the load and the slots allow."""
    load, work = scenario.load, work_ms(scenario)
    if isinstance(load, ClosedLoad):
        alone = alone_ms(scenario, choice)
        users, think_ms = load.active_requests, load.think_time_ms.mean
        return closed_throughput_bound(users, think_ms, alone, work, slots(scenario))
    if isinstance(load, OpenLoad):
        return open_throughput_bound(arrivals_per_ms(scenario), work, slots(scenario))
    return math.inf


def arrivals_per_ms(scenario: Scenario) -> float:
    """Return the arrival rate of an open load."""
    assert isinstance(scenario.load, OpenLoad)
    return scenario.load.rate_per_s / 1000


def work_ms(scenario: Scenario) -> float:
    """Return the mean slot-time of a request's branches."""
    return sum(scenario.branch_means_ms)


def slots(scenario: Scenario) -> int:
    """Return the slots of the only provider."""
    return scenario.provider.concurrency
