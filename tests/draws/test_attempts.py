"""Draws of attempts and tokens: the same streams as without faults, prefix-stable, with the stated odds."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.contract.output import ATTEMPT_OUTCOMES, OK, RATE_LIMITED, SERVER_ERROR, TIMED_OUT
from sim.contract.run import PPM, Faults, Tokens
from sim.draws.attempts import backoff_ns, draw_faults, draw_tokens
from sim.draws.drawing import draw
from sim.draws.streams import Streams
from sim.scenario import Scenario, load_scenario
from sim.scenario.failures import Retry
from sim.units import NS_PER_MS

PEAK = Path(__file__).parents[2] / "scenarios/peak-random.yaml"
FAULTS = "workflow.failures={server_error: 0.2, rate_limited: 0.1, timeout: 0.05, rejection_ms: 30}"
TIMEOUTS = tuple(f"workflow.branches[{branch}].timeout_ms=900" for branch in range(2))
RETRY = "workflow.retry={attempts: 3, backoff_ms: 100, multiplier: 3, max_backoff_ms: 250, jitter: 0.4}"
TOKENS = (
    "workflow.branches[1].duration_ms={distribution: tokens, overhead_ms: 20, prefill_ms_per_token: 0.01, "
    "input_tokens: {distribution: uniform, low_tokens: 3200, high_tokens: 4200}, "
    "output_tokens: {distribution: exponential, mean_tokens: 100.5}, decode_ms_per_token: 1}",
    "workflow.branches[0].first_token_ms=90",
    "workflow.shared_context.prefix_reuse_ratio=0",
    "provider.limits={tpm: 500000}",
    "provider.prefix_cache={}",
)


def shaken(*more: str) -> Scenario:
    return load_scenario(PEAK, (FAULTS, *TIMEOUTS, RETRY, *more))


def faults_of(scenario: Scenario) -> Faults:
    faults = draw_faults(scenario, streams_of(scenario), draw(scenario, 0))
    assert faults is not None
    return faults


def tokens_of(scenario: Scenario) -> Tokens:
    tokens = draw_tokens(scenario, streams_of(scenario), draw(scenario, 0))
    assert tokens is not None
    return tokens


def streams_of(scenario: Scenario) -> Streams:
    return Streams(scenario.experiment.seed, 0, scenario.part_name)


def test_without_faults_and_limits_there_is_nothing_to_draw() -> None:
    plain = load_scenario(PEAK)
    assert draw_faults(plain, streams_of(plain), draw(plain, 0)) is None
    assert draw_tokens(plain, streams_of(plain), draw(plain, 0)) is None


def test_a_first_attempt_takes_the_time_that_it_would_take_without_faults() -> None:
    plain, faults = draw(load_scenario(PEAK), 0), faults_of(shaken())
    first, turned_away = faults.service_ns[:, :, 0], faults.outcome[:, :, 0] == RATE_LIMITED
    np.testing.assert_array_equal(first[~turned_away], plain.service_ns[~turned_away])
    assert set(first[turned_away].tolist()) == {30 * NS_PER_MS}


def test_further_attempts_take_times_of_their_own() -> None:
    faults = faults_of(shaken("workflow.failures={server_error: 0.2}"))
    assert faults.service_ns.shape == (2000, 2, 3)
    first, second, third = np.moveaxis(faults.service_ns, 2, 0)
    assert np.all(first != second)
    assert np.all(second != third)
    assert third.mean(axis=0) / NS_PER_MS == pytest.approx([260, 160], rel=0.05)


def test_values_of_a_traces_row_stay_the_same_in_every_attempt() -> None:
    trace = load_scenario(
        PEAK.with_name("trace.yaml"),
        ["workflow.failures={server_error: 0.5}", "workflow.retry={attempts: 2}"],
    )
    faults = faults_of(trace)
    np.testing.assert_array_equal(faults.service_ns[:, :, 0], faults.service_ns[:, :, 1])


def test_asking_for_more_requests_leaves_the_first_ones_as_they_were() -> None:
    few, many = faults_of(shaken("load.requests=50")), faults_of(shaken("load.requests=400"))
    for name in ("outcome", "service_ns", "jitter_ppm"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name)[:50])
    few_tokens, many_tokens = (tokens_of(shaken(*TOKENS, f"load.requests={count}")) for count in (50, 400))
    for name in ("input", "output", "first_token_ns"):
        np.testing.assert_array_equal(getattr(few_tokens, name), getattr(many_tokens, name)[:50])


def test_more_attempts_leave_the_first_ones_as_they_were() -> None:
    three, five = faults_of(shaken()), faults_of(shaken("workflow.retry.attempts=5"))
    assert (three.most_attempts, five.most_attempts) == (3, 5)
    np.testing.assert_array_equal(three.outcome, five.outcome[:, :, :3])
    np.testing.assert_array_equal(three.service_ns, five.service_ns[:, :, :3])


@pytest.mark.parametrize(("outcome", "odds"), [(SERVER_ERROR, 0.2), (RATE_LIMITED, 0.1), (TIMED_OUT, 0.05)])
def test_causes_have_their_odds_in_every_attempt(outcome: int, odds: float) -> None:
    shares = (faults_of(shaken("load.requests=20000")).outcome == outcome).mean(axis=0)
    margin = 4 * (odds * (1 - odds) / 20_000) ** 0.5
    assert shares.shape == (2, 3)
    assert np.all(np.abs(shares - odds) < margin), ATTEMPT_OUTCOMES[outcome]


@pytest.mark.parametrize(
    ("failures", "outcome"),
    [
        ("{server_error: 0}", OK),
        ("{server_error: 1}", SERVER_ERROR),
        ("{rate_limited: 1}", RATE_LIMITED),
        ("{timeout: 1}", TIMED_OUT),
    ],
)
def test_what_is_certain_always_happens(failures: str, outcome: int) -> None:
    assert np.all(faults_of(shaken(f"workflow.failures={failures}")).outcome == outcome)


def test_a_branch_may_fail_in_its_own_way() -> None:
    outcome = faults_of(shaken("workflow.branches[1].failures={server_error: 1}")).outcome
    assert np.all(outcome[:, 1] == SERVER_ERROR)
    assert set(outcome[:, 0].ravel().tolist()) == {OK, SERVER_ERROR, RATE_LIMITED, TIMED_OUT}


def test_jitter_is_upward_only_and_up_to_its_share_of_the_pause() -> None:
    jitter = faults_of(shaken()).jitter_ppm
    assert jitter.min() >= 0
    assert 0.39 * PPM < jitter.max() <= 0.4 * PPM
    assert jitter.mean() == pytest.approx(0.2 * PPM, rel=0.02)
    assert not faults_of(shaken("workflow.retry.jitter=0")).jitter_ppm.any()


def test_pauses_grow_up_to_their_maximum() -> None:
    assert faults_of(shaken()).backoff_ns == (100 * NS_PER_MS, 250 * NS_PER_MS, 250 * NS_PER_MS)


@given(
    attempt=st.integers(0, 19),
    backoff_ms=st.floats(0, 1e8),
    multiplier=st.floats(1, 100),
)
def test_a_pause_is_never_shorter_than_the_one_before(
    attempt: int, backoff_ms: float, multiplier: float
) -> None:
    retry = Retry(attempts=20, backoff_ms=backoff_ms, multiplier=multiplier, max_backoff_ms=1e8)
    assert backoff_ns(retry, attempt) <= backoff_ns(retry, attempt + 1) <= 10**8 * NS_PER_MS


def test_what_is_stated_is_handed_on() -> None:
    scenario = shaken(
        "workflow.branches[0].hedge_after_ms=400.5",
        "workflow.branches[1].optional=true",
        "workflow.deadline_ms=2000",
        "workflow.siblings=finish",
        "workflow.retry.budget_ratio=0.15",
    )
    faults = faults_of(scenario)
    assert faults.timeout_ns == (900 * NS_PER_MS, 900 * NS_PER_MS)
    assert faults.hedge_after_ns == (400_500_000, None)
    assert faults.optional == (False, True)
    assert (faults.deadline_ns, faults.retry_budget_ppm) == (2000 * NS_PER_MS, 150_000)
    assert (faults.needs, faults.cancels) == (None, False)
    assert faults_of(shaken("workflow.join_needs=1")).needs == 1


def test_a_join_that_holds_a_slot_is_a_call_that_nothing_goes_wrong_with() -> None:
    more = ("workflow.join_holds_slot=true", "workflow.branches[0].hedge_after_ms=400")
    scenario, without = shaken(*more), faults_of(shaken(more[1]))
    faults, join_ns = faults_of(scenario), draw(scenario, 0).join_ns
    assert faults.outcome.shape == faults.service_ns.shape == faults.jitter_ppm.shape == (2000, 3, 3)
    assert (faults.outcome[:, 2] == OK).all()
    assert not faults.jitter_ppm[:, 2].any()
    np.testing.assert_array_equal(faults.service_ns[:, 2], np.repeat(join_ns[:, None], 3, axis=1))
    assert faults.timeout_ns == (900 * NS_PER_MS, 900 * NS_PER_MS, None)
    assert faults.hedge_after_ns == (400 * NS_PER_MS, None, None)
    assert faults.optional == (False, False)
    for name in ("outcome", "service_ns", "jitter_ppm"):
        np.testing.assert_array_equal(getattr(faults, name)[:, :2], getattr(without, name))
    at_once = faults_of(shaken(*more, "workflow.join_overhead_ms=0"))
    assert (at_once.service_ns[:, 2] == 1).all()


def test_tokens_are_those_of_the_duration_made_of_them() -> None:
    scenario = load_scenario(PEAK, TOKENS)
    tokens, service_ns = tokens_of(scenario), draw(scenario, 0).service_ns
    again_ns = (20 + 0.01 * tokens.input[:, 1] + tokens.output[:, 1]) * NS_PER_MS
    # Token counts are whole numbers in limits, and are not rounded in the duration.
    assert np.max(np.abs(again_ns - service_ns[:, 1])) <= 0.51 * NS_PER_MS
    first_ns = (20 + 0.01 * tokens.input[:, 1]) * NS_PER_MS
    assert np.max(np.abs(tokens.first_token_ns[:, 1] - first_ns)) <= 1
    assert tokens.reserved_output == (0, 101)
    assert tokens.prefix == (3200, 3200)


def test_a_first_token_comes_no_later_than_the_answer() -> None:
    tokens, service_ns = tokens_of(load_scenario(PEAK, TOKENS)), draw(load_scenario(PEAK), 0).service_ns
    np.testing.assert_array_equal(tokens.first_token_ns[:, 0], np.minimum(service_ns[:, 0], 90 * NS_PER_MS))


def test_a_branch_that_carries_the_context_sends_it_unless_it_says_otherwise() -> None:
    limits = "provider.limits={tpm: 500000}"
    assert set(tokens_of(load_scenario(PEAK, [limits])).input.ravel().tolist()) == {3200}
    stated = load_scenario(PEAK, [limits, "workflow.branches[1].input_tokens=50"])
    assert tokens_of(stated).input[0].tolist() == [3200, 50]
    without = load_scenario(PEAK, [limits, "workflow.branches[1].carries_shared_context=false"])
    assert tokens_of(without).input[0].tolist() == [3200, 0]


def test_stated_tokens_are_drawn_and_reserved() -> None:
    scenario = load_scenario(
        PEAK,
        [
            "provider.limits={otpm: 5000}",
            "workflow.branches[0].output_tokens={distribution: exponential, mean_tokens: 200}",
            "workflow.branches[0].max_output_tokens=900",
            "workflow.branches[1].output_tokens=75",
        ],
    )
    tokens = tokens_of(scenario)
    assert tokens.output[:, 0].mean() == pytest.approx(200, rel=0.1)
    assert set(tokens.output[:, 1].tolist()) == {75}
    assert tokens.reserved_output == (900, 75)
    assert (tokens.first_token_ns == 1).all()


def test_tokens_of_a_trace_are_those_of_its_rows() -> None:
    scenario = load_scenario(PEAK.with_name("trace.yaml"), ["provider.limits={tpm: 500000}"])
    tokens = tokens_of(scenario)
    columns = scenario.trace.columns
    by_trace = [
        index for index, branch in enumerate(scenario.workflow.branches) if branch.states_input_tokens
    ]
    assert by_trace
    for index in by_trace:
        np.testing.assert_array_equal(tokens.input[:, index], columns["input_tokens"])
    mean = scenario.trace.column_means["output_tokens"]
    assert tokens.reserved_output == (0, int(np.ceil(mean)))


def test_a_join_that_holds_a_slot_is_a_call_without_tokens() -> None:
    scenario = load_scenario(PEAK, ["provider.limits={rpm: 60}", "workflow.join_holds_slot=true"])
    tokens = tokens_of(scenario)
    assert tokens.input.shape == tokens.output.shape == tokens.first_token_ns.shape == (2000, 3)
    assert not tokens.input[:, 2].any()
    assert tokens.prefix == tokens.reserved_output == (0, 0, 0)
