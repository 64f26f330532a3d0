"""The checks catch engines that are deliberately broken, and count what they held."""

from collections.abc import Callable
from dataclasses import replace
from heapq import heappush
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.check import CheckReport
from sim.check.list_scheduler import extremes, known_latencies, list_spans_ns
from sim.check.timeline import timeline
from sim.contract.allocation import FIFO, PLAIN_ALLOCATIONS
from sim.contract.plain import PlainInput, PlainOutput, PlainRunOutput, run_input
from sim.engine.call_queue import BelowCap, Call, Place
from sim.engine.provider import Provider
from sim.engine.simpy_model import Model, run
from sim.errors import CheckError
from sim.plan.schedule import list_schedule
from tests.engine_inputs import arriving, closed, engine_input
from tests.engines import check_plain
from tests.strategies import dependency_graphs, engine_inputs

CONTENDED = engine_input(closed(7, 70, think_ms=3), [[30, 20], [10, 40]] * 35, slots=4, join_ms=5)


def checked(given: PlainInput) -> CheckReport:
    return check_plain(given, run(given))


def story(given: PlainInput, broken: Callable[[PlainInput], PlainOutput]) -> str:
    """Return what the checks say of an engine."""
    with pytest.raises(CheckError) as caught:
        check_plain(given, broken(given))
    return str(caught.value)


def broken_model(**methods: Any) -> Callable[[PlainInput], PlainOutput]:
    """Return the SimPy engine with methods of its provider replaced."""
    provider: type[Provider] = type("BrokenProvider", (Provider,), methods)

    class BrokenModel(Model):
        provider_class = provider

    return lambda given: BrokenModel(given).run()


def leave_without_dispatch(self: Provider) -> None:
    self._accumulate()
    self.active -= 1


def keep_slot_free(self: Provider, call: Call) -> None:
    Provider.grant(self, call)
    heappush(self.free, (self.env.now, call.slot))


class LastInFirstOut(BelowCap):
    """Serves whoever came last."""

    def first(self, cap: int) -> Place | None:
        requests = [place[-1].request for line in self.lines for place in line]
        eligible = [request for request in requests if request.waiting and request.held < cap]
        return max((request.waiting[0] for request in eligible), default=None)


def last_in_first_out(self: Provider, *args: Any) -> None:
    Provider.__init__(self, *args)
    self.queue = LastInFirstOut(self.given.calls_per_request)


def one_nanosecond_longer(given: PlainInput) -> PlainOutput:
    longer = given.service_ns.copy()
    longer[11, 1] += 1
    return run(replace(given, service_ns=longer))


def test_an_engine_that_forgets_to_dispatch_when_a_join_completes_is_caught() -> None:
    # Both requests hold one slot of two; when request 0 completes at 25, request 1 may hold the other.
    given = engine_input(arriving(0, 0), [[10, 10], [100, 100]], slots=2, join_ms=5)
    assert story(given, broken_model(leave=leave_without_dispatch)) == (
        "check violated (simpy engine): "
        "attempt 0 at call 1 of request 1 waited beside a free slot at 25000000 ns\n"
        "  parallel, arrived at 0 ns, answered at 205000000 ns\n"
        "  attempt 0 at call 0: ready 0, started 0, ended 100000000 ns on slot 1\n"
        "  attempt 0 at call 1: ready 0, started 100000000, ended 200000000 ns on slot 0"
    )


def test_a_queue_served_last_in_first_out_is_caught() -> None:
    assert "was overtaken by" in story(CONTENDED, broken_model(__init__=last_in_first_out))


def test_a_slot_granted_twice_is_caught() -> None:
    assert "held a slot that another attempt held" in story(CONTENDED, broken_model(grant=keep_slot_free))


def test_a_service_time_altered_by_a_nanosecond_is_caught() -> None:
    what = "request 11 has an attempt whose time is not the one drawn"
    assert what in story(CONTENDED, one_nanosecond_longer)


