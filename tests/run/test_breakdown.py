"""Where a request's time went: every part by hand, and parts that add up to the latency on every run."""

import numpy as np
from hypothesis import given, reject, settings

from sim.check import CheckReport
from sim.contract.load import DrawsExhaustedError
from sim.contract.output import DEGRADED
from sim.contract.plain import PlainInput, PlainRunOutput, run_input
from sim.contract.provider import ProviderInput
from sim.contract.run import RunInput, WorkloadInput
from sim.engine.shared.model import run_shared
from sim.engine.simpy_model import run
from sim.run.breakdown import MOST_REQUESTS, PARTS, SLOWEST, break_down, longest, time_spent
from sim.run.simulation import Run
from sim.units import NS_PER_MS, IntArray
from tests.engine.test_shared_stress import shared_inputs
from tests.engine_inputs import arriving, closed, engine_input
from tests.shared_inputs import failing, limits, provider, rate, speaking, workload
from tests.strategies import engine_inputs


def plain_run(given: PlainInput) -> Run:
    return Run("plain", 0, run_input(given), PlainRunOutput(given, run(given)), CheckReport())


def shared_run(given: RunInput) -> Run:
    return Run("shared", 0, given, run_shared(given), CheckReport())


def shared(
    workloads: WorkloadInput | tuple[WorkloadInput, ...],
    providers: ProviderInput | tuple[ProviderInput, ...] | None = None,
) -> Run:
    return shared_run(
        RunInput(
            workloads if isinstance(workloads, tuple) else (workloads,),
            providers if isinstance(providers, tuple) else (providers or provider(),),
        )
    )


def delivered(one: Run) -> IntArray:
    return np.flatnonzero(one.out.outcome <= DEGRADED)


def spent(one: Run, request: int = -1) -> dict[str, float]:
    """Return the parts of one request that are not 0, ms; by default of the last one."""
    requests = np.array([request % one.out.requests])
    parts_ms = break_down(one, requests).parts_ns[0] / NS_PER_MS
    return {name: value for name, value in zip(PARTS, parts_ms.tolist(), strict=True) if value}


def assert_adds_up(one: Run) -> None:
    found = break_down(one, delivered(one))
    assert found.parts_ns.sum(axis=1).tolist() == one.out.latency_ns[found.request].tolist()
    assert (found.parts_ns >= 0).all()


@settings(max_examples=40, deadline=None)
@given(engine_inputs())
def test_the_parts_of_a_plain_run_add_up(given: PlainInput) -> None:
    try:
        one = plain_run(given)
    except DrawsExhaustedError:
        reject()
    assert_adds_up(one)


@settings(max_examples=60, deadline=None)
@given(shared_inputs())
def test_the_parts_of_a_shared_run_add_up(given: RunInput) -> None:
    assert_adds_up(shared_run(given))


def test_a_serial_request_is_all_service() -> None:
    assert spent(plain_run(engine_input(arriving(0), parallel=False))) == {"service": 420}


def test_a_parallel_request_is_its_longest_branch_and_its_join() -> None:
    assert spent(plain_run(engine_input(arriving(0)))) == {"service": 260, "join": 35}


def test_waiting_at_a_share_of_one_slot_beside_free_ones_is_the_own_cap() -> None:
    # Two of three slots are in use: each request may hold one.
    one = plain_run(engine_input(closed(2, 2), [260, 160], slots=3))
    assert spent(one) == {"service": 160, "own_cap": 260, "join": 35}


def test_waiting_while_others_hold_every_slot() -> None:
    one = plain_run(engine_input(arriving(0, 10), [100], slots=1, join_ms=0, allocation="fifo"))
    assert spent(one) == {"service": 100, "slots_busy": 90}


def test_a_wait_is_split_where_a_slot_becomes_free() -> None:
    # Both slots are taken until 50. Request 0 is in its join then, so that request 1 may hold one of two.
    given = engine_input(arriving(0, 10), [[50, 50], [20, 90]], slots=2, join_ms=30)
    assert spent(plain_run(given)) == {"service": 90, "slots_busy": 40, "own_cap": 20, "join": 30}


def test_a_join_on_a_slot_waits_like_a_call() -> None:
    one = shared((workload(arriving(0), [10, 20], join_slot_ms=5), workload(arriving(15), [40])), provider(2))
    # Both slots are taken from 15 on: by the second branch until 20, by the other request until 55.
    assert spent(one, 0) == {"service": 20, "join": 5}
    one = shared((workload(arriving(0), [10, 20], join_slot_ms=5), workload(arriving(2), [40])), provider(2))
    # The other request got the slot of the first branch at 10; the join takes the one of the second at 20.
    assert spent(one, 0) == {"service": 20, "join": 5}
    one = shared((workload(arriving(0), [20], join_slot_ms=5), workload(arriving(2), [40])), provider(1))
    # The other request was in line before the join was.
    assert spent(one, 0) == {"service": 20, "slots_busy": 40, "join": 5}


def test_a_chain_of_dependencies_is_followed_back() -> None:
    given = workload(arriving(0), [10, 30, 20, 5], dependencies=[(), (0,), (0,), (2,)], join_ms=1)
    assert spent(shared(given)) == {"service": 40, "join": 1}


def test_a_rate_limit_makes_calls_wait_beside_free_slots() -> None:
    paced = provider(limits=limits(rate(60, 60_000, burst=1)))
    assert spent(shared(workload(arriving(0, 0, 0)), paced)) == {"service": 10, "limits": 2000}


