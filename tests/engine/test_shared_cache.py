"""Prefixes that can be read from the first token of the call that writes them, by hand."""

from typing import Any

import pytest

from sim.contract.load import OpenArrivals
from sim.contract.output import RunOutput
from sim.contract.provider import PrefixCache
from sim.contract.run import WorkloadInput
from sim.engine.shared.cache import Cache
from tests.engine_inputs import arriving
from tests.shared_inputs import (
    answers,
    cache,
    failing,
    limits,
    provider,
    rate,
    run_everywhere,
    simulate,
    speaking,
    trace,
    workload,
)

HIT = {1: "read", 0: "write", -1: "none"}


def hits(out: RunOutput) -> list[str]:
    """Return what each attempt did, in order of requests, calls and attempts."""
    table = out.attempts
    rows = sorted(zip(table.number, table.call, table.attempt, table.hit, strict=True))
    return [HIT[int(hit)] for *_, hit in rows]


def four(load: OpenArrivals, first_token_ms: float = 4, **options: Any) -> WorkloadInput:
    """Return requests of four branches that share a prefix."""
    return speaking(workload(load, [10, 10, 10, 10], **options), prefix=100, first_token_ms=first_token_ms)


@pytest.mark.parametrize(
    ("options", "what", "latency_ms", "copies"),
    [
        ({}, ["write"] * 4, 10, 5.0),
        ({"warm_first": True}, ["write", "read", "read", "read"], 14, 1.55),
        ({"parallel": False}, ["write", "read", "read", "read"], 40, 1.55),
        ({"parallel": False, "warm_first": True}, ["write", "read", "read", "read"], 40, 1.55),
    ],
)
def test_four_branches_that_share_a_prefix(
    options: dict[str, bool], what: list[str], latency_ms: float, copies: float
) -> None:
    out = simulate(four(arriving(0), **options), provider(cache=cache(1_000)))
    assert hits(out) == what
    assert answers(out) == [f"succeeded at {latency_ms}"]
    assert sum({"write": 1.25, "read": 0.1}[hit] for hit in what) == pytest.approx(copies)


def test_the_next_request_finds_the_prefix_that_the_one_before_wrote() -> None:
    out = simulate(four(arriving(0, 3, 4)), provider(20, cache=cache(1_000)))
    assert hits(out) == ["write"] * 8 + ["read"] * 4


def one_call(*arrival_ms: float, first_token_ms: float = 2) -> WorkloadInput:
    """Return requests of one call of 10 ms with a prefix."""
    return speaking(workload(arriving(*arrival_ms), [10]), prefix=100, first_token_ms=first_token_ms)


def test_each_use_keeps_a_prefix_for_another_ttl() -> None:
    # Written at 2, read at 51 and at 100; the last use is 50 ms old at 150 and it is gone.
    out = simulate(one_call(0, 51, 100, 150, 160), provider(cache=cache(50)))
    assert hits(out) == ["write", "read", "read", "write", "read"]


def test_what_nobody_uses_expires_a_ttl_after_its_first_token() -> None:
    assert hits(simulate(one_call(0, 51), provider(cache=cache(50)))) == ["write", "read"]
    assert hits(simulate(one_call(0, 52), provider(cache=cache(50)))) == ["write", "write"]


def test_a_writer_that_fails_before_its_first_token_leaves_nothing() -> None:
    # It is cut at 3 ms. With its first token at 5 nothing is there; with one at 3 or at 2 it is.
    for first_token_ms, second in ((5, "write"), (3, "read"), (2, "read")):
        one = one_call(0, 20, first_token_ms=first_token_ms)
        one = failing(one, [["x"], ["."]], attempt_ms=[[[3]], [[10]]])
        assert hits(simulate(one, provider(cache=cache(100)))) == ["write", second]


def test_a_writer_that_is_cancelled_before_its_first_token_leaves_nothing() -> None:
    one = failing(one_call(0, 20, first_token_ms=9), ["."], deadline_ms=8)
    assert hits(simulate(one, provider(cache=cache(100)))) == ["write", "write"]


def test_a_whole_answer_has_had_its_first_token() -> None:
    # The retry is quicker than the drawn first token, and done.
    one = failing(one_call(0, 30, first_token_ms=8), [["x."], [".."]], attempt_ms=[[5, 4]])
    assert hits(simulate(one, provider(cache=cache(100)))) == ["write", "write", "read"]


