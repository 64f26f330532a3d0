"""Hypothesis strategies that several test files share."""

from hypothesis import strategies as st

from sim.plan import Branch, ParallelPlan

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