def test_a_limit_that_never_binds_does_not_take_the_blame_for_the_own_cap() -> None:
    # Two requests share three slots, one each; the second branch waits for the first.
    two = workload(arriving(0, 0), [26, 16], join_ms=3)
    without = spent(shared(two, provider(3, allocation="fair_share")))
    assert without == {"service": 16, "own_cap": 26, "join": 3}
    assert (
        spent(
            shared(
                two, provider(3, allocation="fair_share", limits=limits(rate(60_000, 60_000, burst=60_000)))
            )
        )
        == without
    )


def test_a_wait_beside_free_slots_is_split_between_the_own_cap_and_a_limit() -> None:
    # The bucket has the four calls' last one at 40 ms; until 26 the request holds its one slot.
    paced = provider(3, allocation="fair_share", limits=limits(rate(25, 1_000, burst=3)))
    one = shared(workload(arriving(0, 0), [26, 16], join_ms=3), paced)
    assert spent(one) == {"service": 16, "own_cap": 26, "limits": 14, "join": 3}


def test_a_slot_kept_for_another_workload_is_waited_for_like_a_limit() -> None:
    kept = provider(2, reserved=(0, 1), lends=False)
    one = shared((workload(arriving(0, 0)), workload(arriving())), kept)
    assert spent(one) == {"service": 10, "limits": 10}


def test_failed_attempts_and_the_pauses_after_them() -> None:
    one = shared(failing(workload(arriving(0)), ["xx."], backoff_ms=[4, 8, 0]))
    assert spent(one) == {"service": 10, "lost_attempts": 20, "pauses": 12}


def test_a_hedge_that_wins_had_waited_for_the_slow_attempt() -> None:
    given = failing(workload(arriving(0)), [".."], attempt_ms=[[100, 10]], hedge_after_ms=30)
    assert spent(shared(given)) == {"service": 10, "pauses": 30}


def test_a_hedge_that_succeeds_beside_the_first_attempt_was_not_needed() -> None:
    one = shared(failing(workload(arriving(0)), [".."], attempt_ms=[[40, 10]], hedge_after_ms=30))
    assert spent(one) == {"service": 40}
    (row,) = np.flatnonzero(one.out.counted).tolist()
    assert (one.out.attempts.start_ns[row], one.out.attempts.slot[row]) == (0, 0)


def test_a_retry_follows_the_attempt_that_ended_last() -> None:
    # The first attempt runs from 0 to 40, a hedge fails from 10 to 15, the third one begins at 43.
    given = failing(
        workload(arriving(0)), ["xx."], attempt_ms=[[40, 5, 7]], hedge_after_ms=10, backoff_ms=[3, 3, 3]
    )
    assert spent(shared(given)) == {"service": 7, "lost_attempts": 40, "pauses": 3}


def test_a_rejected_call_is_a_pause() -> None:
    rejecting = provider(limits=limits(rate(1, 50), rejects=True))
    given = failing(workload(arriving(0, 20)), [".."], backoff_ms=5)
    assert spent(shared(given, rejecting)) == {"service": 10, "pauses": 30}


def test_followers_of_a_leading_call_waited_for_its_first_token() -> None:
    given = speaking(workload(arriving(0), [50, 60], warm_first=True), first_token_ms=20)
    assert spent(shared(given)) == {"service": 80}


def test_the_join_of_k_of_n_waits_for_the_k_th() -> None:
    given = failing(workload(arriving(0), [10, 30, 90], join_ms=5), ["...", "...", "..."], needs=2)
    assert spent(shared(given)) == {"service": 30, "join": 5}


def test_an_optional_branch_that_is_lost_last_is_what_the_join_waited_for() -> None:
    given = failing(workload(arriving(0), [10, 30], join_ms=5), [".", "x"], optional=[1])
    assert spent(shared(given)) == {"lost_attempts": 30, "join": 5}


def test_waits_count_at_the_provider_that_was_asked() -> None:
    two = (provider(1), provider(1))
    one = shared(
        (workload(arriving(0), [10, 30], provider=(0, 1)), workload(arriving(0), [25], provider=(1,))), two
    )
    assert spent(one, 0) == {"service": 30}
    assert spent(one, 1) == {"service": 25, "slots_busy": 30}


def test_slots_that_step_up_end_a_wait() -> None:
    one = shared(workload(arriving(0, 0)), provider([(0, 1), (4, 2)]))
    assert spent(one) == {"service": 10, "slots_busy": 4}


def test_the_slowest_come_first_and_only_what_counts_is_covered() -> None:
    durations = [[float(10 + number)] for number in range(30)]
    one = plain_run(engine_input(arriving(*range(30)), durations, slots=40, join_ms=0, parallel=False))
    found = time_spent(one, np.arange(30) < 25)
    assert found.requests == 25 < MOST_REQUESTS
    assert found.covered.request.tolist() == list(range(25))
    assert found.covered.mean_ms == parts_ms(service=22)
    assert found.slowest.request.tolist() == list(range(24, 24 - SLOWEST, -1))
    assert found.slowest.parts_ns[:, 0].tolist() == [(10 + row) * NS_PER_MS for row in range(24, 14, -1)]


def test_no_request_has_no_parts() -> None:
    found = time_spent(plain_run(engine_input(arriving(0))), np.zeros(1, dtype=np.bool_))
    assert (found.requests, found.covered.mean_ms, found.slowest.parts_ns.shape) == (0, {}, (0, len(PARTS)))


def parts_ms(**parts: float) -> dict[str, float]:
    return {name: parts.get(name, 0.0) for name in PARTS}


def test_the_longest_are_the_first_of_equal_ones() -> None:
    latency_ns = np.array([5, 9, 5, 7, 5, 9, 1])
    assert longest(latency_ns, 4).tolist() == [1, 5, 3, 0]
    assert longest(latency_ns, 20).tolist() == [1, 5, 3, 0, 2, 4, 6]
    assert longest(latency_ns[:0], 4).tolist() == []