def test_an_attempt_that_is_turned_away_writes_nothing_however_long_that_takes() -> None:
    one = failing(one_call(0, 20, 40, first_token_ms=1), [["r"], ["."], ["."]])
    out = run_everywhere(one, provider(cache=cache(100)))
    assert hits(out) == ["write", "write", "read"]
    # Nor does the one that was there before it have to make room.
    one = failing(one_call(0, 5, first_token_ms=1), ["r."], attempt_ms=[[10, 10]], backoff_ms=20)
    assert hits(run_everywhere(one, provider(cache=cache(100)))) == ["write", "write", "write", "read"]


def test_a_second_writer_serves_where_the_first_failed() -> None:
    # Both start before a first token; the first one fails, the second one's comes at 6.
    one = failing(one_call(0, 1, 5, 6, first_token_ms=5), [["x"], ["."], ["."], ["."]], attempt_ms=[
        [[2]], [[10]], [[10]], [[10]],
    ])  # fmt: skip
    assert hits(simulate(one, provider(9, cache=cache(100)))) == ["write", "write", "write", "read"]


def test_a_call_without_a_prefix_has_nothing_to_do_with_the_cache() -> None:
    one = speaking(workload(arriving(0, 20), [10, 10]), prefix=[0, 7], first_token_ms=1)
    assert hits(simulate(one, provider(cache=cache(100)))) == ["none", "write", "none", "read"]
    assert hits(simulate(one)) == ["none"] * 4


def test_workloads_and_providers_have_prefixes_of_their_own() -> None:
    one = speaking(workload(arriving(0, 50), [10, 10], provider=(0, 1)), prefix=5, first_token_ms=1)
    other = speaking(workload(arriving(20), [10]), prefix=5, first_token_ms=1)
    given = [provider(cache=cache(100)), provider(cache=cache(20))]
    # In order of arrival: the first workload at 0, the second at 20, the first again at 50.
    assert hits(simulate([one, other], given)) == ["write", "write", "write", "read", "write"]


def test_the_least_recently_used_prefix_goes_first() -> None:
    alone = [one_call(0, 40, 60), one_call(20, 80), one_call(50, 70)]
    # Room for two: at 50 the third workload's pushes out the second's (used at 20, the first's at 40); at 70
    # both are there; at 80 the second's is written again.
    out = simulate(alone, provider(cache=cache(1_000, capacity=2)))
    assert hits(out) == ["write", "write", "read", "write", "read", "read", "write"]


def test_of_two_prefixes_used_in_one_instant_the_one_granted_first_goes_first() -> None:
    room = Cache(PrefixCache(ttl_ns=100, capacity=1))
    assert not room.use(1, (0, 0, 0), 5, 0)
    assert not room.use(0, (1, 0, 0), 5, 0)
    assert (room.holds(1, 5), room.holds(0, 5)) == (False, True)


def test_a_writer_that_was_still_writing_when_an_older_copy_expired_is_not_forgotten() -> None:
    shared = Cache(PrefixCache(ttl_ns=5))
    shared.use(0, (0, 0, 0), 0, 1)
    shared.use(0, (1, 0, 0), 0, 100)
    assert not shared.use(0, (2, 0, 0), 50, 400)
    assert (shared.holds(0, 99), shared.holds(0, 100), shared.holds(0, 105)) == (False, True, False)


def warm(outcomes: list[str], *, first_token_ms: float = 4, **options: object) -> list[str]:
    """Return the trace of a request of three branches, 10 ms each, with a leader."""
    one = speaking(workload(arriving(0), [10, 10, 10], warm_first=True), first_token_ms=first_token_ms)
    return trace(simulate(failing(one, outcomes, **options)))  # type: ignore[arg-type]


def test_the_others_follow_at_the_first_token_of_the_leader() -> None:
    assert warm([".", ".", "."]) == [
        "0.0.0 0 0-10 slot 0 ok",
        "0.1.0 4 4-14 slot 1 ok",
        "0.2.0 4 4-14 slot 2 ok",
    ]


@pytest.mark.parametrize("first_token_ms", [10, 99])
def test_a_leader_without_an_earlier_first_token_is_followed_at_its_end(first_token_ms: float) -> None:
    assert warm([".", ".", "."], first_token_ms=first_token_ms)[1:] == [
        "0.1.0 10 10-20 slot 1 ok",
        "0.2.0 10 10-20 slot 2 ok",
    ]


