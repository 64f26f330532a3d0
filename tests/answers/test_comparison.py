"""Scenarios beside each other: the flip with its intervals, and the honest 'cannot tell'."""

import re

import pytest

from sim.answers.comparison import Comparison, compare, differ_in_active_requests_alone, plan_differences
from sim.result.experiment import simulate
from sim.scenario import load_scenario
from tests.small_scenarios import POLICY, ROOT, WORDS, closed_load, lognormal, open_load, sample

VARIED = [{**POLICY, "duration_ms": lognormal(260)}, {**WORDS, "duration_ms": lognormal(160)}]


@pytest.fixture(scope="module")
def random_comparison() -> Comparison:
    files = (ROOT / "scenarios" / f"{name}-random.yaml" for name in ("off-peak", "peak"))
    overrides = ["load.requests=800", "experiment.warmup={count: 80}"]
    return compare([load_scenario(file, overrides) for file in files], workers=1)


def test_the_flip_is_stated_with_intervals(random_comparison: Comparison) -> None:
    off_peak, peak = random_comparison.results
    assert (off_peak.decision.decision, peak.decision.decision) == ("merge", "keep-serial")
    assert random_comparison.flip is not None
    assert (random_comparison.flip.merge_at, random_comparison.flip.keep_at) == (10, 11)
    # Both latencies and what lies between them, each with its half-width.
    calm, busy = random_comparison.sentence.split("; peak-random: ")
    assert calm.startswith("The verdict flips between 10 and 11 active requests. off-peak-random: merge")
    assert busy.startswith("keep-serial")
    for words in (calm, busy):
        assert len(re.findall(r"\d+\.\d ± \d+\.\d ms", words)) >= 2


def test_differences_are_paired_with_words_and_what_pairing_is_worth(random_comparison: Comparison) -> None:
    found = {
        (pair.scenario, pair.plan): pair.difference
        for pair in random_comparison.between_plans
        if pair.figure == "latency_ms_mean"
    }
    assert found["off-peak-random", "parallel"].words == "faster"
    assert found["peak-random", "parallel"].words == "slower"
    assert found["peak-random", "adaptive"].words == "identical in every replication"
    parallel = found["peak-random", "parallel"]
    assert parallel.half_width is not None
    assert parallel.unpaired_half_width is not None
    assert parallel.half_width < parallel.unpaired_half_width
    assert parallel.variance_reduction is not None
    assert parallel.variance_reduction > 1
    # At peak each request holds one slot: parallel is serial and a join.
    assert parallel.mean == pytest.approx(35, abs=0.5)


def test_two_replications_and_a_tiny_difference_cannot_be_told_apart() -> None:
    result = simulate(sample(open_load(38, 300), branches=VARIED), replications=2, workers=1)
    (mean, *_) = plan_differences(result)
    assert mean.difference.words == "no difference that this many replications can show"
    assert not mean.difference.decided
    assert mean.difference.more_replications is None or mean.difference.more_replications >= 1
    assert result.decision.decision == "undecided"
    assert re.fullmatch(
        r"undecided: saves -?[\d.]+ ms ± [\d.]+, and the decision flips at 92\.00 ms; "
        r"about \d+ more replications? would decide it",
        result.decision.reason,
    )


def test_only_loads_that_differ_in_their_users_have_a_flip_between_them() -> None:
    calm = sample(closed_load(10, 100))
    assert differ_in_active_requests_alone(calm, sample(closed_load(20, 200)))
    assert not differ_in_active_requests_alone(calm, sample(closed_load(20, 200), slots=21))
    assert not differ_in_active_requests_alone(calm, sample(open_load()))


def test_a_verdict_that_does_not_flip_says_so() -> None:
    found = compare([sample(closed_load(users, 100)) for users in (11, 20)], workers=1)
    assert found.flip is None
    assert found.sentence.startswith("The verdict does not flip. small: ")
