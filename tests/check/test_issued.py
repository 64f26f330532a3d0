"""Requests against the load: a missing one, one too many and one at a wrong time are caught, of any load."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sim.check.compiled import RULES, verdict
from sim.check.issued import Issued, Misissued, first_misissued
from sim.check.run import check_run
from sim.contract.load import ClosedUsers, OpenArrivals
from sim.contract.output import Attempts, RunOutput
from sim.contract.plain import PlainInput, PlainOutput
from sim.contract.run import RunInput
from sim.engine.shared.model import run_shared
from sim.engine.simpy_model import run
from sim.errors import CheckError
from sim.units import NS_PER_MS
from tests.engine_inputs import arriving, closed, engine_input, ms
from tests.engines import check_plain
from tests.shared_inputs import limits, provider, rate, workload

Load = OpenArrivals | ClosedUsers
NOT_DUE = RULES[-1]


def stepping(
    *steps: tuple[int, int], end_ms: int | None = 100, requests: int = 100, think_ms: int = 0
) -> Load:
    """Return users whose number changes at (ms, users)."""
    at_ns = tuple((at_ms * NS_PER_MS, users) for at_ms, users in steps)
    return ClosedUsers(at_ns, ms([think_ms] * requests), None if end_ms is None else end_ms * NS_PER_MS)


def issued(*rows: tuple[int, int, int], at_dispatch: bool = False) -> Issued:
    """Return requests as (user, arrival ms, answer ms)."""
    user, arrival_ms, answer_ms = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    at = np.full(len(user), at_dispatch)
    return Issued(user, arrival_ms * NS_PER_MS, answer_ms * NS_PER_MS, at)


def owed(count: int, user: int, at_ms: int, of: str = "") -> str:
    return f"{count} requests issued{of}, user {user} was due to ask at {at_ms * NS_PER_MS} ns"


@pytest.mark.parametrize(
    ("load", "found", "wrong"),
    [
        (arriving(0, 5), issued((-1, 0, 9), (-1, 5, 9)), None),
        (arriving(0, 5), issued((-1, 0, 9)), Misissued("1 requests issued of 2", 0)),
        (arriving(0, 5), issued(), Misissued("0 requests issued of 2", -1)),
        (arriving(), issued((-1, 0, 9)), Misissued("1 requests issued of 0", 0)),
        (
            arriving(0, 5),
            issued((-1, 0, 9), (-1, 6, 9)),
            Misissued("request 1 did not arrive when due", 1),
        ),
        (closed(1, 2), issued((0, 0, 9), (0, 9, 11)), None),
        (closed(1, 2), issued((0, 0, 9)), Misissued(owed(1, 0, 9, " of 2"), 0)),
        (closed(1, 2), issued(), Misissued(owed(0, 0, 0, " of 2"), -1)),
        (closed(1, 1), issued((0, 0, 9), (0, 9, 11)), Misissued("2 requests issued of 1", 1)),
        # Two requests were to be had: the user who was back at 3 had to get the second.
        (closed(2, 3), issued((0, 0, 3), (1, 0, 5), (1, 5, 9)), Misissued(owed(3, 0, 3, " of 3"), 2)),
        (closed(2, 3), issued((0, 0, 3), (1, 0, 5), (0, 3, 9)), None),
        (closed(2, 3, 4), issued((0, 0, 3), (1, 0, 5), (0, 7, 9)), None),
        (stepping((0, 1), end_ms=10), issued((0, 0, 6), (0, 6, 12)), None),
        (stepping((0, 1), end_ms=10), issued((0, 0, 6)), Misissued(owed(1, 0, 6), 0)),
        (stepping((0, 1), end_ms=10), issued((0, 0, 10)), None),
        (
            stepping((0, 1), end_ms=10),
            issued((0, 0, 10), (0, 10, 12)),
            Misissued("request 1 did not arrive when due", 1),
        ),
        # The second user comes at 20, thinks from 25 on, is sent away at 30, and comes again at 60.
        (
            stepping((0, 1), (20, 2), (30, 1), (60, 2), end_ms=70, think_ms=40),
            issued((0, 0, 5), (1, 20, 25), (0, 45, 50), (1, 60, 66)),
            None,
        ),
        (
            stepping((0, 1), (20, 2), (30, 1), (60, 2), end_ms=70, think_ms=40),
            issued((0, 0, 5), (1, 20, 25), (0, 45, 50)),
            Misissued(owed(3, 1, 60), 2),
        ),
        (
            stepping((0, 1), (20, 2), (30, 1), (60, 2), end_ms=70, think_ms=40),
            issued((0, 0, 5), (1, 20, 25), (0, 45, 50), (1, 65, 69)),
            Misissued("request 3 did not arrive when due", 3),
        ),
        # Everyone has left: what the load had to give is not asked for.
        (stepping((0, 1), (5, 0), end_ms=None), issued((0, 0, 9)), None),
    ],
)
def test_what_a_load_asks_for(load: Load, found: Issued, wrong: Misissued | None) -> None:
    assert first_misissued(load, found) == wrong


def test_an_answer_at_a_dispatch_comes_after_the_users_of_its_instant() -> None:
    load = stepping((0, 1), (9, 1), (10, 2), end_ms=30, think_ms=5)
    # User 1 came at 10 and was turned away at once: it thinks. An answer before would have let it come at 10.
    rows = [(0, 0, 50), (1, 10, 10), (1, 15, 60)]
    assert first_misissued(load, issued(*rows, at_dispatch=True)) is None
    assert first_misissued(load, issued(*rows)) == Misissued("request 2 did not arrive when due", 2)


def story(check: Callable[[], object]) -> str:
    with pytest.raises(CheckError) as error:
        check()
    return str(error.value)


PLAIN = [engine_input(load, [10], slots=4, join_ms=0) for load in (
    arriving(0, 5, 5, 30), closed(2, 8), closed(2, 8, 3), stepping((0, 2), end_ms=31),
    stepping((0, 1), (15, 3), (22, 1), end_ms=50, think_ms=4),
)]  # fmt: skip


def shorter(out: PlainOutput) -> PlainOutput:
    """Return a run whose last request was never issued, with all else as it must be."""
    rows = out.requests - 1
    columns = (
        "user",
        "ran_parallel",
        "arrival_ns",
        "completion_ns",
        "ready_ns",
        "start_ns",
        "finish_ns",
        "slot",
    )
    cut = {name: getattr(out, name)[:rows] for name in columns}
    lost_ns = int(out.latency_ns[-1])
    return replace(out, **cut, active_integral_ns=out.active_integral_ns - lost_ns)


@pytest.mark.parametrize("given", PLAIN)
def test_a_plain_run_without_its_last_request_is_caught(given: PlainInput) -> None:
    """It is a sound run but for that: another table of the same input, of the load with one request less."""
    out = run(given)
    check_plain(given, out)
    assert verdict(given, out).broken is None
    assert "requests issued" in story(lambda: check_plain(given, shorter(out)))
    assert verdict(given, shorter(out)).broken == NOT_DUE


def test_a_run_without_any_request_is_caught_where_there_are_some() -> None:
    given = engine_input(closed(2, 8), [10], slots=4, join_ms=0)
    nothing = run(engine_input(arriving(), [10], slots=4, join_ms=0))
    assert story(lambda: check_plain(given, nothing)) == (
        "check violated (simpy engine): workload 0: 0 requests issued of 8, user 0 was due to ask at 0 ns"
    )


def run_of(*loads: Load) -> tuple[RunInput, RunOutput]:
    given = RunInput(tuple(workload(load) for load in loads), (provider(64),))
    return given, run_shared(given)


def of_another(wanted: Load, issued_by: Load) -> str:
    """Return what is said of a run whose second workload issued what another load asks for."""
    first = arriving(3)
    given, _ = run_of(first, wanted)
    _, out = run_of(first, issued_by)
    return story(lambda: check_run(given, out, run_shared)).splitlines()[0]


def test_a_workload_that_issues_what_it_was_not_asked_for_is_caught() -> None:
    said = "check violated (simpy engine): workload 1: "
    assert of_another(closed(2, 4), closed(2, 8)) == f"{said}8 requests issued of 4"
    assert of_another(closed(2, 8), closed(2, 4)) == f"{said}{owed(4, 0, 20, ' of 8')}"
    assert of_another(arriving(0, 5), arriving(0, 5, 6)) == f"{said}3 requests issued of 2"
    assert of_another(arriving(0, 5), arriving(0, 6)) == f"{said}request 1 did not arrive when due"
    assert of_another(closed(1, 2), arriving()) == f"{said}{owed(0, 0, 0, ' of 2')}"
    one = stepping((0, 1), end_ms=35)
    assert of_another(one, stepping((0, 1), end_ms=25)) == f"{said}{owed(3, 0, 30)}"
    assert of_another(stepping((0, 1), end_ms=25), one) == f"{said}request 3 did not arrive when due"


def test_requests_stand_in_the_order_of_their_draws() -> None:
    given, out = run_of(arriving(0, 5))
    swapped = replace(out, position=out.position[::-1])
    assert story(lambda: check_run(given, swapped, run_shared)).splitlines()[0] == (
        "check violated (simpy engine): request 0 is not in the order of its draws"
    )


def test_time_that_nobody_was_active_is_caught_without_requests() -> None:
    given, out = run_of(arriving())
    assert isinstance(out.attempts, Attempts)
    busy = replace(out, active_integral_ns=(7,))
    assert story(lambda: check_run(given, busy, run_shared)) == (
        "Little's law of workload 0: active x time is 7 ns, the latencies sum to 0 ns"
    )


def test_users_who_are_turned_away_at_the_instant_of_a_step_come_back_when_due() -> None:
    load = stepping((0, 1), (10, 3), (20, 1), (30, 4), end_ms=60, think_ms=10)
    once = limits(rate(1, 25), rejects=True)
    given = RunInput((workload(load, [3]),), (provider(4, limits=once),))
    out = run_shared(given)
    assert (out.outcome > 1).any()
    check_run(given, out, run_shared)
