"""Attempts that fail, hang and are made again: timeouts, backoff, budgets, hedges, by hand."""

import math

import numpy as np
import pytest

from sim.contract.output import OK, SUCCEEDED
from tests.engine_inputs import arriving, closed
from tests.shared_inputs import answers, failing, provider, run_everywhere, simulate, trace, workload


def test_retries_follow_after_exactly_their_backoff() -> None:
    out = simulate(failing(workload(arriving(0), [10]), ["xx."], backoff_ms=[5, 20, 80]))
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "0.0.1 15 15-25 slot 1 server_error",
        "0.0.2 45 45-55 slot 2 ok",
    ]
    assert answers(out) == ["succeeded at 55"]


def test_jitter_lengthens_the_pauses() -> None:
    out = simulate(failing(workload(arriving(0), [10]), ["xx."], backoff_ms=[5, 20, 80], jitter=0.5))
    assert (out.attempts.ready_ns // 1_000).tolist() == [0, 17_500, 57_500]


def test_a_retry_without_a_pause_is_dispatched_in_that_instant() -> None:
    out = simulate(failing(workload(arriving(0, 1), [10]), [["x."], [".."]]), provider(1))
    # It is ready at 10, after the other request's call.
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "1.0.0 1 10-20 slot 0 ok",
        "0.0.1 10 20-30 slot 0 ok",
    ]


def test_a_branch_is_lost_after_its_last_attempt() -> None:
    out = simulate(failing(workload(arriving(0), [10]), ["xxx"], backoff_ms=1))
    assert answers(out) == ["failed at 32"]
    assert len(out.attempts.number) == 3


def test_a_call_that_takes_exactly_its_timeout_has_finished() -> None:
    out = simulate(failing(workload(arriving(0, 0), [[10], [10.000001]]), [".."], timeout_ms=10))
    assert trace(out)[:2] == ["0.0.0 0 0-10 slot 0 ok", "1.0.0 0 0-10 slot 1 timed_out"]


def test_a_timeout_runs_from_the_start_and_frees_the_slot_at_once() -> None:
    hangs = failing(workload(arriving(0, 1), [[5], [9]]), [["t."], [".."]], timeout_ms=20, backoff_ms=5)
    assert trace(simulate(hangs, provider(1))) == [
        "0.0.0 0 0-20 slot 0 timed_out",
        "1.0.0 1 20-29 slot 0 ok",
        "0.0.1 25 29-34 slot 0 ok",
    ]


@pytest.mark.parametrize(("budget", "retried"), [(0, 0), (0.25, 1), (0.5, 2), (0.99, 3), (1, 4)])
def test_a_retry_budget_is_a_share_of_first_attempts(budget: float, retried: int) -> None:
    out = simulate(failing(workload(arriving(0, 0, 0, 0), [10]), ["x.."], budget=budget))
    assert answers(out) == ["succeeded at 20"] * retried + ["failed at 10"] * (4 - retried)


def test_a_budget_grows_with_first_attempts_and_hedges_draw_on_it() -> None:
    # One extra attempt per two first ones: the hedge at 5 is the second call's; at 7 the third call has not
    # arrived yet, at 12 there are three.
    one = failing(workload(arriving(0, 2, 7), [10]), [".."], hedge_after_ms=5, budget=0.5)
    assert trace(simulate(one, provider(9))) == [
        "0.0.0 0 0-10 slot 0 ok",
        "0.0.1 5 5-10 slot 2 cancelled",
        "1.0.0 2 2-12 slot 1 ok",
        "2.0.0 7 7-17 slot 3 ok",
    ]


def hedged(outcomes: str, *attempt_ms: float, slots: int = 4) -> list[str]:
    """Return the trace of one call that is hedged after 5 ms, with 3 ms before any further attempt."""
    one = failing(
        workload(arriving(0), [1]), [outcomes], attempt_ms=[attempt_ms], hedge_after_ms=5, backoff_ms=3
    )
    return trace(simulate(one, provider(slots)))


def test_a_hedge_that_is_quicker_wins_and_the_first_attempt_is_cancelled() -> None:
    assert hedged("..", 20, 2) == ["0.0.1 5 5-7 slot 1 ok", "0.0.0 0 0-7 slot 0 cancelled"]


def test_a_hedge_that_is_slower_loses() -> None:
    assert hedged("..", 10, 20) == ["0.0.0 0 0-10 slot 0 ok", "0.0.1 5 5-10 slot 1 cancelled"]


