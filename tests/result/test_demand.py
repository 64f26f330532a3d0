"""What a request asks of each provider, by hand."""

import math
from typing import Any

import pytest

from sim.result.demand import Demand, Way, request_in
from sim.scenario import Scenario
from tests.small_scenarios import CONTEXT, POLICY, WORDS, exponential, open_load, sample

SERIAL, PARALLEL, WARM_FIRST = Way(False), Way(True), Way(True, warms=True)
TOKENS = {"output_tokens": 100, "max_output_tokens": 400}
CACHE = {"ttl_s": 10, "min_tokens": 1000}


def limited(
    limits: dict[str, Any], *, workflow: Any = None, branches: Any = None, **provider: Any
) -> Scenario:
    """Return the sample workflow, its branches with output, at a provider with limits."""
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "limited",
            "provider": {"concurrency": 20, "limits": limits, **provider},
            "workflow": {
                "name": "one",
                "branches": branches or [POLICY | TOKENS, WORDS | TOKENS],
                "shared_context": CONTEXT,
                **(workflow or {}),
            },
            "load": open_load(),
        }
    )


def demand(scenario: Scenario, way: Way = PARALLEL, rate: float = 1.0, provider: str = "provider") -> Demand:
    return request_in(scenario, way).demands(rate)[provider]


def test_a_plain_request_asks_for_its_work_and_its_calls() -> None:
    for way in (SERIAL, PARALLEL):
        found = demand(sample(), way)
        assert (found.slot_s, found.calls) == pytest.approx((0.42, 2))


def test_a_join_that_holds_a_slot_is_work_of_parallel_requests_at_the_first_provider() -> None:
    branches = [POLICY | {"provider": "b"}, WORDS | {"provider": "b"}]
    scenario = Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "two",
            "providers": {"a": {"concurrency": 5}, "b": {"concurrency": 200}},
            "workflow": {
                "name": "one",
                "branches": branches,
                "join_overhead_ms": 35,
                "join_holds_slot": True,
            },
            "load": open_load(),
        }
    )
    parallel = request_in(scenario, PARALLEL).demands(1)
    assert (parallel["a"].slot_s, parallel["a"].calls) == (0.035, 1)
    assert (parallel["b"].slot_s, parallel["b"].calls) == pytest.approx((0.42, 2))
    assert "a" not in request_in(scenario, SERIAL).demands(1)


def test_tokens_are_those_that_are_settled() -> None:
    found = demand(limited({"tpm": 400_000}))
    assert (found.input_tokens, found.output_tokens, found.tokens) == (6400, 200, 6600)
    assert found.reserved_tokens == 7200


def test_what_a_window_has_not_settled_counts_as_it_was_reserved() -> None:
    window = {"tpm": 400_000, "enforcement": "sub_window", "sub_window_s": 1}
    found = demand(limited(window))
    # 26 % of one call's windows and 16 % of the other's are over before it ends.
    assert found.output_tokens == pytest.approx(200 + 0.26 * 300 + 0.16 * 300)


@pytest.mark.parametrize(("counts", "sent"), [(True, 6400), (False, 2 * 0.4 * 3200)])
def test_cached_tokens_count_or_do_not_at_the_stated_reuse(counts: bool, sent: float) -> None:
    assert demand(limited({"itpm": 1, "cached_tokens_count": counts})).input_tokens == pytest.approx(sent)


@pytest.mark.parametrize(
    ("way", "misses"), [(PARALLEL, 2), (SERIAL, 1), (WARM_FIRST, 1)], ids=["parallel", "serial", "warm first"]
)
def test_a_cache_is_missed_by_those_that_nobody_came_before(way: Way, misses: int) -> None:
    branches = [one | {"first_token_ms": 50} for one in (POLICY, WORDS)]
    context = {"tokens": 3200}
    scenario = limited(
        {"itpm": 1, "cached_tokens_count": False},
        branches=branches,
        workflow={"shared_context": context},
        prefix_cache=CACHE,
    )
    assert demand(scenario, way, rate=0.05).input_tokens == pytest.approx(misses * 3200 * math.exp(-0.5))
    assert demand(scenario, way, rate=1000).input_tokens == pytest.approx(0)


def test_every_attempt_counts_its_tokens() -> None:
    workflow = {"failures": {"server_error": 0.1}, "retry": {"attempts": 2}}
    found = demand(limited({"tpm": 1}, workflow=workflow))
    assert (found.calls, found.tokens) == pytest.approx((2.2, 1.1 * 6600))


