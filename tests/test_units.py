from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.units import (
    AT_ONCE,
    exact,
    ms_array_to_ns,
    ms_to_ns,
    ns_to_ms,
    round_half_away,
    s_to_ns,
    stretches,
    sum_exact,
)


@pytest.mark.parametrize("value", [0.6, np.float64(0.6), Decimal("0.6"), Fraction(3, 5)])
def test_a_number_is_the_decimal_it_is_written_as(value: float) -> None:
    assert exact(value) == Fraction(3, 5)


@pytest.mark.parametrize(
    ("value_ms", "value_ns"),
    [
        (295, 295_000_000),
        (0.1, 100_000),
        (0.0000005, 0),
        (0.0000015, 2),
        (0.0000025, 2),
        (0.00000250001, 3),
        (Decimal("1.0000005"), 1_000_000),
        (1.0000015, 1_000_002),
    ],
)
def test_milliseconds_round_half_to_even(value_ms: float, value_ns: int) -> None:
    assert ms_to_ns(value_ms) == value_ns


def test_seconds_lose_no_nanosecond() -> None:
    assert s_to_ns(0.2) == 200_000_000
    assert s_to_ns(0.1) * 10 == s_to_ns(1)


def test_arrays_round_as_scalars_do() -> None:
    values_ms = np.array([295.0, 0.1, 1.5e-6, 2.5e-6])
    assert ms_array_to_ns(values_ms).tolist() == [ms_to_ns(value) for value in values_ms.tolist()]
    assert ms_array_to_ns(values_ms).dtype == np.int64


def test_nanoseconds_come_back_as_milliseconds() -> None:
    assert ns_to_ms(295_000_000) == 295.0
    assert ns_to_ms(1) == 1e-6


@pytest.mark.parametrize(
    ("value", "decimals", "shown"),
    [
        (2.675, 2, 2.68),
        (-2.675, 2, -2.68),
        (0.125, 2, 0.13),
        (0.5, 0, 1.0),
        (-0.5, 0, -1.0),
        (Fraction(5, 12), 4, 0.4167),
        (Fraction(4449, 1000), 2, 4.45),
        (0, 2, 0.0),
    ],
)
def test_shown_values_round_half_away_from_zero(value: float, decimals: int, shown: float) -> None:
    assert round_half_away(value, decimals) == shown


@given(st.lists(st.integers(-(2**62), 2**62), max_size=30))
def test_a_long_sum_does_not_overflow(values: list[int]) -> None:
    assert sum_exact(np.array(values, dtype=np.int64)) == sum(values)


def test_long_sums_beyond_64_bits_are_exact() -> None:
    values = np.full((2 * AT_ONCE + 3, 2), 2**61, dtype=np.int64)
    values[-1] = [5, -7]
    assert sum_exact(values) == (values.size - 2) * 2**61 - 2
    assert sum_exact(values[:2]) == 2**63
    assert sum_exact(-values[:8]) == -(2**65)


def test_stretches_cover_an_array_once() -> None:
    assert [(rows.start, rows.stop) for rows in stretches(AT_ONCE + 1)] == [
        (0, AT_ONCE),
        (AT_ONCE, 2 * AT_ONCE),
    ]
    assert list(stretches(0)) == []