@pytest.mark.parametrize(
    ("outcomes", "ends"),
    [
        ("...", ("ok", "ok")),
        ("x..", ("server_error", "ok")),
        (".x.", ("ok", "server_error")),
        ("r..", ("rate_limited", "ok")),
        ("t..", ("timed_out", "ok")),
    ],
)
def test_an_attempt_and_its_hedge_that_end_at_one_instant_both_end_by_themselves(
    outcomes: str, ends: tuple[str, str]
) -> None:
    one = failing(
        workload(arriving(0), [10, 3], dependencies=[[], [0]]),
        [outcomes, "..."],
        attempt_ms=[[10, 5, 1], [3, 3, 3]],
        hedge_after_ms=5,
        timeout_ms=10,
    )
    out = run_everywhere(one)
    # Whichever of them answers, the call is answered once.
    assert trace(out) == [
        f"0.0.0 0 0-10 slot 0 {ends[0]}",
        f"0.0.1 5 5-10 slot 1 {ends[1]}",
        "0.1.0 10 10-13 slot 2 ok",
    ]
    assert answers(out) == ["succeeded at 13"]


def test_a_call_that_finishes_when_its_hedge_is_due_needs_none() -> None:
    assert hedged("..", 5, 1) == ["0.0.0 0 0-5 slot 0 ok"]


def test_a_hedge_that_never_got_a_slot_is_cancelled_in_the_queue() -> None:
    assert hedged("..", 10, 1, slots=1) == ["0.0.0 0 0-10 slot 0 ok", "0.0.1 5 never at 10 cancelled"]


def test_a_hedge_that_runs_is_waited_for_when_the_first_attempt_fails() -> None:
    assert hedged("x..", 10, 20, 1) == ["0.0.0 0 0-10 slot 0 server_error", "0.0.1 5 5-25 slot 1 ok"]


def test_when_both_fail_a_third_attempt_follows_the_pause_after_the_last() -> None:
    assert hedged("xx.", 10, 5, 1) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "0.0.1 5 5-10 slot 1 server_error",
        "0.0.2 13 13-14 slot 2 ok",
    ]
    assert hedged("xx", 10, 5) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "0.0.1 5 5-10 slot 1 server_error",
    ]


def test_only_first_attempts_are_hedged_and_only_while_they_run() -> None:
    assert hedged("x..", 4, 20, 1) == ["0.0.0 0 0-4 slot 0 server_error", "0.0.1 7 7-27 slot 1 ok"]


def test_what_runs_on_after_the_answer_is_not_hedged() -> None:
    one = failing(workload(arriving(0), [10]), [".."], hedge_after_ms=5, deadline_ms=4, cancels=False)
    assert trace(simulate(one)) == ["0.0.0 0 0-10 slot 0 ok"]


def test_a_slot_that_a_hedge_gives_back_is_granted_in_that_instant() -> None:
    one = failing(workload(arriving(0, 6), [[9], [4]]), [".."], hedge_after_ms=5)
    assert trace(simulate(one, provider(2))) == [
        "0.0.0 0 0-9 slot 0 ok",
        "0.0.1 5 5-9 slot 1 cancelled",
        "1.0.0 6 9-13 slot 0 ok",
    ]


def test_ten_percent_failures_and_three_attempts_are_the_closed_form() -> None:
    # Attempts per call 1 + p + p^2 = 1.11, success 1 - p^3 = 0.999. Both branches are optional, so that
    # losing one leaves the other alone and the calls are independent.
    p, requests = 0.1, 4_000
    rng = np.random.default_rng(20)
    letters = np.array([".", "x"])[rng.choice(2, (requests, 2, 3), p=[1 - p, p])]
    rows = [["".join(word) for word in row] for row in letters.tolist()]
    one = failing(workload(closed(20, requests), [3, 2]), rows, backoff_ms=1, optional=(0, 1))
    out = simulate(one, provider(20))
    calls = 2 * requests
    assert p + p**2 + 1 == pytest.approx(1.11)
    assert near(len(out.attempts.number), calls, 1 + p + p**2, variance_of_attempts(p))
    assert near(int((out.attempts.outcome == OK).sum()), calls, 1 - p**3, p**3 * (1 - p**3))
    whole = (1 - p**3) ** 2
    assert near(int((out.outcome == SUCCEEDED).sum()), requests, whole, whole * (1 - whole))


def near(total: int, number: int, mean: float, variance: float) -> bool:
    """Return whether a sum of so many independent draws lies within its 99.9 % interval."""
    return abs(total - number * mean) <= 3.29 * math.sqrt(number * variance)


def variance_of_attempts(p: float) -> float:
    """Return the variance of the attempts at one call, of which at most three are made."""
    chances = {1: 1 - p, 2: p * (1 - p), 3: p * p}
    mean = sum(number * chance for number, chance in chances.items())
    return sum((number - mean) ** 2 * chance for number, chance in chances.items())
