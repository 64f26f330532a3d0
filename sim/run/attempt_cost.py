"""What every attempt costs: its call, its copy of the shared context, at the price of the hour."""

import math

import numpy as np

from sim.contract.output import NO_SLOT, RATE_LIMITED, RunOutput
from sim.plan.cost import shared_context_cost_micros
from sim.plan.schedule import serial_order
from sim.scenario import Scenario
from sim.units import NS_PER_S, FloatArray, IntArray, Number, exact

HOUR_NS = 3600 * NS_PER_S
DAY_HOURS = 24


def request_costs_micros(part: Scenario, out: RunOutput, index: int) -> FloatArray:
    """Return what each request of a workload costs, float64[requests of the run], 0 for other workloads'.

    Every attempt that held a slot is paid for, whatever came of it, except one that the provider turned away.
    A serial request carries the context along from call to call and pays for one copy of it, and for another
    with each further attempt; where the provider has a cache, every call is charged for what it reads or
    writes.
    """
    attempts = out.attempts
    paid = np.flatnonzero(
        (out.workload[attempts.number] == index)
        & (attempts.slot != NO_SLOT)
        & (attempts.outcome != RATE_LIMITED)
        & (attempts.call < len(part.workflow.branches))
    )
    number, call = attempts.number[paid], attempts.call[paid]
    own = np.array([branch.cost_micros for branch in part.workflow.branches], dtype=np.float64)[call]
    copies = copy_costs_micros(part, out, paid)
    ratio = price_ratios(part, call, attempts.start_ns[paid])
    costs_micros: FloatArray = np.zeros(len(out.arrival_ns))
    np.add.at(costs_micros, number, (own + copies) * ratio)
    return costs_micros


def copy_costs_micros(part: Scenario, out: RunOutput, paid: IntArray) -> FloatArray:
    """Return what each paid attempt is charged for the shared context (float64)."""
    attempts, branches = out.attempts, part.workflow.branches
    call, hit = attempts.call[paid], attempts.hit[paid]
    carries = np.array([branch.carries_shared_context for branch in branches])[call]
    fixed = float(shared_context_cost_micros(part.parallel_plan(1)))
    costs = np.where(carries, fixed, 0.0)
    order = serial_order(part.parallel_plan(1).dependencies)
    first = next((branch for branch in order if branches[branch].carries_shared_context), -1)
    carried_along = ~out.ran_parallel[attempts.number[paid]] & (attempts.attempt[paid] == 0) & (call != first)
    costs[carried_along & (hit < 0)] = 0.0
    for index, branch in enumerate(branches):
        cache = part.provider_of(branch).prefix_cache
        if cache is None:
            continue
        of_branch = call == index
        costs[of_branch & (hit == 0)] = charged_micros(part, cache.write_price_ratio)
        costs[of_branch & (hit == 1)] = charged_micros(part, cache.read_price_ratio)
        if branch.carries_shared_context:
            costs[of_branch & (hit < 0)] = charged_micros(part, 1)
    return costs


def charged_micros(part: Scenario, price_ratio: Number) -> int:
    """Return the price of one copy at a share of the full price: whole tokens, whole micros, rounded up."""
    context = part.workflow.shared_context
    tokens = math.ceil(context.tokens * exact(price_ratio))
    return math.ceil(exact(tokens) * context.input_micros_per_ktok / 1000)


def price_ratios(part: Scenario, call: IntArray, start_ns: IntArray) -> FloatArray:
    """Return the share of the full price at which each attempt is charged, by the hour at which it starts."""
    hour = (part.experiment.start_hour + start_ns / HOUR_NS) % DAY_HOURS
    ratios = np.ones(len(call))
    for index, branch in enumerate(part.workflow.branches):
        for window in part.provider_of(branch).prices:
            inside = (hour >= window.from_hour) & (hour < window.to_hour)
            if window.from_hour > window.to_hour:
                inside = (hour >= window.from_hour) | (hour < window.to_hour)
            ratios[(call == index) & inside] = window.ratio
    return ratios
