"""What every attempt costs: its call, its copy of the shared context, at the price of the hour."""

import math

import numpy as np

from sim.contract.output import NO_SLOT, RATE_LIMITED, RunOutput
from sim.plan.cost import shared_context_cost_micros
from sim.plan.schedule import serial_order
from sim.scenario import Scenario
from sim.units import NS_PER_S, FloatArray, IntArray, Number, exact, stretches

HOUR_NS = 3600 * NS_PER_S
DAY_HOURS = 24


def costs_micros(scenario: Scenario, out: RunOutput) -> FloatArray:
    """Return what each request of a run costs, float64[requests]."""
    first, *others = (workload_costs_micros(part, out, index) for index, part in enumerate(scenario.parts))
    return sum(others, first)


def workload_costs_micros(part: Scenario, out: RunOutput, index: int) -> FloatArray:
    """Return what each request of a workload costs, float64[requests of the run], 0 for other workloads'.

    Every attempt that held a slot is paid for, whatever came of it, except one that the provider turned away.
    A serial request carries the context along from call to call and pays for one copy of it, and for another
    with each further attempt; where the provider has a cache, every call is charged for what it reads or
    writes.
    """
    attempts, branches = out.attempts, part.workflow.branches
    own = np.array([branch.cost_micros for branch in branches], dtype=np.float64)
    copies = copy_costs_micros(part)
    costs_micros: FloatArray = np.zeros(out.requests)
    for rows in stretches(len(attempts.number)):
        paid = (attempts.slot[rows] != NO_SLOT) & (attempts.outcome[rows] != RATE_LIMITED)
        paid &= (out.workload[attempts.number[rows]] == index) & (attempts.call[rows] < len(branches))
        number, call, attempt, start_ns, hit = (
            column[rows][paid]
            for column in (attempts.number, attempts.call, attempts.attempt, attempts.start_ns, attempts.hit)
        )
        parallel, again = out.ran_parallel[number].view(np.int8), (attempt > 0).view(np.int8)
        micros = (own[call] + copies[parallel, again, call, hit + 1]) * price_ratios(part, call, start_ns)
        first = int(number.min(initial=out.requests))
        sums = np.bincount(number - first, weights=micros)
        costs_micros[first : first + len(sums)] += sums
    return costs_micros


def copy_costs_micros(part: Scenario) -> FloatArray:
    """Return what an attempt is charged for the shared context.

    float64[plan, again, call, hit + 1]: the plan is 1 for parallel; again is 1 for attempts after the first.
    """
    branches = part.workflow.branches
    carries = np.array([branch.carries_shared_context for branch in branches])
    fixed = float(shared_context_cost_micros(part.parallel_plan(1)))
    costs: FloatArray = np.zeros((2, 2, len(branches), 3))
    costs[:, :, carries] = fixed
    order = serial_order(part.parallel_plan(1).dependencies)
    first = next((branch for branch in order if carries[branch]), -1)
    carried_along = [branch for branch in order if branch != first]
    costs[0, 0, carried_along, 0] = 0.0
    for index, branch in enumerate(branches):
        cache = part.provider_of(branch).prefix_cache
        if cache is None:
            continue
        costs[:, :, index, 1] = charged_micros(part, cache.write_price_ratio)
        costs[:, :, index, 2] = charged_micros(part, cache.read_price_ratio)
        if branch.carries_shared_context:
            costs[:, :, index, 0] = charged_micros(part, 1)
    return costs


def charged_micros(part: Scenario, price_ratio: Number) -> int:
    """Return the price of one copy at a share of the full price: whole tokens, whole micros, rounded up."""
    context = part.workflow.shared_context
    tokens = math.ceil(context.tokens * exact(price_ratio))
    return math.ceil(exact(tokens) * context.input_micros_per_ktok / 1000)


def price_ratios(part: Scenario, call: IntArray, start_ns: IntArray) -> FloatArray:
    """Return the share of the full price at which each attempt is charged, by the hour at which it starts."""
    ratios = np.ones(len(call))
    if not any(provider.prices for provider in part.providers.values()):
        return ratios
    hour = (part.experiment.start_hour + start_ns / HOUR_NS) % DAY_HOURS
    for index, branch in enumerate(part.workflow.branches):
        for window in part.provider_of(branch).prices:
            inside = (hour >= window.from_hour) & (hour < window.to_hour)
            if window.from_hour > window.to_hour:
                inside = (hour >= window.from_hour) | (hour < window.to_hour)
            ratios[(call == index) & inside] = window.ratio
    return ratios