def altered(**changes: Callable[[PlainOutput], Any]) -> Callable[[PlainInput], PlainOutput]:
    """Return the SimPy engine with columns of its output altered."""

    def engine(given: PlainInput) -> PlainOutput:
        out = run(given)
        return replace(out, **{name: change(out) for name, change in changes.items()})

    return engine


def bumped(column: str, row: int, by: int = 1) -> Callable[[PlainOutput], Any]:
    """Return how to change one row of a column."""

    def change(out: PlainOutput) -> Any:
        values = getattr(out, column).copy()
        values[row] += by
        return values

    return change


@pytest.mark.parametrize(
    ("engine", "what"),
    [
        (altered(completion_ns=bumped("completion_ns", 3)), "request 10 did not arrive when due"),
        (altered(arrival_ns=bumped("arrival_ns", 9)), "request 9 did not arrive when due"),
        (altered(ready_ns=bumped("ready_ns", 9, -1)), "request 9 made an attempt before it arrived"),
        (altered(user=bumped("user", 8)), "did not arrive when due"),
        (
            altered(active_integral_ns=lambda out: out.active_integral_ns + 1),
            "Little's law of workload 0: active x time is",
        ),
        (altered(slot=lambda out: (out.slot + 1) % 4), "did not get the slot free longest, 0"),
        (
            altered(slot=lambda out: np.where(out.slot == 3, 4, out.slot)),
            "made an attempt that it cannot make",
        ),
        (
            altered(slot=lambda out: np.where(np.arange(70)[:, None] == 5, -1, out.slot)),
            "attempt 0 at call 0 of request 6 did not get the slot free longest, 1, but 2",
        ),
    ],
)
def test_an_altered_table_is_caught(engine: Callable[[PlainInput], PlainOutput], what: str) -> None:
    assert what in story(CONTENDED, engine)


def test_a_lost_request_is_caught() -> None:
    names = (
        "user",
        "ran_parallel",
        "arrival_ns",
        "completion_ns",
        "ready_ns",
        "start_ns",
        "finish_ns",
        "slot",
    )
    lost = altered(**{name: lambda out, name=name: getattr(out, name)[:-1] for name in names})
    assert "69 requests issued of 70" in story(CONTENDED, lost)


def test_a_call_that_starts_without_being_eligible_is_caught() -> None:
    # Under a fair share of one slot, an engine that ignores the cap grants both calls at once.
    given = engine_input(closed(2, 2), [10, 10], slots=2)
    greedy = replace(given, allocation=FIFO)
    assert "was overtaken by" in story(given, lambda _: run(greedy))


def test_a_plan_chosen_before_all_arrivals_are_counted_is_caught() -> None:
    given = engine_input(closed(11, 33), parallel=range(2, 21))
    hasty = replace(given, runs_parallel_at=np.ones(21, dtype=np.bool_))
    assert "request 0 did not run the plan of its fair share" in story(given, lambda _: run(hasty))


def test_the_list_scheduler_says_what_the_latency_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    given = engine_input(arriving(0, 500), [10, 20])
    late = {"active_integral_ns": lambda out: out.active_integral_ns + 1}
    out = altered(completion_ns=bumped("completion_ns", 1), **late)(given)
    general = run_input(given)
    line = timeline(general, PlainRunOutput(given, out))
    exact, expected_ns = known_latencies(given, out, line, line.cap(0, 0))
    assert (exact.tolist(), expected_ns.tolist()) == ([True, True], [55_000_000, 55_000_000])
    for rules in ("table_rules", "join_rules"):
        monkeypatch.setattr(f"sim.check.run.{rules}", lambda *_: [])
    what = "request 1 took 55000001 ns, by the list scheduler it must be exactly 55000000 ns"
    assert what in story(given, lambda _: out)


