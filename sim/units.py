"""Conversions at the edges: milliseconds outside, integer nanoseconds inside, exact decimals for money.

Time is rounded half to even once, on entry. Nothing else in the package compares float times.
"""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
AT_ONCE = 1 << 17

Number = int | float | Fraction | Decimal
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


def exact(value: Number) -> Fraction:
    """Return the decimal number that `value` is written as: 0.6 is 3/5, not the nearest binary fraction."""
    return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)


def ms_to_ns(value_ms: Number) -> int:
    """Return milliseconds as whole nanoseconds, rounded half to even."""
    return round(exact(value_ms) * NS_PER_MS)


def s_to_ns(value_s: Number) -> int:
    """Return seconds as whole nanoseconds, rounded half to even."""
    return round(exact(value_s) * NS_PER_S)


def ns_to_ms(value_ns: int) -> float:
    """Return nanoseconds as milliseconds: 295,000,000 ns is 295.0 ms."""
    return value_ns / NS_PER_MS


def ms_array_to_ns(values_ms: FloatArray) -> IntArray:
    """Return milliseconds (any shape, float) as nanoseconds (same shape, int64), rounded half to even."""
    values_ns = values_ms * NS_PER_MS
    return np.rint(values_ns, out=values_ns).astype(np.int64)


def stretches(count: int) -> Iterator[slice]:
    """Yield slices of a long array, so short that what is made of them stays in the processor's cache."""
    return (slice(first, first + AT_ONCE) for first in range(0, count, AT_ONCE))


def round_half_away(value: Number, decimals: int) -> float:
    """Return `value` rounded to `decimals` places, halves away from zero, as shown figures are."""
    scaled = abs(exact(value)) * 10**decimals
    whole = (2 * scaled + 1) // 2
    sign = -1 if value < 0 else 1
    return float(Fraction(sign * whole, 10**decimals))


def sum_exact(values: IntArray) -> int:
    """Return the exact sum of int64 values (any shape) as a Python int; a long run would overflow int64."""
    most = max(-int(values.min(initial=0)), int(values.max(initial=0)))
    if most * values.size < 1 << 63:
        return int(values.sum())
    if len(values) > AT_ONCE:
        return sum(sum_exact(values[rows]) for rows in stretches(len(values)))
    high, low = values >> 32, values & 0xFFFF_FFFF
    return (int(high.sum()) << 32) + int(low.sum())
