"""Rate limits against counts worked by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.check.grants import walk_provider
from sim.check.shared_compiled import first_broken
from sim.check.timeline import timeline
from sim.contract.output import RunOutput
from sim.engine.shared.limiter import FixedWindow, TokenBucket
from sim.errors import CheckError
from sim.units import NS_PER_MS
from tests.engine_inputs import arriving, closed
from tests.shared_inputs import (
    MINUTE_MS,
    SECOND_MS,
    answers,
    cache,
    checked,
    failing,
    given_of,
    limits,
    provider,
    rate,
    run_everywhere,
    simulate,
    speaking,
    starts_ms,
    trace,
    workload,
)

PER_MINUTE = rate(60, MINUTE_MS, burst=1)


def test_a_bucket_of_60_per_minute_with_burst_1_admits_exactly_one_call_per_second() -> None:
    out = simulate(workload(arriving(*[0] * 30), [10]), provider(20, limits=limits(PER_MINUTE)))
    assert starts_ms(out) == [second * SECOND_MS for second in range(30)]


def test_a_bucket_admits_its_burst_and_then_its_rate() -> None:
    out = simulate(
        workload(arriving(*[0] * 7), [10]), provider(20, limits=limits(rate(60, MINUTE_MS, burst=5)))
    )
    assert starts_ms(out) == [0, 0, 0, 0, 0, 1_000, 2_000]


def test_a_fixed_window_admits_60_at_once_and_then_none_till_the_next() -> None:
    out = simulate(
        workload(arriving(*[59_000] * 130), [10]), provider(64, limits=limits(rate(60, MINUTE_MS)))
    )
    assert starts_ms(out) == [59_000] * 60 + [60_000] * 60 + [120_000] * 10


def test_a_sub_window_rejects_a_burst_that_the_quota_of_the_minute_would_allow() -> None:
    burst = workload(arriving(0, 0, 0, 1_000), [10])
    by_minute = simulate(burst, provider(limits=limits(rate(60, MINUTE_MS), rejects=True)))
    assert answers(by_minute) == ["succeeded at 10"] * 3 + ["succeeded at 1010"]
    by_second = simulate(burst, provider(limits=limits(rate(1, SECOND_MS), rejects=True)))
    assert answers(by_second) == ["succeeded at 10", "failed at 0", "failed at 0", "succeeded at 1010"]
    assert trace(by_second) == [
        "1.0.0 0 never at 0 rejected",
        "2.0.0 0 never at 0 rejected",
        "0.0.0 0 0-10 slot 0 ok",
        "3.0.0 1000 1000-1010 slot 1 ok",
    ]


def test_a_limit_paces_admissions_and_does_not_serialise_calls() -> None:
    out = simulate(workload(arriving(0, 0, 0), [5_000]), provider(limits=limits(PER_MINUTE)))
    assert answers(out) == ["succeeded at 5000", "succeeded at 6000", "succeeded at 7000"]


def test_the_longest_of_several_waits_counts() -> None:
    both = limits(rate(60, MINUTE_MS, burst=1), rate(2, 5 * SECOND_MS))
    out = simulate(workload(arriving(*[0] * 5), [10]), provider(limits=both))
    assert starts_ms(out) == [0, 1_000, 5_000, 6_000, 10_000]


def rejected(**options: float) -> RunOutput:
    """Run two calls at 0 where one per second is admitted and others rejected."""
    one = failing(workload(arriving(0, 0), [10]), ["..."], **options)  # type: ignore[arg-type]
    return simulate(one, provider(limits=limits(PER_MINUTE, rejects=True)))


def test_a_rejected_call_comes_again_when_it_was_told_to() -> None:
    assert trace(rejected(backoff_ms=5)) == [
        "1.0.0 0 never at 0 rejected",
        "0.0.0 0 0-10 slot 0 ok",
        "1.0.1 1000 1000-1010 slot 1 ok",
    ]


@pytest.mark.parametrize(
    ("options", "start_ms"),
    [
        ({"backoff_ms": 5, "jitter": 0.1}, 1_100),
        ({"backoff_ms": 3_000}, 3_000),
        ({"backoff_ms": 3_000, "jitter": 0.5}, 4_500),
    ],
)
def test_a_pause_is_never_shorter_than_backoff_and_retry_after(
    options: dict[str, float], start_ms: float
) -> None:
    assert starts_ms(rejected(**options)) == [0, start_ms]


@pytest.mark.parametrize(("counted", "start_ms"), [(False, 1_000), (True, 2_000)])
def test_a_rejection_that_counts_is_in_the_time_it_tells(counted: bool, start_ms: float) -> None:
    one = failing(workload(arriving(0, 0), [10]), [".."])
    out = simulate(one, provider(limits=limits(PER_MINUTE, rejects=True, rejections_count=counted)))
    assert starts_ms(out) == [0, start_ms]


def test_rejections_use_up_a_window_where_they_count() -> None:
    # Two calls a second: a call of 60 tokens more than the second's quota is rejected, and counts.
    load = workload(arriving(0, 1, 2), [10])
    tight = (rate(2, SECOND_MS), rate(100, SECOND_MS, unit="tokens"))
    calls = speaking(load, inputs=[[60], [60], [10]])
    ends = ["succeeded at 10", "failed at 1", "succeeded at 12"]
    assert answers(simulate(calls, provider(limits=limits(*tight, rejects=True)))) == ends
    counts = limits(*tight, rejects=True, rejections_count=True)
    assert answers(simulate(calls, provider(limits=counts))) == [*ends[:2], "failed at 2"]


def test_a_rejected_branch_cancels_its_siblings_and_the_dispatch_goes_on() -> None:
    # The first call takes the second's quota; its sibling and then the other request's calls are rejected.
    out = simulate(
        workload(arriving(0, 1), [10, 10]), provider(limits=limits(rate(1, SECOND_MS), rejects=True))
    )
    assert trace(out) == [
        "0.1.0 0 never at 0 rejected",
        "0.0.0 0 0-0 slot 0 cancelled",
        "1.0.0 1 never at 1 rejected",
        "1.1.0 1 never at 1 cancelled",
    ]
    assert answers(out) == ["failed at 0", "failed at 1"]


def test_a_user_whose_call_was_rejected_asks_again_within_the_instant() -> None:
    out = simulate(workload(closed(1, 3), [10]), provider(limits=limits(rate(1, 20), rejects=True)))
    assert answers(out) == ["succeeded at 10", "failed at 10", "failed at 10"]


def test_a_rejected_join_comes_again_or_fails_the_request() -> None:
    one = workload(arriving(0), [10], join_slot_ms=5)
    only_one = provider(limits=limits(rate(1, SECOND_MS), rejects=True))
    assert answers(simulate(one, only_one)) == ["failed at 10"]
    assert answers(simulate(failing(one, [".."]), only_one)) == ["succeeded at 1005"]


BUCKET = rate(100, SECOND_MS, burst=100, unit="tokens")
WINDOW = rate(100, SECOND_MS, unit="tokens")


@pytest.mark.parametrize(
    ("limit", "arrivals", "reserved", "used", "starts"),
    [
        # A bucket of 100 that gains 0.1 per ms. The first reserves all and gives 80 back at 10: 81.
        (BUCKET, (0, 0), 100, 20, [0, 200]),
        # It used all that it reserved.
        (BUCKET, (0, 0), 100, 100, [0, 1_000]),
        # It used 100 more than it reserved: 90 + 1 - 100 = -9 at 10, and the next needs 10.
        (BUCKET, (0, 10), 10, 110, [0, 200]),
        # What is given back in the window in which it was reserved is there at once,
        (WINDOW, (0, 0), 90, 10, [0, 10]),
        # what was used beyond the reservation is missing until the next window,
        (WINDOW, (0, 10), 10, 110, [0, 1_000]),
        # and after the window it changes nothing: the second window has 90 for the second call only.
        (WINDOW, (995, 995, 995), 90, 10, [995, 1_000, 1_010]),
    ],
)
def test_a_call_reserves_output_and_settles_what_it_used(
    limit: object, arrivals: tuple[float, ...], reserved: int, used: int, starts: list[float]
) -> None:
    one = speaking(workload(arriving(*arrivals), [10]), outputs=used, reserved_outputs=reserved)
    assert starts_ms(simulate(one, provider(limits=limits(limit)))) == starts  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("unit", "starts"),
    [
        ("tokens", [0, 1_000, 2_000]),
        ("input_tokens", [0, 0, 1_000]),
        ("output_tokens", [0, 0, 0]),
        ("calls", [0, 0, 0]),
    ],
)
def test_each_limit_counts_its_unit(unit: str, starts: list[float]) -> None:
    one = speaking(workload(arriving(0, 0, 0), [2_500]), inputs=40, outputs=30, reserved_outputs=30)
    out = simulate(one, provider(limits=limits(rate(100, SECOND_MS, unit=unit))))
    assert starts_ms(out) == starts


def test_a_call_larger_than_a_bucket_waits_till_it_is_full_and_leaves_a_debt() -> None:
    one = speaking(workload(arriving(0, 0, 0), [10]), inputs=[[25], [5], [25]])
    ten = rate(10, SECOND_MS, burst=10, unit="input_tokens")
    # -15 at 0, 5 at 2,000 and 0 after the second call, full at 3,000.
    assert starts_ms(simulate(one, provider(limits=limits(ten)))) == [0, 2_000, 3_000]


def test_a_call_larger_than_a_window_waits_for_an_empty_one() -> None:
    one = speaking(workload(arriving(0, 0, 0), [10]), inputs=[[5], [25], [5]])
    out = simulate(one, provider(limits=limits(rate(10, SECOND_MS, unit="input_tokens"))))
    assert starts_ms(out) == [0, 1_000, 2_000]


@pytest.mark.parametrize(("counted", "start_ms"), [(True, 1_000), (False, 200)])
def test_cached_tokens_count_or_not(counted: bool, start_ms: float) -> None:
    # Of 100 tokens the second call reads 80 from the cache: 20 are there at 200, 100 at 1,000.
    one = speaking(workload(arriving(0, 50), [10]), inputs=100, prefix=80, first_token_ms=1)
    given = provider(limits=limits(BUCKET, cached_tokens_count=counted), cache=cache(MINUTE_MS))
    out = simulate(one, given)
    assert starts_ms(out) == [0, start_ms]
    assert out.attempts.hit.tolist() == [0, 1]


FREE_CACHED = limits(rate(100, SECOND_MS, unit="input_tokens"), cached_tokens_count=False)


def test_who_waits_for_a_limit_goes_ahead_when_its_prefix_can_be_read() -> None:
    # The second needs 100 tokens, of which the first has left none, and from its first token on it needs 0.
    one = speaking(workload(arriving(0, 0), [300]), inputs=100, prefix=100, first_token_ms=100)
    out = run_everywhere(one, provider(10, limits=FREE_CACHED, cache=cache(MINUTE_MS)))
    assert trace(out) == ["0.0.0 0 0-300 slot 0 ok", "1.0.0 0 100-400 slot 1 ok"]
    assert out.attempts.hit.tolist() == [0, 1]


@pytest.mark.parametrize(("outcome", "lasts_ms"), [("x", 60), ("r", 200)])
def test_a_first_token_that_never_comes_is_waited_for_in_vain_and_the_next_one_is_not(
    outcome: str, lasts_ms: float
) -> None:
    # The first is done for at its end, without a first token; that of the second, at 250, counts.
    two = rate(200, SECOND_MS, unit="input_tokens")
    one = workload(arriving(0, 0, 0, 300), [500])
    one = speaking(one, inputs=100, prefix=100, first_token_ms=[[70], [250], [70], [70]])
    one = failing(one, [[outcome], ["."], ["."], ["."]], attempt_ms=[[[lasts_ms]], [[500]], [[500]], [[500]]])
    out = run_everywhere(
        one, provider(10, limits=limits(two, cached_tokens_count=False), cache=cache(MINUTE_MS))
    )
    assert starts_ms(out) == [0, 0, 250, 300]


def test_who_waits_for_a_limit_waits_longer_when_its_prefix_is_forgotten() -> None:
    # A bucket of 150 that gains 0.1 per ms, empty at 0. At 30 the second needs 50, there at 500; from 60 on,
    # the prefix was used 50 ms ago at its first token, it needs 150, there at 1,500.
    bucket = limits(rate(100, SECOND_MS, 150, unit="input_tokens"), cached_tokens_count=False)
    one = speaking(workload(arriving(0, 30), [20]), inputs=150, prefix=100, first_token_ms=10)
    assert starts_ms(run_everywhere(one, provider(10, limits=bucket, cache=cache(50)))) == [0, 1_500]
    assert starts_ms(run_everywhere(one, provider(10, limits=bucket, cache=cache(MINUTE_MS)))) == [0, 500]


def test_who_waits_for_a_limit_waits_longer_when_its_prefix_makes_room_for_another() -> None:
    # As above, and at 100 a call that goes first takes the place of the prefix, and 10 tokens.
    bucket = limits(rate(100, SECOND_MS, 150, unit="input_tokens"), cached_tokens_count=False)
    one = speaking(workload(arriving(0, 30), [20]), inputs=150, prefix=100, first_token_ms=10)
    first = speaking(workload(arriving(100), [20], priority=1), inputs=10, prefix=5, first_token_ms=10)
    shared = provider(10, "priority", limits=bucket, cache=cache(MINUTE_MS, capacity=1))
    assert starts_ms(run_everywhere([one, first], shared)) == [0, 100, 1_600]


def test_what_another_gives_back_lets_who_waits_for_a_limit_go_ahead() -> None:
    # It reserved 80 and used none.
    one = speaking(workload(arriving(0, 0), [10]), outputs=[[0], [50]], reserved_outputs=80)
    shared = provider(limits=limits(rate(100, SECOND_MS, unit="output_tokens")))
    assert starts_ms(run_everywhere(one, shared)) == [0, 10]


def test_attempts_that_end_together_are_settled_in_the_order_of_their_grants() -> None:
    # One per ms: full, 20, at 10. There 3 that come back first are too many; the 3 used beyond leave 17.
    low = speaking(workload(arriving(0), [10]), outputs=7, reserved_outputs=4)
    high = speaking(workload(arriving(0), [10], priority=2), outputs=1, reserved_outputs=4)
    last = speaking(workload(arriving(10), [10], priority=1), outputs=20, reserved_outputs=20)
    bucket = rate(1, 1, burst=20, unit="output_tokens")
    out = run_everywhere([low, high, last], provider(4, "priority", limits=limits(bucket)))
    assert trace(out) == ["0.0.0 0 0-10 slot 1 ok", "1.0.0 0 0-10 slot 0 ok", "2.0.0 10 13-23 slot 2 ok"]


def test_a_call_that_waits_although_the_limit_admits_it_is_found() -> None:
    one = speaking(workload(arriving(0, 0), [300]), inputs=100, prefix=100, first_token_ms=100)
    cached = given_of(one, provider(10, limits=FREE_CACHED, cache=cache(MINUTE_MS)))
    paced = given_of(workload(arriving(0, 0), [10]), provider(limits=limits(PER_MINUTE)))
    for run, admitted_ms in ((cached, 100), (paced, 1_000)):
        out = checked(run)
        table, late_ns = out.attempts, np.where(out.attempts.number == 1, 500 * NS_PER_MS, 0)
        table = replace(table, start_ns=table.start_ns + late_ns, finish_ns=table.finish_ns + late_ns)
        late = replace(out, attempts=table, completion_ns=out.completion_ns + np.array([0, 500 * NS_PER_MS]))
        line = timeline(run, late)
        with pytest.raises(CheckError) as error:
            walk_provider(run, late, line, 0)
        assert str(error.value).splitlines()[0] == (
            "check violated (simpy engine): attempt 0 at call 0 of request 1 waited for a limit that "
            f"admitted it at {admitted_ms * NS_PER_MS} ns"
        )
        broken = first_broken(run, late)
        assert broken == ("has an attempt that waited for a limit that admitted it", 1)


def waiting_line(deadline_ms: float | None) -> RunOutput:
    """Run a call of 90 tokens, one of 50 that the limit makes wait, and one of 5 behind it."""
    one = speaking(workload(arriving(0, 1, 20), [10]), inputs=[[90], [50], [5]])
    one = failing(one, ["."], deadline_ms=deadline_ms)
    return simulate(one, provider(limits=limits(rate(100, SECOND_MS, unit="tokens"))))


def test_the_first_in_line_that_a_limit_refuses_blocks_those_behind_it() -> None:
    assert starts_ms(waiting_line(None)) == [0, 1_000, 1_000]


def test_those_behind_go_at_once_when_the_first_in_line_gives_up() -> None:
    out = waiting_line(99)
    assert answers(out) == ["succeeded at 10", "timed_out at 100", "succeeded at 110"]


def test_those_behind_go_at_once_when_the_join_no_longer_needs_the_first_in_line() -> None:
    # Its sibling at the other provider is enough for the join, which goes on until 1,010.
    tight = provider(limits=limits(rate(100, SECOND_MS, unit="tokens")))
    first = workload(arriving(0), [10, 10], provider=(0, 1), join_ms=1_000)
    first = failing(speaking(first, inputs=[0, 50]), [".", "."], needs=1)
    before, behind = (workload(arriving(at), [30], provider=(1,)) for at in (0, 1))
    out = simulate([speaking(before, inputs=90), first, speaking(behind, inputs=5)], [provider(), tight])
    assert trace(out) == [
        "1.0.0 0 0-10 slot 0 ok",
        "1.1.0 0 never at 10 cancelled",
        "0.0.0 0 0-30 slot 0 ok",
        "2.0.0 1 10-40 slot 1 ok",
    ]


def test_a_call_of_higher_priority_overtakes_one_that_waits_for_a_limit() -> None:
    low, high = workload(arriving(0, 0), [10]), workload(arriving(500), [10], priority=1)
    out = simulate([low, high], provider(allocation="priority", limits=limits(PER_MINUTE)))
    assert answers(out) == ["succeeded at 10", "succeeded at 2010", "succeeded at 1010"]


@given(
    st.integers(1, 5),
    st.integers(1, 20),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30)), max_size=40),
)
def test_a_bucket_never_admits_more_than_its_burst_and_its_rate(
    amount: int, window_ms: int, burst: int, asked: list[tuple[int, int]]
) -> None:
    bucket = TokenBucket(rate(amount, window_ms, burst))
    now, admitted = 0, []
    for units, pause_ms in asked:
        now += pause_ms * NS_PER_MS
        now += bucket.wait_ns(min(units, burst), now)
        assert bucket.wait_ns(min(units, burst), now) == 0
        bucket.take(min(units, burst), now)
        admitted.append((now, min(units, burst)))
    window_ns = window_ms * NS_PER_MS
    for first, (since_ns, _) in enumerate(admitted):
        for last in range(first, len(admitted)):
            units = sum(units for _, units in admitted[first : last + 1])
            assert units * window_ns <= burst * window_ns + amount * (admitted[last][0] - since_ns)


def test_a_bucket_admits_no_nanosecond_early() -> None:
    # Three per second, each a third of a second and then the next whole nanosecond after the one before:
    # the bucket is full by then, and what would flow over is lost.
    bucket = TokenBucket(rate(3, SECOND_MS, burst=1))
    times = []
    now = 0
    for _ in range(3):
        now += bucket.wait_ns(1, now)
        bucket.take(1, now)
        times.append(now)
    assert times == [0, 333_333_334, 666_666_668]


def test_a_window_gives_nothing_back_that_was_taken_in_an_earlier_one() -> None:
    window = FixedWindow(rate(10, SECOND_MS))
    window.take(10, 999_999_999)
    assert window.wait_ns(1, 999_999_999) == 1
    window.take(10, 1_000_000_000)
    window.give_back(9, 999_999_999, 1_500_000_000)
    assert window.wait_ns(1, 1_500_000_000) == 500_000_000