def test_every_request_of_a_contended_fair_share_load_is_counted() -> None:
    report = checked(CONTENDED)
    assert report.requests == 70
    assert report.requests_exact + report.requests_bounded == 70
    assert report.requests_violated == 0
    assert report.calls_conserved == 140
    assert report.isolated_replays == 2


@pytest.mark.parametrize("active", [1, 7, 10, 11, 14, 20])
def test_fixed_times_up_to_as_many_active_requests_as_slots_are_all_exact(active: int) -> None:
    report = checked(engine_input(closed(active, 20 * active)))
    assert (report.requests_exact, report.requests_bounded) == (20 * active, 0)


def test_a_request_whose_cap_changed_while_it_waited_is_only_bounded() -> None:
    # The fifth call of request 0 waits from 0 to 10; its cap is four slots until request 1 arrives at 5.
    given = engine_input(arriving(0, 5), [10] * 5, slots=4, join_ms=0)
    assert checked(given).requests_bounded == 2
    assert checked(engine_input(arriving(0), [10, 10, 10], slots=2, join_ms=0)).requests_exact == 1


def test_sums_beyond_int64_are_exact() -> None:
    # Six requests of nearly 2^62 ns each: their latencies sum to more than int64 holds.
    given = engine_input(arriving(*[0] * 6), [[1]] * 6, slots=6, join_ms=0)
    given = replace(given, service_ns=np.full((6, 1), 2**62 - 1))
    assert checked(given).active_integral_ns == 6 * (2**62 - 1)


def test_an_empty_run_has_nothing_to_check() -> None:
    empty = engine_input(arriving(), [1, 1])
    assert check_plain(empty, run(empty)) == CheckReport(run_by=("readable",))


@st.composite
def contended_inputs(draw: st.DrawFn) -> PlainInput:
    """Return small runs on a grid of ticks, where many things happen at one instant."""
    branches = draw(st.integers(1, 4))
    requests = draw(st.integers(1, 25))
    ticks = st.integers(1, 5)
    rows = draw(
        st.lists(st.lists(ticks, min_size=branches, max_size=branches), min_size=requests, max_size=requests)
    )
    if draw(st.booleans()):
        load: Any = closed(draw(st.integers(1, 6)), requests, draw(st.integers(0, 3)))
    else:
        load = arriving(*sorted(draw(st.lists(st.integers(0, 30), min_size=requests, max_size=requests))))
    slots = draw(st.integers(1, 6))
    return engine_input(
        load,
        rows,
        slots=slots,
        allocation=draw(st.sampled_from(PLAIN_ALLOCATIONS)),
        join_ms=draw(st.integers(0, 3)),
        dependencies=draw(dependency_graphs(branches)),
        parallel=draw(st.lists(st.integers(1, slots))),
        max_degree=draw(st.none() | st.integers(1, 3)),
    )


@given(contended_inputs())
@settings(max_examples=300, deadline=None)
def test_the_engine_holds_every_check_on_random_contention(given: PlainInput) -> None:
    report = checked(given)
    assert report.requests_exact + report.requests_bounded == report.requests


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_range_extremes_are_those_of_the_slice(values: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(values) - 1))
    last = data.draw(st.integers(first, len(values) - 1))
    least, greatest = extremes(np.array(values), np.array([first]), np.array([last]))
    assert (least[0], greatest[0]) == (min(values[first : last + 1]), max(values[first : last + 1]))


@given(engine_inputs(), st.data())
def test_spans_of_many_requests_are_those_of_the_list_scheduler(
    given: PlainInput, data: st.DataObject
) -> None:
    times, graph = given.service_ns, given.dependencies
    slots = [data.draw(st.integers(1, given.calls_per_request + 1)) for _ in times]
    rows = zip(times.tolist(), slots, strict=True)
    expected = [list_schedule(row, graph, number).span_ns for row, number in rows]
    assert list_spans_ns(times, graph, np.array(slots, dtype=np.int64)).tolist() == expected
