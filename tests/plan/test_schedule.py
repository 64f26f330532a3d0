from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given

from sim.errors import PlanError
from sim.plan.parallel_plan import Branch
from sim.plan.schedule import (
    NsSchedule,
    Schedule,
    critical_path_ns,
    has_independent_branches,
    join_overhead_ms,
    list_schedule,
    schedule_branches,
    serial_order,
)
from tests.strategies import Problem, dependency_graphs, scheduling_problems


def schedule_tick_by_tick(problem: Problem) -> NsSchedule:
    """Return the schedule by looking at every instant in turn, as the rule is worded."""
    service, dependencies, slots = problem
    starts: dict[int, int] = {}
    finishes: dict[int, int] = {}
    taken: dict[int, int] = {}
    free_since = dict.fromkeys(range(slots), 0)
    now = 0
    while len(finishes) < len(service) or max(finishes.values()) > now:
        for branch in [branch for branch, finish in finishes.items() if finish == now]:
            free_since[taken[branch]] = now
        done = {branch for branch, finish in finishes.items() if finish <= now}
        queue = [
            (max([finishes[needed] for needed in dependencies[branch]], default=0), branch)
            for branch in range(len(service))
            if branch not in starts and done.issuperset(dependencies[branch])
        ]
        for _, branch in sorted(queue)[: len(free_since)]:
            slot = min(free_since, key=lambda slot: (free_since[slot], slot))
            del free_since[slot]
            starts[branch], finishes[branch], taken[branch] = now, now + service[branch], slot
        now += 1
    return NsSchedule(
        starts_ns=tuple(starts[branch] for branch in range(len(service))),
        finishes_ns=tuple(finishes[branch] for branch in range(len(service))),
        slot=tuple(taken[branch] for branch in range(len(service))),
        span_ns=max(finishes.values()),
    )


def test_a_branch_that_became_ready_later_waits_behind() -> None:
    schedule = list_schedule((3, 8, 9, 4), ((), (), (0,), ()), 2)
    assert schedule == NsSchedule((0, 0, 7, 3), (3, 8, 16, 7), (0, 1, 0, 0), 16)


def test_the_slot_taken_is_the_one_free_longest() -> None:
    # Slot 2 is free from 1 and slot 0 from 2, when branch 3 becomes ready at 3.
    schedule = list_schedule((2, 3, 1, 5), ((), (), (), (1,)), 3)
    assert schedule == NsSchedule((0, 0, 0, 3), (2, 3, 1, 8), (0, 1, 2, 2), 8)


def test_slots_freed_at_one_instant_are_taken_from_the_lowest() -> None:
    schedule = list_schedule((4, 4, 1, 1), ((), (), (0,), (1,)), 2)
    assert schedule == NsSchedule((0, 0, 4, 4), (4, 4, 5, 5), (0, 1, 0, 1), 5)


def test_with_dependencies_one_more_slot_can_be_slower() -> None:
    # Graham's anomaly: on four slots the short branches start early and the long one late.
    service = (3, 2, 2, 2, 4, 4, 4, 4, 9)
    dependencies = ((), (), (), (), (3,), (3,), (3,), (3,), (0,))
    assert [list_schedule(service, dependencies, slots).span_ns for slots in (3, 4)] == [12, 15]


@given(scheduling_problems())
def test_every_trace_equals_the_rule_played_tick_by_tick(problem: Problem) -> None:
    assert list_schedule(*problem) == schedule_tick_by_tick(problem)


@given(scheduling_problems(longest=1_000))
def test_no_slot_holds_two_branches_and_none_starts_before_it_is_ready(problem: Problem) -> None:
    service, dependencies, slots = problem
    schedule = list_schedule(*problem)
    for slot in range(slots):
        held = sorted(
            (schedule.starts_ns[branch], schedule.finishes_ns[branch])
            for branch in range(len(service))
            if schedule.slot[branch] == slot
        )
        assert all(finish <= start for (_, finish), (start, _) in pairwise(held))
    for branch, needed in enumerate(dependencies):
        assert schedule.finishes_ns[branch] - schedule.starts_ns[branch] == service[branch]
        assert all(schedule.finishes_ns[earlier] <= schedule.starts_ns[branch] for earlier in needed)
    assert schedule.span_ns == max(schedule.finishes_ns)


