"""Rate limits as the checks see them: from when on a call is admitted, in exact fractions of a nanosecond.

Written from the contract (`RateLimit`) and apart from the engines. They keep how full a bucket is; here a
bucket is known by the instant from which on it is full again, and windows by what was counted in each.
"""

from collections import Counter
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from sim.contract.provider import Limits, RateLimit


class Counted(NamedTuple):
    """What one call counts for, by unit."""

    calls: int
    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


ONE_CALL = Counted(calls=1, input_tokens=0, output_tokens=0)


class BucketHistory:
    """A bucket that refills all the time: what is taken delays the instant from which on it is full."""

    def __init__(self, rate: RateLimit) -> None:
        self.burst = rate.burst or 0
        self.refill_ns = Fraction(rate.window_ns, rate.amount)  # for one unit
        self.full_from_ns = Fraction(0)

    def admits_from_ns(self, amount: int, now_ns: int) -> int:
        """Return the first instant from now on at which it holds the amount, or is full."""
        need_not_be_there = self.burst - min(amount, self.burst)
        return max(now_ns, ceil(self.full_from_ns - need_not_be_there * self.refill_ns))

    def change(self, amount: int, now_ns: int, _admitted_ns: int) -> None:
        """Take an amount now; give it back where it is negative."""
        self.full_from_ns = max(self.full_from_ns, Fraction(now_ns)) + amount * self.refill_ns


class WindowHistory:
    """Windows side by side: each has the limit to itself, and an empty one admits any amount."""

    def __init__(self, rate: RateLimit) -> None:
        self.amount, self.window_ns = rate.amount, rate.window_ns
        self.counted: Counter[int] = Counter()

    def admits_from_ns(self, amount: int, now_ns: int) -> int:
        """Return now, or the beginning of the next window where this one has no room."""
        window = now_ns // self.window_ns
        counted = self.counted[window]
        has_room = counted == 0 or counted + amount <= self.amount
        return now_ns if has_room else (window + 1) * self.window_ns

    def change(self, amount: int, _now_ns: int, admitted_ns: int) -> None:
        """Count an amount in the window of its admission; count less where it is negative."""
        self.counted[admitted_ns // self.window_ns] += amount


class LimitHistory:
    """All limits of a provider together, and what has been admitted under them."""

    def __init__(self, limits: Limits) -> None:
        self.rejections_count = limits.rejections_count
        self.rates = [
            (rate.unit, WindowHistory(rate) if rate.burst is None else BucketHistory(rate))
            for rate in limits.rates
        ]

    def admits_from_ns(self, wanted: Counted, now_ns: int) -> int:
        """Return the first instant from now on at which each limit admits a call, if no other one comes."""
        return max((rate.admits_from_ns(getattr(wanted, unit), now_ns) for unit, rate in self.rates))

    def admit(self, reserved: Counted, now_ns: int) -> None:
        """Count what a call reserves at its start."""
        for unit, rate in self.rates:
            rate.change(getattr(reserved, unit), now_ns, now_ns)

    def settle(self, reserved: Counted, used: Counted, admitted_ns: int, now_ns: int) -> None:
        """Count at its end what it did use in place of what it reserved."""
        for unit, rate in self.rates:
            rate.change(getattr(used, unit) - getattr(reserved, unit), now_ns, admitted_ns)

    def turn_away(self, now_ns: int) -> None:
        """Count a call that was turned away, where those count."""
        if self.rejections_count:
            self.admit(ONE_CALL, now_ns)
