"""Distributions: moments against their formulas, prefix-stable draws, and what traces leave open."""

import math
import pickle
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy import stats

from sim.scenario.distribution import (
    Constant,
    Distribution,
    Duration,
    Lognormal,
    TokenCount,
    TokenDuration,
    TraceColumn,
)

DURATIONS: TypeAdapter[Distribution] = TypeAdapter(Duration)
TOKEN_COUNTS: TypeAdapter[Distribution] = TypeAdapter(TokenCount)
EACH = [
    7,
    {"distribution": "exponential", "mean_ms": 260},
    {"distribution": "lognormal", "mean_ms": 260, "cv": 0.5},
    {"distribution": "lognormal", "p50_ms": 240, "p95_ms": 460},
    {"distribution": "gamma", "mean_ms": 260, "cv": 2},
    {"distribution": "uniform", "low_ms": 100, "high_ms": 420},
    {"distribution": "triangular", "low_ms": 100, "mode_ms": 150, "high_ms": 420},
    {"distribution": "empirical", "values_ms": [10, 20, 20, 70]},
]


def duration(written: Any) -> Distribution:
    return DURATIONS.validate_python(written)


def drawn(distribution: Distribution, seed: int, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return distribution.draw(np.random.default_rng(seed), n)


@pytest.mark.parametrize("written", EACH, ids=str)
def test_moments_of_many_draws_are_those_stated(written: Any) -> None:
    distribution = duration(written)
    n = 200_000
    values = drawn(distribution, 1, n)
    standard_error = distribution.mean * distribution.cv / math.sqrt(n)
    assert values.dtype == np.float64
    assert values.shape == (n,)
    assert abs(values.mean() - distribution.mean) <= 4 * standard_error
    assert values.std() / values.mean() == pytest.approx(distribution.cv, rel=0.03)
    assert distribution.is_constant == (distribution.cv == 0)


@given(
    written=st.sampled_from(EACH), seed=st.integers(0, 2**32), n=st.integers(0, 300), more=st.integers(0, 300)
)
@settings(deadline=None)
def test_asking_for_more_does_not_change_the_first(written: Any, seed: int, n: int, more: int) -> None:
    distribution = duration(written)
    assert drawn(distribution, seed, n).tolist() == drawn(distribution, seed, n + more)[:n].tolist()


@pytest.mark.parametrize(
    ("written", "law"),
    [
        (EACH[1], stats.expon(scale=260)),
        (EACH[2], stats.lognorm(math.sqrt(math.log(1.25)), scale=260 / math.sqrt(1.25))),
        (EACH[3], stats.lognorm(math.log(460 / 240) / NormalDist().inv_cdf(0.95), scale=240)),
        (EACH[4], stats.gamma(0.25, scale=1040)),
        (EACH[5], stats.uniform(100, 320)),
        (EACH[6], stats.triang(50 / 320, 100, 320)),
    ],
    ids=["exponential", "lognormal", "lognormal-percentiles", "gamma", "uniform", "triangular"],
)
def test_moments_and_law_are_those_of_the_textbook(written: Any, law: Any) -> None:
    distribution = duration(written)
    assert distribution.mean == pytest.approx(law.mean())
    assert distribution.cv == pytest.approx(law.std() / law.mean())
    assert stats.kstest(drawn(distribution, 2, 5_000), law.cdf).pvalue > 1e-3


def test_lognormal_mean_and_cv_are_not_those_of_the_logarithm() -> None:
    distribution = duration({"distribution": "lognormal", "mean_ms": 160, "cv": 0.5})
    logarithms = np.log(drawn(distribution, 3, 200_000))
    assert logarithms.mean() == pytest.approx(math.log(160) - math.log(1.25) / 2, rel=1e-3)
    assert logarithms.std() == pytest.approx(math.sqrt(math.log(1.25)), rel=1e-2)


def test_lognormal_percentiles_are_met() -> None:
    values = drawn(duration({"distribution": "lognormal", "p50_ms": 240, "p95_ms": 460}), 4, 200_000)
    assert np.percentile(values, [50, 95]) == pytest.approx([240, 460], rel=1e-2)


@given(mean=st.floats(1e-3, 1e8), cv=st.floats(0.001, 10))
def test_both_ways_to_state_a_lognormal_agree(mean: float, cv: float) -> None:
    sigma = math.sqrt(math.log1p(cv**2))
    p50 = mean * math.exp(-(sigma**2) / 2)
    p95 = p50 * math.exp(sigma * NormalDist().inv_cdf(0.95))
    if p95 <= 1e8 and cv < 9.99:
        other = duration({"distribution": "lognormal", "p50_ms": p50, "p95_ms": p95})
        assert other.mean == pytest.approx(mean, rel=1e-6)
        assert other.cv == pytest.approx(cv, rel=1e-6)


def test_empirical_draws_are_the_values_as_often_as_they_occur() -> None:
    distribution = duration(EACH[7])
    values, counts = np.unique(drawn(distribution, 5, 40_000), return_counts=True)
    assert values.tolist() == [10, 20, 70]
    assert counts / 40_000 == pytest.approx([0.25, 0.5, 0.25], abs=0.02)
    assert (distribution.mean, distribution.cv) == pytest.approx((30, np.std([10, 20, 20, 70]) / 30))
    assert duration({"distribution": "empirical", "values_ms": [5, 5]}).is_constant


def test_a_number_is_a_constant() -> None:
    assert duration(35) == Constant(35)
    assert drawn(duration(35), 6, 3).tolist() == [35, 35, 35]


def test_tokens_compose_a_service_time() -> None:
    written = {
        "distribution": "tokens",
        "overhead_ms": 120,
        "input_tokens": {"distribution": "uniform", "low_tokens": 0, "high_tokens": 2000},
        "prefill_ms_per_token": 0.05,
        "output_tokens": {"distribution": "gamma", "mean_tokens": 200, "cv": 0.5},
        "decode_ms_per_token": 15,
    }
    tokens = duration(written)
    assert isinstance(tokens, TokenDuration)
    assert tokens.service_ms(np.array([100.0, 0.0]), np.array([10.0, 0.0])).tolist() == [275, 120]
    assert tokens.mean == 120 + 1000 * 0.05 + 200 * 15
    deviation_ms = math.hypot(2000 / math.sqrt(12) * 0.05, 100 * 15)
    assert tokens.cv == pytest.approx(deviation_ms / tokens.mean)
    assert not tokens.is_constant
    assert tokens.trace_columns == ()
    assert duration({"distribution": "tokens", "output_tokens": 20, "decode_ms_per_token": 15}).is_constant


def test_what_comes_from_a_trace_has_a_mean_only_with_the_trace() -> None:
    written = {"distribution": "tokens", "output_tokens": "trace", "decode_ms_per_token": 15}
    tokens = duration(written)
    assert tokens.trace_columns == ("output_tokens",)
    assert math.isnan(tokens.mean)
    assert math.isnan(tokens.cv)
    assert not tokens.is_constant
    assert tokens.mean_given({"output_tokens": 20}) == 300
    column = duration({"distribution": "trace", "column": "policy_ms"})
    assert isinstance(column, TraceColumn)
    assert column.trace_columns == ("policy_ms",)
    assert math.isnan(column.mean_given({}))
    assert column.mean_given({"policy_ms": 250.0}) == 250
    assert duration(EACH[2]).mean_given({"policy_ms": 250.0}) == 260
    with pytest.raises(NotImplementedError, match="TraceColumn takes its values from elsewhere"):
        drawn(column, 1, 1)


@pytest.mark.parametrize(
    "written", [3200, "trace", {"distribution": "lognormal", "mean_tokens": 200, "cv": 1}]
)
def test_token_counts_have_their_own_unit(written: Any) -> None:
    count = TOKEN_COUNTS.validate_python(written)
    assert TOKEN_COUNTS.dump_python(count, by_alias=True) == written


@pytest.mark.parametrize("written", EACH, ids=str)
def test_written_out_as_read_and_picklable(written: Any) -> None:
    distribution = duration(written)
    assert DURATIONS.dump_python(distribution, by_alias=True, exclude_none=True, mode="json") == written
    assert (
        drawn(pickle.loads(pickle.dumps(distribution)), 1, 5).tolist() == drawn(distribution, 1, 5).tolist()
    )


def test_distributions_are_frozen() -> None:
    distribution = duration(EACH[2])
    assert isinstance(distribution, Lognormal)
    with pytest.raises(ValueError, match="frozen"):
        distribution.cv = 1.0  # type: ignore[misc]
