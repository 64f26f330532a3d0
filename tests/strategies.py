"""Hypothesis strategies that several test files share."""

import numpy as np
from hypothesis import strategies as st

from sim.contract.allocation import ALLOCATIONS
from sim.contract.load import ClosedUsers, OpenArrivals
from sim.contract.plain import PlainInput
from sim.plan.parallel_plan import Branch, ParallelPlan
from sim.plan.schedule import serial_order

Problem = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], int]


@st.composite
def dependency_graphs(draw: st.DrawFn, branches: int) -> tuple[tuple[int, ...], ...]:
    """Return for each branch what it waits for: without cycles, and not only on branches before it."""
    order = draw(st.permutations(range(branches)))
    needed: list[tuple[int, ...]] = [()] * branches
    for place, branch in enumerate(order):
        if place:
            needed[branch] = tuple(draw(st.lists(st.sampled_from(order[:place]), unique=True, max_size=3)))
    return tuple(needed)


@st.composite
def scheduling_problems(draw: st.DrawFn, longest: int = 6, dependent: bool = True) -> Problem:
    """Return (service times, dependencies, slots); short times, so that many things happen at one instant."""
    service = draw(st.lists(st.integers(1, longest), min_size=1, max_size=8))
    count = len(service)
    dependencies = draw(dependency_graphs(count)) if dependent else ((),) * count
    return tuple(service), dependencies, draw(st.integers(1, count + 2))


@st.composite
def parallel_plans(draw: st.DrawFn) -> ParallelPlan:
    """Return any plan of up to 6 branches, with costs, context, dependencies and often a baseline."""
    durations = draw(st.lists(st.integers(1, 500), min_size=1, max_size=6))
    dependencies = draw(dependency_graphs(len(durations)))
    branches = [
        Branch(
            f"b{index}",
            duration,
            cost_micros=draw(st.integers(0, 2_000)),
            carries_shared_context=draw(st.booleans()),
            depends_on=[f"b{needed}" for needed in dependencies[index]],
        )
        for index, duration in enumerate(durations)
    ]
    ratios = st.decimals(0, 1, places=2)
    return ParallelPlan(
        branches,
        concurrency=draw(st.integers(1, 8)),
        join_overhead_ms=draw(st.sampled_from([0, 0.5, 35])),
        shared_context_tokens=draw(st.integers(0, 5_000)),
        input_micros_per_ktok=draw(st.integers(0, 500)),
        prefix_reuse_ratio=draw(ratios),
        cached_input_price_ratio=draw(ratios),
        baseline_ms=draw(st.none() | st.integers(1, 3_000)),
        baseline_cost_micros=draw(st.none() | st.integers(1, 5_000)),
    )


@st.composite
def closed_users(draw: st.DrawFn, requests: int, tick_ns: int) -> ClosedUsers:
    """Return users who think for a few ticks or not at all, and whose number goes up and down."""
    users = draw(st.lists(st.integers(0, 6), min_size=1, max_size=5))
    gaps = draw(st.lists(st.integers(1, 6), min_size=len(users), max_size=len(users)))
    at_ns = [sum(gaps[:step]) * tick_ns for step in range(len(users) + 1)]
    ends = draw(st.none() | st.integers(0, 9))
    thinks = draw(st.lists(st.sampled_from([0, 0, 1, 4, 9]), min_size=requests, max_size=requests))
    return ClosedUsers(
        steps=tuple(zip(at_ns[:-1], [users[0] or 1, *users[1:]], strict=True)),
        think_ns=np.array(thinks, dtype=np.int64) * tick_ns,
        end_ns=None if ends is None else at_ns[-1] + ends * tick_ns,
    )


@st.composite
def open_arrivals(draw: st.DrawFn, requests: int, tick_ns: int) -> OpenArrivals:
    """Return arrivals on a grid of ticks, many of them together."""
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 2]), min_size=requests, max_size=requests))
    return OpenArrivals(np.cumsum(np.array(gaps, dtype=np.int64)) * tick_ns)


@st.composite
def engine_inputs(draw: st.DrawFn) -> PlainInput:
    """Return any run of up to 30 requests: short times on a grid of ticks, so that much happens at once."""
    requests, branches = draw(st.integers(0, 30)), draw(st.integers(1, 4))
    tick_ns = draw(st.sampled_from([1, 3, 10**9, 10**12]))
    graph = draw(dependency_graphs(branches)) if draw(st.booleans()) else ((),) * branches
    order = serial_order(graph)
    holds_slot = draw(st.booleans())
    if holds_slot:  # such a join is one more call, and nothing comes after it
        graph = (*graph, tuple(range(branches)))
    slots = draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 60, 5_000]))
    plans = st.sampled_from([[True], [False], [True, False], [False, True, True]])
    chosen = draw(plans)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    longest = draw(st.integers(1, 5))
    return PlainInput(
        slots=slots,
        allocation=draw(st.sampled_from(tuple(ALLOCATIONS.values()))),
        service_ns=rng.integers(1, longest, (requests, len(graph)), endpoint=True) * tick_ns,
        join_ns=rng.choice([0] if holds_slot else [0, 0, 1, 2, 3], requests) * tick_ns,
        dependencies=graph,
        serial_order=order,
        runs_parallel_at=np.resize(np.array(chosen), slots + 1),
        load=draw(closed_users(requests, tick_ns) | open_arrivals(requests, tick_ns)),
        max_degree=draw(st.none() | st.integers(1, 3)),
    )