def test_a_leader_that_fails_after_its_first_token_has_been_followed() -> None:
    assert warm(["x.", "..", ".."], backoff_ms=20) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "0.1.0 4 4-14 slot 1 ok",
        "0.2.0 4 4-14 slot 2 ok",
        "0.0.1 30 30-40 slot 3 ok",
    ]


def test_a_leader_that_fails_before_its_first_token_is_followed_at_that_of_its_retry() -> None:
    assert warm(["x.", "..", ".."], attempt_ms=[[3, 10], [10, 10], [10, 10]], backoff_ms=20) == [
        "0.0.0 0 0-3 slot 0 server_error",
        "0.0.1 23 23-33 slot 1 ok",
        "0.1.0 27 27-37 slot 2 ok",
        "0.2.0 27 27-37 slot 3 ok",
    ]


def test_a_leader_that_fails_just_at_its_first_token_has_been_followed() -> None:
    assert warm(["x.", "..", ".."], attempt_ms=[[4, 10], [10, 10], [10, 10]], backoff_ms=20)[1:3] == [
        "0.1.0 4 4-14 slot 1 ok",
        "0.2.0 4 4-14 slot 2 ok",
    ]


def test_a_leader_that_is_turned_away_is_followed_at_the_first_token_of_its_retry() -> None:
    one = speaking(workload(arriving(0), [10, 10], warm_first=True), first_token_ms=4)
    assert trace(run_everywhere(failing(one, ["r.", ".."], backoff_ms=20))) == [
        "0.0.0 0 0-10 slot 0 rate_limited",
        "0.0.1 30 30-40 slot 1 ok",
        "0.1.0 34 34-44 slot 2 ok",
    ]


def test_a_leader_that_is_lost_lets_the_others_go_or_takes_them_with_it() -> None:
    lost = warm(["x", ".", "."], attempt_ms=[[3], [10], [10]], optional=[0])
    assert lost == [
        "0.0.0 0 0-3 slot 0 server_error",
        "0.1.0 3 3-13 slot 1 ok",
        "0.2.0 3 3-13 slot 2 ok",
    ]
    assert warm(["x", ".", "."], attempt_ms=[[3], [10], [10]]) == ["0.0.0 0 0-3 slot 0 server_error"]


def test_the_hedge_of_a_leader_may_answer_first() -> None:
    assert (
        warm(["..", "..", ".."], first_token_ms=4, attempt_ms=[[9, 9], [5, 5], [5, 5]], hedge_after_ms=2)[0]
        == "0.0.0 0 0-9 slot 0 ok"
    )
    slow = warm(["t.", "..", ".."], first_token_ms=40, attempt_ms=[[9, 3], [5, 5], [5, 5]], timeout_ms=30,
                hedge_after_ms=6)  # fmt: skip
    # The hedge's whole answer at 9 is its first token.
    assert slow[:2] == ["0.0.1 6 6-9 slot 1 ok", "0.0.0 0 0-9 slot 0 cancelled"]
    assert [line.split()[1] for line in slow[2:4]] == ["9", "9"]


def test_a_deadline_before_the_first_token_makes_no_followers() -> None:
    assert warm([".", ".", "."], deadline_ms=3) == ["0.0.0 0 0-3 slot 0 cancelled"]
    assert warm([".", ".", "."], deadline_ms=3, cancels=False) == ["0.0.0 0 0-10 slot 0 ok"]


def test_dependents_of_followers_and_of_the_leader_come_after_them() -> None:
    one = workload(arriving(0), [10, 10, 5, 5], dependencies=[[], [], [0], [1]], warm_first=True)
    out = simulate(speaking(one, first_token_ms=4))
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 ok",
        "0.1.0 4 4-14 slot 1 ok",
        "0.2.0 10 10-15 slot 2 ok",
        "0.3.0 14 14-19 slot 3 ok",
    ]


def test_a_leader_that_waits_for_a_limit_is_waited_for() -> None:
    paced = provider(limits=limits(rate(1, 100)))
    one = speaking(workload(arriving(0, 1), [10, 10], warm_first=True), first_token_ms=4)
    assert [line.split()[0] for line in trace(simulate(one, paced))] == ["0.0.0", "1.0.0", "0.1.0", "1.1.0"]