@pytest.mark.parametrize(("way", "calls"), [(PARALLEL, 2.8), (SERIAL, 1 + 0.8 + 0.64)])
def test_what_waits_for_a_lost_call_is_not_made(way: Way, calls: float) -> None:
    branches = [
        {"id": "first", "duration_ms": 100},
        {"id": "beside", "duration_ms": 100},
        {"id": "after", "duration_ms": 100, "depends_on": ["first"]},
    ]
    scenario = sample(open_load(), branches=branches, workflow={"failures": {"server_error": 0.2}})
    assert demand(scenario, way).calls == pytest.approx(calls)


@pytest.mark.parametrize(("way", "calls"), [(PARALLEL, 2.5), (SERIAL, 2.5)])
def test_a_lost_call_that_is_optional_stops_only_what_waits_for_it(way: Way, calls: float) -> None:
    branches = [
        {"id": "first", "duration_ms": 100, "optional": True, "failures": {"server_error": 0.5}},
        {"id": "beside", "duration_ms": 100},
        {"id": "after", "duration_ms": 100, "depends_on": ["first"]},
    ]
    assert demand(sample(open_load(), branches=branches), way).calls == pytest.approx(calls)


def test_a_serial_request_stops_when_the_join_has_enough() -> None:
    branches = [{"id": name, "duration_ms": 100} for name in "abcd"]
    scenario = sample(open_load(), branches=branches, workflow={"join_needs": 2})
    assert demand(scenario, SERIAL).calls == 2
    lossy = sample(
        open_load(), branches=branches, workflow={"join_needs": 2, "failures": {"server_error": 0.5}}
    )
    # The third is made unless the first two answer, the fourth unless two of three do.
    assert demand(lossy, SERIAL).calls == pytest.approx(2 + 0.75 + 0.5)


@pytest.mark.parametrize(("siblings", "work_s"), [("cancel", 0.3), ("finish", 0.4)])
def test_a_race_ends_for_all_at_once_unless_calls_run_on(siblings: str, work_s: float) -> None:
    branches = [
        {"id": "fast", "duration_ms": 100},
        {"id": "same", "duration_ms": 100},
        {"id": "slow", "duration_ms": 200},
    ]
    scenario = sample(open_load(), branches=branches, workflow={"join_needs": 2, "siblings": siblings})
    assert demand(scenario).slot_s == pytest.approx(work_s, rel=1e-4)
    assert request_in(scenario, PARALLEL).unloaded_ms == pytest.approx(100 + 35, rel=1e-4)


def test_a_race_of_exponentials_is_a_sum_of_minima() -> None:
    branches = [{"id": f"b{number}", "duration_ms": exponential(100)} for number in range(5)]
    request = request_in(sample(open_load(), branches=branches, workflow={"join_needs": 3}), PARALLEL)
    assert request.unloaded_ms == pytest.approx(35 + 20 + 25 + 100 / 3, rel=1e-4)
    assert request.demands(1)["provider"].slot_s == pytest.approx(0.3, rel=1e-4)


def test_a_race_of_many_takes_their_number_to_be_normal() -> None:
    branches = [{"id": f"b{number}", "duration_ms": exponential(100)} for number in range(40)]
    request = request_in(sample(open_load(), branches=branches, workflow={"join_needs": 20}), PARALLEL)
    assert request.unloaded_ms == pytest.approx(35 + sum(100 / left for left in range(21, 41)), rel=0.01)
    assert request.demands(1)["provider"].slot_s == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize(
    ("way", "unloaded_ms"),
    [(SERIAL, 420), (PARALLEL, 295), (Way(True, max_degree=1), 455), (WARM_FIRST, 50 + 260 + 35)],
    ids=["serial", "parallel", "one slot", "warm first"],
)
def test_the_unloaded_latency(way: Way, unloaded_ms: float) -> None:
    branches = [WORDS | {"first_token_ms": 50}, POLICY | {"first_token_ms": 50}]
    assert request_in(sample(branches=branches), way).unloaded_ms == pytest.approx(unloaded_ms)


def test_the_unloaded_latency_goes_along_the_longest_chain_with_its_pauses() -> None:
    branches = [
        {"id": "a", "duration_ms": 100, "failures": {"server_error": 0.5}},
        {"id": "b", "duration_ms": 120},
        {"id": "c", "duration_ms": 100, "depends_on": ["a"]},
    ]
    workflow = {"retry": {"attempts": 2, "backoff_ms": 40, "jitter": 0}}
    request = request_in(sample(branches=branches, workflow=workflow), PARALLEL)
    assert request.unloaded_ms == pytest.approx(150 + 20 + 0.75 * 100 + 35)
