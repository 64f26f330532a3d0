import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import ArgumentError
from sim.statistics.warmup import mser5, mser5_limit, running_mean
from sim.units import FloatArray


def by_definition(values: FloatArray) -> int:
    """MSER-5 as its definition reads: one variance for every deletion point."""
    batches = [values[start : start + 5].mean() for start in range(0, len(values) - 4, 5)]
    if len(batches) < 2:
        return 0
    scores = []
    for deleted in range(len(batches) // 2 + 1):
        kept = np.array(batches[deleted:])
        scores.append(((kept - kept.mean()) ** 2).sum() / len(kept) ** 2)
    return 5 * int(np.argmin(scores))


@given(st.integers(0, 10**6), st.integers(10, 400), st.floats(0, 50))
def test_the_vectorised_form_is_the_definition(seed: int, count: int, bias: float) -> None:
    rng = np.random.default_rng(seed)
    values = 300 + rng.normal(0, 10, count) + bias * np.exp(-np.arange(count) / 20)
    assert mser5(values) == by_definition(values)


def test_a_start_that_differs_is_deleted() -> None:
    values = np.concatenate((np.full(37, 900.0), np.full(400, 295.0)))
    assert mser5(values) == 40


def test_a_steady_series_keeps_nearly_everything() -> None:
    deleted = [mser5(np.random.default_rng(seed).normal(300, 20, 2000)) for seed in range(50)]
    assert np.median(deleted) <= 200


def test_a_constant_series_keeps_everything() -> None:
    # 0.1 has no exact mean of five; a naive sum of squares would choose by its rounding.
    assert mser5(np.full(5000, 0.1)) == 0


def test_equal_minima_delete_the_least() -> None:
    assert mser5(np.concatenate((np.full(5, 7.0), np.full(5000, 0.1)))) == 5


def test_only_the_first_half_is_searched() -> None:
    values = np.arange(100, 0, -1, dtype=np.float64)
    assert mser5(values) == mser5_limit(100) == 50


def test_deletion_removes_the_bias_of_a_slow_start() -> None:
    rng = np.random.default_rng(3)
    values = 300 + rng.normal(0, 15, 5000) + 400 * np.exp(-np.arange(5000) / 80)
    assert abs(values.mean() - 300) > 5
    assert abs(values[mser5(values) :].mean() - 300) < 1.5


@pytest.mark.parametrize("count", [0, 1, 9])
def test_fewer_than_two_batches_delete_nothing(count: int) -> None:
    assert mser5(np.arange(count, dtype=np.float64)) == 0
    assert mser5_limit(count) == 0


def test_nan_is_refused() -> None:
    with pytest.raises(ArgumentError) as refusal:
        mser5(np.array([1.0] * 20 + [np.nan]))
    assert str(refusal.value) == "values must be finite (got nan)"


def test_the_running_mean() -> None:
    assert running_mean(np.array([1.0, 3.0, 8.0])).tolist() == [1.0, 2.0, 4.0]
    assert running_mean(np.array([])).tolist() == []
