import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim.errors import ArgumentError
from sim.statistics.interval import (
    FASTER,
    IDENTICAL,
    SLOWER,
    UNDECIDED,
    Difference,
    Estimate,
    estimate,
    paired_difference,
    precise_enough,
    replications_needed,
)
from sim.statistics.percentile import Missing

VALUES = [3.0, 5.0, 4.0, 6.0, 2.0]  # mean 4, sample variance 2.5


def test_a_student_t_interval() -> None:
    half_width = 2.7764451051977987 * math.sqrt(2.5 / 5)  # t(0.975, 4 degrees of freedom), from a table
    found = estimate(VALUES)
    assert (found.mean, found.replications, found.reason, found.deterministic) == (4.0, 5, None, False)
    assert found.half_width == pytest.approx(half_width, rel=1e-12)
    assert (found.low, found.high) == pytest.approx((4 - half_width, 4 + half_width))


def test_the_interval_is_scipys_at_any_confidence() -> None:
    for confidence in (0.8, 0.95, 0.999):
        found = estimate(VALUES, confidence)
        expected = stats.t.interval(confidence, 4, loc=4.0, scale=math.sqrt(0.5))
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


def test_an_interval_covers_as_often_as_it_says() -> None:
    draws = np.random.default_rng(1).normal(10, 3, size=(2000, 6))
    covered = [abs(found.mean - 10) <= (found.half_width or 0) for found in map(estimate, draws.tolist())]
    assert 0.935 < np.mean(covered) < 0.965


def test_one_replication_has_no_interval() -> None:
    found = estimate([7.0])
    assert found == Estimate(7.0, None, 1, "one replication")
    assert (found.low, found.high) == (None, None)


def test_a_deterministic_figure_says_so_instead_of_an_interval() -> None:
    assert estimate([295.0], deterministic=True) == Estimate(295.0, None, 1, "deterministic", True)
    assert estimate([0.1] * 3, deterministic=True) == Estimate(0.1, None, 3, "deterministic", True)


def test_equal_values_of_a_random_scenario_have_a_spread_of_exactly_zero() -> None:
    assert estimate([0.1] * 3) == Estimate(0.1, 0.0, 3)


def test_a_deterministic_scenario_that_varies_is_refused() -> None:
    with pytest.raises(ArgumentError) as refusal:
        estimate([1.0, 2.0], deterministic=True)
    assert str(refusal.value) == "values must be equal in a deterministic scenario (got [1.0, 2.0])"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], "no replications"),
        ([1.0, math.nan, math.nan], "missing in 2 of 3 replications"),
        (
            [1.0, Missing("needs 200 observations, has 100")],
            "missing in 1 of 2 replications: needs 200 observations, has 100",
        ),
        ([1.0, math.inf], "infinite in 1 of 2 replications"),
    ],
)
def test_a_figure_that_some_replication_lacks_is_missing(values: list[float | Missing], reason: str) -> None:
    found = estimate(values)
    assert math.isnan(found.mean)
    assert (found.half_width, found.replications, found.reason) == (None, len(values), reason)


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
def test_a_confidence_outside_0_to_1_is_refused(confidence: float) -> None:
    for call in (lambda: estimate(VALUES, confidence), lambda: paired_difference(VALUES, VALUES, confidence)):
        with pytest.raises(ArgumentError) as refusal:
            call()
        assert str(refusal.value) == f"confidence must be > 0 and < 1 (got {confidence})"


def test_a_paired_difference_with_everything_it_says() -> None:
    a = [10.0, 12.0, 14.0, 16.0]
    b = [9.0, 11.5, 13.0, 14.5]  # differences -1, -0.5, -1, -1.5
    found = paired_difference(a, b)
    deviation = math.sqrt(1 / 6)
    half_width = float(stats.t.ppf(0.975, 3)) * deviation / 2
    welch = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    independent = np.var(a, ddof=1) + np.var(b, ddof=1)
    assert (found.mean, found.replications, found.words, found.reason) == (-1.0, 4, "faster", None)
    assert found.half_width == pytest.approx(half_width)
    assert found.variance_reduction == pytest.approx(float(independent) / deviation**2)
    assert found.unpaired_half_width == pytest.approx(float(welch.high - welch.low) / 2)
    assert found.replications_to_decide == 4
    assert found.decided
    assert found.more_replications == 0
    assert (found.low, found.high) == pytest.approx((-1 - half_width, -1 + half_width))
    assert paired_difference(b, a).words == SLOWER


def test_two_replications_and_a_tiny_difference_cannot_tell() -> None:
    found = paired_difference([100.0, 110.0], [101.0, 109.5])
    assert found.words == "no difference that this many replications can show"
    assert not found.decided
    assert found.more_replications is not None
    assert found.more_replications > 0


@given(
    st.floats(0.05, 3).map(lambda size: round(size, 3)),
    st.sampled_from((0.9, 0.95, 0.99)),
)
def test_replications_to_decide_is_the_smallest_number_that_would(size: float, confidence: float) -> None:
    # Differences size - 1 and size + 1: mean `size`, sample deviation sqrt(2).
    needed = paired_difference([0.0, 0.0], [size - 1, size + 1], confidence).replications_to_decide

    def half_width(count: int) -> float:
        return float(stats.t.ppf((1 + confidence) / 2, count - 1)) * math.sqrt(2 / count)

    assert needed is not None
    assert half_width(needed) < size
    assert needed == 2 or half_width(needed - 1) >= size


