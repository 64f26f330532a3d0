"""The SimPy model against hand-worked traces and the expected table of the contract."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.contract.load import ClosedUsers, DrawsExhaustedError
from sim.contract.plain import PlainOutput
from sim.engine.call_queue import BelowCap, FewestHeld, InLine, call_queue
from sim.engine.simpy_model import run
from sim.plan.schedule import list_schedule
from sim.units import NS_PER_MS, IntArray
from tests.engine_inputs import arriving, closed, engine_input, ms
from tests.strategies import scheduling_problems

ADAPTIVE = range(2, 21)
EXPECTED = {
    # active: (fair_share parallel, serial, fair_share adaptive, fifo parallel, max_min parallel),
    # each as (mean, least, greatest) latency in ms
    10: ((295, 295, 295), (420, 420, 420), (295, 295, 295), (295, 295, 295), (295, 295, 295)),
    11: ((455, 455, 455), (420, 420, 420), (420, 420, 420), (295, 295, 295), (295, 295, 295)),
    14: ((455, 455, 455), (420, 420, 420), (420, 420, 420), (295, 295, 295), (295, 295, 295)),
    16: ((455, 455, 455), (420, 420, 420), (420, 420, 420), (336, 320, 360), (336, 320, 360)),
    18: ((455, 455, 455), (420, 420, 420), (420, 420, 420), (378, 345, 420), (378, 335, 420)),
    20: ((455, 455, 455), (420, 420, 420), (420, 420, 420), (420, 420, 420), (455, 455, 455)),
    30: ((630, 455, 805), (629.9, 480, 740), (629.9, 480, 740), (630, 580, 680), (629.9, 520, 740)),
}
WAYS = (("fair_share", True), ("fifo", False), ("fair_share", ADAPTIVE), ("fifo", True), ("max_min", True))


def in_ms(times_ns: IntArray) -> list[float]:
    return (times_ns / NS_PER_MS).ravel().tolist()


@pytest.mark.parametrize("active", EXPECTED)
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_closed_loads_give_the_table_of_expected_latencies(active: int, way: int) -> None:
    allocation, parallel = WAYS[way]
    requests = 400 * active
    out = run(engine_input(closed(active, requests), allocation=allocation, parallel=parallel))
    kept_ms = out.latency_ns[requests // 10 :] / NS_PER_MS
    mean, least, greatest = EXPECTED[active][way]
    assert (kept_ms.min(), kept_ms.max()) == (least, greatest)
    assert kept_ms.mean() == pytest.approx(mean, abs=0 if least == greatest else 0.2)


def test_a_completion_comes_before_an_arrival_and_the_dispatch_after_both() -> None:
    # Request 0 completes at 295, just when request 1 arrives: they are never active together.
    out = run(engine_input(arriving(0, 295), slots=2))
    assert in_ms(out.start_ns[1]) == [295, 295]
    # Arriving 1 ms earlier, request 1 may hold one slot of two until request 0 completes.
    early = run(engine_input(arriving(0, 294), slots=2))
    assert in_ms(early.start_ns[1]) == [294, 295]


def test_the_cap_is_read_at_the_dispatch_and_rises_when_a_join_completes() -> None:
    # Two active requests on two slots hold one each; when request 0 completes, request 1 may hold both.
    out = run(engine_input(arriving(0, 0), [[10, 10], [100, 100]], slots=2, join_ms=5))
    assert in_ms(out.start_ns) == [0, 10, 0, 25]
    assert in_ms(out.finish_ns) == [10, 20, 100, 125]
    assert out.slot.tolist() == [[0, 0], [1, 0]]
    assert in_ms(out.completion_ns) == [25, 130]


def test_simultaneous_arrivals_choose_their_plan_after_all_are_counted() -> None:
    out = run(engine_input(arriving(0, 0, 0), slots=4, parallel=[2, 3, 4]))
    assert out.ran_parallel.tolist() == [False, False, False]
    assert run(engine_input(arriving(0, 0), slots=4, parallel=[2, 3, 4])).ran_parallel.all()


def test_the_slot_granted_is_the_one_free_longest() -> None:
    out = run(engine_input(arriving(0, 1, 2, 20), [[5], [3], [9], [1]], slots=4, join_ms=0))
    # Slot 3 was never used, slot 1 has been free since 4 ms, slot 0 since 5 ms.
    assert out.slot.ravel().tolist() == [0, 1, 2, 3]
    again = run(engine_input(arriving(0, 1, 2, 20), [[5], [3], [9], [1]], slots=3, join_ms=0))
    assert again.slot.ravel().tolist() == [0, 1, 2, 1]


def test_max_degree_lowers_the_cap_under_every_allocation() -> None:
    for allocation in ("fair_share", "fifo", "max_min"):
        out = run(engine_input(arriving(0), [10, 10, 10], allocation=allocation, max_degree=2, join_ms=0))
        assert in_ms(out.latency_ns) == [20]


def test_calls_wait_in_one_line_only_where_no_cap_can_hold_them_back() -> None:
    def queue(**changes: Any) -> type:
        return type(call_queue(engine_input(arriving(0), [10, 10], **changes)))

    assert queue(allocation="fifo") is queue(allocation="fifo", max_degree=2) is InLine
    assert queue(allocation="fifo", max_degree=1) is BelowCap
    assert queue(allocation="fair_share") is BelowCap
    assert queue(allocation="max_min") is FewestHeld
    # A request that never has two calls under way cannot reach a cap.
    assert queue(allocation="max_min", slots=1) is queue(allocation="fair_share", parallel=False) is InLine
    assert type(call_queue(engine_input(arriving(0), [10], allocation="max_min"))) is InLine


def test_serial_runs_the_lowest_ready_branch_and_has_no_join() -> None:
    out = run(engine_input(arriving(0), [5, 7, 9], dependencies=[[2], [], []], parallel=False))
    assert in_ms(out.start_ns) == [16, 0, 7]
    assert in_ms(out.latency_ns) == [21]


def test_a_closed_user_with_no_think_time_asks_again_at_once() -> None:
    out = run(engine_input(closed(2, 6), slots=2))
    assert in_ms(out.arrival_ns) == [0, 0, 455, 455, 910, 910]
    assert out.user.tolist() == [0, 1, 0, 1, 0, 1]


def test_users_who_return_together_ask_in_ascending_number() -> None:
    # Users 0 and 1 swap the order of their completions, but return at the same instant.
    load = ClosedUsers(((0, 2),), ms([10, 20, 0, 0]))
    out = run(engine_input(load, [[20], [10], [1], [1]], slots=2, join_ms=0))
    assert in_ms(out.arrival_ns) == [0, 0, 30, 30]
    assert out.user.tolist() == [0, 1, 0, 1]


def stepped(steps: Sequence[tuple[float, int]], end_ms: float, think_ms: float = 0) -> ClosedUsers:
    """Return users whose number changes at these times (ms)."""
    at = tuple((round(at_ms * NS_PER_MS), users) for at_ms, users in steps)
    return ClosedUsers(at, ms([think_ms] * 100), round(end_ms * NS_PER_MS))


def one_branch(load: ClosedUsers) -> PlainOutput:
    return run(engine_input(load, [10], join_ms=0))


def test_users_come_with_a_step_and_the_highest_numbered_leave_after_their_request() -> None:
    out = one_branch(stepped([(0, 1), (15, 3), (32, 1)], 50))
    arrivals = list(zip(out.user.tolist(), in_ms(out.arrival_ns), strict=True))
    assert arrivals == [
        (0, 0), (0, 10), (1, 15), (2, 15), (0, 20), (1, 25), (2, 25), (0, 30), (0, 40),
    ]  # fmt: skip


def test_a_thinking_user_leaves_at_once_and_may_come_again() -> None:
    # Users 0 and 1 ask at 0, answer at 10, think till 40; user 1 leaves at 20 and comes back at 30.
    out = one_branch(stepped([(0, 2), (20, 1), (30, 2)], 45, think_ms=30))
    assert list(zip(out.user.tolist(), in_ms(out.arrival_ns), strict=True)) == [
        (0, 0),
        (1, 0),
        (1, 30),
        (0, 40),
    ]


def test_a_busy_user_who_was_to_leave_stays_when_the_number_rises_again() -> None:
    out = one_branch(stepped([(0, 2), (3, 1), (6, 2)], 15))
    assert list(zip(out.user.tolist(), in_ms(out.arrival_ns), strict=True)) == [
        (0, 0),
        (1, 0),
        (0, 10),
        (1, 10),
    ]


def test_steps_and_ends_are_half_open() -> None:
    out = one_branch(stepped([(0, 1), (10, 0), (20, 1)], 30))
    assert in_ms(out.arrival_ns) == [0, 20]


def test_a_stepped_load_that_outlasts_its_draws_says_so() -> None:
    load = ClosedUsers(((0, 1),), ms([0] * 3), 1_000 * NS_PER_MS)
    with pytest.raises(DrawsExhaustedError):
        one_branch(load)


def test_an_empty_open_load_gives_empty_tables() -> None:
    out = run(engine_input(arriving(), np.empty((0, 2)).tolist() or [1, 1]))
    assert (out.requests, out.horizon_ns, out.active_integral_ns) == (0, 0, 0)


def test_littles_law_holds_exactly() -> None:
    out = run(engine_input(closed(30, 600), allocation="max_min"))
    assert out.active_integral_ns == int(out.latency_ns.sum())


def test_isolated_requests_are_the_list_scheduler() -> None:
    out = run(engine_input(arriving(0), [3, 8, 9, 4], slots=2, join_ms=0, dependencies=[[], [], [0], []]))
    assert in_ms(out.latency_ns) == [16]
    assert in_ms(out.start_ns) == [0, 0, 7, 3]


@given(scheduling_problems(), st.sampled_from(["fair_share", "fifo", "max_min"]))
@settings(max_examples=200)
def test_random_graphs_alone_are_the_list_scheduler_slot_by_slot(problem, allocation: str) -> None:  # type: ignore[no-untyped-def]
    service_ns, dependencies, slots = problem
    expected = list_schedule(service_ns, dependencies, slots)
    service_ms = [time / NS_PER_MS for time in service_ns]
    out = run(
        engine_input(
            arriving(0), service_ms, slots=slots, allocation=allocation, join_ms=0, dependencies=dependencies
        )
    )
    assert out.start_ns[0].tolist() == list(expected.starts_ns)
    assert out.finish_ns[0].tolist() == list(expected.finishes_ns)
    assert out.slot[0].tolist() == list(expected.slot)