@given(scheduling_problems(longest=1_000))
def test_the_span_lies_within_grahams_bounds(problem: Problem) -> None:
    service, dependencies, slots = problem
    span, work = list_schedule(*problem).span_ns, sum(service)
    critical = critical_path_ns(service, dependencies)
    assert max(critical, -(-work // slots)) <= span
    assert span <= Fraction(work, slots) + (1 - Fraction(1, slots)) * critical


@given(scheduling_problems(longest=1_000, dependent=False))
def test_independent_branches_go_in_input_order_to_the_earliest_free_slot(problem: Problem) -> None:
    service, dependencies, slots = problem
    free_at = [0] * slots
    starts, taken = [], []
    for duration in service:
        slot = free_at.index(min(free_at))
        starts.append(free_at[slot])
        taken.append(slot)
        free_at[slot] += duration
    schedule = list_schedule(*problem)
    assert (schedule.starts_ns, schedule.slot) == (tuple(starts), tuple(taken))
    assert list_schedule(service, (), slots) == schedule
    assert critical_path_ns(service, dependencies) == max(service)


@given(scheduling_problems(longest=1_000))
def test_one_slot_and_a_chain_both_take_the_sum(problem: Problem) -> None:
    service, dependencies, slots = problem
    chain = tuple((branch - 1,) if branch else () for branch in range(len(service)))
    assert list_schedule(service, dependencies, 1).span_ns == sum(service)
    assert list_schedule(service, chain, slots).span_ns == critical_path_ns(service, chain) == sum(service)


@given(scheduling_problems())
def test_the_serial_order_takes_the_lowest_branch_that_may_run(problem: Problem) -> None:
    _, dependencies, _ = problem
    done: list[int] = []
    while len(done) < len(dependencies):
        done.append(
            min(
                branch
                for branch, needed in enumerate(dependencies)
                if branch not in done and set(needed) <= set(done)
            )
        )
    assert serial_order(dependencies) == tuple(done)


@given(dependency_graphs(5))
def test_branches_are_independent_where_neither_waits_for_the_other(
    dependencies: tuple[tuple[int, ...], ...],
) -> None:
    before: dict[int, set[int]] = {}
    for branch in serial_order(dependencies):
        before[branch] = set(dependencies[branch]).union(*(before[needed] for needed in dependencies[branch]))
    pairs = [(one, other) for one in range(5) for other in range(one)]
    independent = any(one not in before[other] and other not in before[one] for one, other in pairs)
    assert has_independent_branches(dependencies) == independent


@pytest.mark.parametrize(("slots", "make_span_ms"), [(1, 455), (2, 295), (3, 295)])
def test_the_sample_on_one_to_three_slots(slots: int, make_span_ms: int) -> None:
    schedule = schedule_branches([Branch("policy", 260), Branch("sensitive_words", 160)], slots, 35)
    assert (schedule.make_span_ms, schedule.ideal_ms) == (make_span_ms, 295)
    assert schedule.queue_delay_ms == make_span_ms - 295


def test_a_whole_schedule_in_milliseconds() -> None:
    branches = [Branch("a", 3), Branch("b", 8), Branch("c", 9, depends_on=["a"]), Branch("d", 4)]
    assert schedule_branches(branches, 2, 0.5) == Schedule(
        make_span_ms=16.5,
        starts=(0, 0, 7, 3),
        finishes=(3, 8, 16, 7),
        slot=(0, 1, 0, 0),
        queue_delay_ms=4,
        utilization=24 / 32,
        ideal_ms=12.5,
    )


def test_slots_beyond_the_branches_only_lower_the_utilization() -> None:
    few, many = (schedule_branches([Branch("a", 4), Branch("b", 2)], slots) for slots in (2, 10**9))
    assert (few.utilization, many.utilization) == (6 / 8, 6 / (4 * 10**9))
    assert (few.starts, few.slot, few.make_span_ms) == (many.starts, many.slot, many.make_span_ms)


def test_a_schedule_refuses_what_a_plan_refuses() -> None:
    with pytest.raises(PlanError, match=r"^concurrency must be >= 1 \(got 0\)$"):
        schedule_branches([Branch("a", 1)], 0)
    with pytest.raises(PlanError, match=r"^join_overhead_ms must be >= 0 \(got -1\)$"):
        schedule_branches([Branch("a", 1)], 1, -1)


@pytest.mark.parametrize(("branches", "join_ms"), [(1, 35.1), (2, 35.1), (3, 35.4), (4, 35.7), (12, 38.1)])
def test_the_join_grows_with_each_branch_beyond_the_second(branches: int, join_ms: float) -> None:
    assert join_overhead_ms(35.1, 0.3, branches) == join_ms
    assert join_overhead_ms(35.1, 0, branches) == 35.1


def test_a_shrinking_join_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^growth_ms_per_branch must be >= 0 \(got -1\)$"):
        join_overhead_ms(35, -1, 3)