def test_a_mean_difference_of_zero_that_varies_is_never_decided() -> None:
    found = paired_difference([1.0, 2.0], [2.0, 1.0])
    assert found.words == UNDECIDED
    assert found.replications_to_decide is None
    assert found.more_replications is None


def test_identical_replications_are_called_identical() -> None:
    found = paired_difference([1.0, 2.0, 4.0], [1.0, 2.0, 4.0])
    assert (found.mean, found.half_width, found.words) == (0.0, 0.0, "identical in every replication")
    assert found.decided
    assert found.variance_reduction == math.inf
    assert found.replications_to_decide is None
    assert found.more_replications == 0


def test_a_constant_difference_has_no_spread() -> None:
    found = paired_difference([1.0, 2.0, 4.0], [0.5, 1.5, 3.5])
    assert (found.mean, found.half_width, found.words) == (-0.5, 0.0, FASTER)
    assert (found.variance_reduction, found.replications_to_decide) == (math.inf, 2)


def test_where_neither_side_varies_there_is_no_variance_to_reduce() -> None:
    found = paired_difference([2.0, 2.0], [3.0, 3.0])
    assert (found.words, found.variance_reduction, found.unpaired_half_width) == (SLOWER, None, 0.0)


def test_pairing_that_does_harm_shows_below_one() -> None:
    found = paired_difference([1.0, 2.0, 3.0], [3.0, 2.0, 1.5])
    assert found.variance_reduction is not None
    assert found.variance_reduction < 1


def test_one_pair_cannot_tell_however_large_the_difference() -> None:
    found = paired_difference([1.0], [100.0])
    assert found == Difference(99.0, None, 1, UNDECIDED, "one replication")
    assert (found.low, found.high, found.more_replications) == (None, None, None)


@pytest.mark.parametrize(("b", "words"), [(295.0, FASTER), (455.0, SLOWER), (420.0, IDENTICAL)])
def test_a_deterministic_difference_is_exact(b: float, words: str) -> None:
    assert paired_difference([420.0], [b], deterministic=True) == Difference(
        b - 420, None, 1, words, "deterministic", True
    )


def test_a_side_that_varies_in_a_deterministic_scenario_is_refused() -> None:
    with pytest.raises(ArgumentError, match="must be equal in a deterministic scenario"):
        paired_difference([1.0, 2.0], [2.0, 3.0], deterministic=True)


def test_a_pair_with_a_missing_side_is_missing() -> None:
    found = paired_difference([1.0, math.nan, 3.0], [Missing("no observations"), 2.0, 3.0])
    assert math.isnan(found.mean)
    assert (found.words, found.reason) == (UNDECIDED, "missing in 2 of 3 replications: no observations")


def test_sides_of_different_length_are_refused() -> None:
    with pytest.raises(ArgumentError) as refusal:
        paired_difference([1.0, 2.0], [1.0])
    assert str(refusal.value) == "b must have as many replications as a, 2 (got 1)"


def test_precise_enough() -> None:
    assert precise_enough(Estimate(100.0, 2.0, 5), 0.02)
    assert precise_enough(Estimate(-100.0, 2.0, 5), 0.02)
    assert precise_enough(Estimate(0.0, 0.0, 5), 0.02)
    assert precise_enough(estimate([7.0], deterministic=True), 0.02)
    assert not precise_enough(Estimate(100.0, 2.1, 5), 0.02)
    assert not precise_enough(Estimate(100.0, None, 1, "one replication"), 0.02)
    assert not precise_enough(estimate([1.0, math.nan]), 0.02)


def test_replications_needed_is_the_smallest_number_that_is_precise_enough() -> None:
    needed = replications_needed(VALUES, 0.1)

    def half_width(count: int) -> float:
        return float(stats.t.ppf(0.975, count - 1)) * math.sqrt(2.5 / count)

    assert needed is not None
    assert half_width(needed) <= 0.4 < half_width(needed - 1)


def test_replications_needed_is_unknown_without_a_spread_or_a_mean() -> None:
    assert replications_needed([1.0], 0.1) is None
    assert replications_needed([1.0, math.nan], 0.1) is None
    assert replications_needed([-1.0, 1.0], 0.1) is None
    assert replications_needed([5.0, 5.0], 0.1) == 2


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_the_comparison_does_not_depend_on_the_unit(scale: float) -> None:
    a, b = [10.0, 12.0, 14.0, 16.0], [9.0, 11.5, 13.0, 14.5]
    plain = paired_difference(a, b)
    scaled = paired_difference([value * scale for value in a], [value * scale for value in b])
    assert plain.unpaired_half_width is not None
    assert scaled.unpaired_half_width == pytest.approx(plain.unpaired_half_width * scale)
    assert scaled.variance_reduction == pytest.approx(plain.variance_reduction)
    assert (scaled.words, scaled.replications_to_decide) == (plain.words, plain.replications_to_decide)
