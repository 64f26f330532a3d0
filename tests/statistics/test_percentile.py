import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import ArgumentError
from sim.statistics.percentile import Missing, observations_needed, percentile_ns, percentiles_ns


def one_to(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.random.default_rng(1).permutation(np.arange(1, count + 1, dtype=np.int64))


def test_percentiles_are_observations_at_the_nearest_rank() -> None:
    assert percentiles_ns(one_to(1000), ("0.5", "0.9", "0.95", "0.99")) == (500, 900, 950, 990)


def test_the_rank_is_exact_where_a_binary_fraction_would_round_up() -> None:
    # 0.55 x 100 is 55.00000000000001 in floats, whose ceiling is 56.
    assert percentile_ns(one_to(100), "0.55") == 55
    assert percentile_ns(one_to(100), 0.55) == 55


@pytest.mark.parametrize(
    ("level", "needed"), [("0.5", 20), ("0.9", 100), ("0.95", 200), ("0.99", 1_000), ("0.999", 10_000)]
)
def test_a_percentile_is_shown_from_ten_observations_beyond_it_on(level: str, needed: int) -> None:
    assert observations_needed(level) == needed
    assert isinstance(percentile_ns(one_to(needed), level), int)
    assert percentile_ns(one_to(needed - 1), level) == Missing(
        f"needs {needed:,} observations, has {needed - 1:,}"
    )


def test_the_reason_names_both_numbers() -> None:
    assert percentile_ns(one_to(100), "0.95") == Missing("needs 200 observations, has 100")
    assert percentile_ns(one_to(300), "0.999") == Missing("needs 10,000 observations, has 300")


def test_nothing_observed_is_nan_not_zero() -> None:
    found = percentile_ns(np.array([], dtype=np.int64), "0.5")
    assert found == Missing("no observations")
    assert math.isnan(float(found))


def test_shown_and_missing_levels_mix_in_the_order_asked_for() -> None:
    assert percentiles_ns(one_to(200), ("0.99", "0.5", "0.95")) == (
        Missing("needs 1,000 observations, has 200"),
        100,
        190,
    )


def test_the_observations_keep_their_order() -> None:
    values = one_to(50)
    before = values.copy()
    percentile_ns(values, "0.5")
    assert values.tolist() == before.tolist()


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=20, max_size=60),
    st.fractions(min_value=Fraction(1, 100), max_value=Fraction(1, 2), max_denominator=1000),
)
def test_nearest_rank_means_the_smallest_value_with_that_share_at_or_below(
    values: list[int], level: Fraction
) -> None:
    found = percentile_ns(np.array(values, dtype=np.int64), level)
    assert isinstance(found, int)
    assert Fraction(sum(value <= found for value in values), len(values)) >= level
    assert Fraction(sum(value < found for value in values), len(values)) < level


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("1", "percentile must be > 0 and < 1 (got '1')"),
        (0, "percentile must be > 0 and < 1 (got 0)"),
        ("95%", "percentile must be a decimal number (got '95%')"),
        (math.nan, "percentile must be a decimal number (got nan)"),
        (math.inf, "percentile must be a decimal number (got inf)"),
    ],
)
def test_a_level_that_is_none_is_refused(level: str | float, message: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        percentile_ns(one_to(100), level)
    assert str(refusal.value) == message
