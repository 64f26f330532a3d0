"""Wilson intervals of shares of requests, and how alike the requests of one run are."""

import math

import numpy as np
import pytest
from scipy import stats

from sim.statistics.interval import Estimate
from sim.statistics.percentile import Missing
from sim.statistics.proportion import (
    NEVER_NS,
    design_effect,
    outline,
    proportion,
    shares_above_median,
    wilson,
)
from sim.units import IntArray

NORMAL = 1.959963984540054


def alike(count: int, replications: int, seed: int = 1) -> list[IntArray]:
    """Return latencies that do not depend on their replication."""
    random = np.random.default_rng(seed)
    return [np.sort(random.integers(1, 10**9, count)) for _ in range(replications)]


def test_wilsons_interval_is_scipys() -> None:
    for successes, count in ((0, 10), (3, 10), (10, 10), (998, 1000)):
        expected = stats.binomtest(successes, count).proportion_ci(method="wilson")
        assert wilson(successes / count, count, NORMAL) == pytest.approx((expected.low, expected.high))


def test_a_share_of_one_everywhere_is_not_certain() -> None:
    # The outlines are alike, so that all 1,000 requests count: Wilson's lower end is n / (n + z^2).
    same = [np.arange(200)] * 5
    found = proportion([1.0] * 5, [200] * 5, same)
    assert (found.mean, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(1000 / (1000 + NORMAL**2))
    assert found.half_width == pytest.approx(1 - 1000 / (1000 + NORMAL**2))


def test_runs_that_differ_count_as_fewer_requests() -> None:
    # Every latency of a run lies on one side of the pooled median: each run says no more than one request.
    slow_and_fast = [np.full(200, 10 + run) for run in range(4)]
    assert shares_above_median(slow_and_fast, np.full(4, 200)).tolist() == [0, 0, 1, 1]
    effect = design_effect(np.array([0.0, 0, 1, 1]), np.full(4, 200))
    assert effect == pytest.approx((1 / 3) / 4 / (0.25 / 800))
    found = proportion([1.0] * 4, [200] * 4, slow_and_fast)
    quantile = stats.t.ppf(0.975, 3)
    assert found.low == pytest.approx(3 / (3 + quantile**2))


def test_the_effect_is_seen_in_the_shares_themselves_where_they_differ() -> None:
    shares, counts = np.array([0.9, 0.7, 0.8]), np.array([100, 100, 100])
    effect = design_effect(shares, counts)
    assert effect is not None
    assert effect == pytest.approx((0.01 / 3) / (0.8 * 0.2 / 300))
    found = proportion(shares.tolist(), counts.tolist(), alike(100, 3))
    low, high = wilson(0.8, 300 / effect, stats.t.ppf(0.975, 2))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.mean == pytest.approx(0.8)


def test_shares_closer_than_chance_are_not_trusted_more_than_requests_that_are_independent() -> None:
    found = proportion([0.5, 0.501], [1000, 1000], alike(1000, 2))
    assert (found.low, found.high) == pytest.approx(wilson(0.5005, 2000, NORMAL))


def test_where_there_is_no_interval_a_share_has_none() -> None:
    outlines = alike(10, 2)
    assert proportion([0.5], [10], outlines[:1]) == Estimate(0.5, None, 1, "one replication")
    assert proportion([1.0, 1.0], [10, 10], outlines, deterministic=True).reason == "deterministic"
    missing = proportion([1.0, Missing("no observations")], [10, 0], [outlines[0], np.array([], dtype=int)])
    assert missing.reason == "missing in 1 of 2 replications: no observations"
    assert math.isnan(missing.mean)


def test_an_outline_keeps_even_ranks_and_those_not_delivered_last() -> None:
    assert outline(np.array([3, 1, 2]), 2).tolist() == [1, 2, 3, NEVER_NS, NEVER_NS]
    thinned = outline(np.arange(9_000)[::-1], 1_000)
    assert len(thinned) == 1_000
    assert thinned[:3].tolist() == [5, 15, 25]
    assert (thinned == NEVER_NS).sum() == 100


def test_an_interval_of_a_share_covers_what_is_true() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for seed in range(400):
        shares = random.binomial(200, 0.95, size=5) / 200
        found = proportion(shares.tolist(), [200] * 5, alike(200, 5, seed))
        covered += (found.low or 0) <= 0.95 <= (found.high or 0)
    assert covered / 400 >= 0.93


def test_requests_of_a_run_that_are_alike_are_covered_too() -> None:
    # The share itself varies from run to run, with a mean of 0.9: a beta-binomial.
    random = np.random.default_rng(8)
    covered = 0
    for seed in range(400):
        shares = random.binomial(500, random.beta(45, 5, size=5)) / 500
        found = proportion(shares.tolist(), [500] * 5, alike(500, 5, seed))
        covered += (found.low or 0) <= 0.9 <= (found.high or 0)
    assert covered / 400 >= 0.92
