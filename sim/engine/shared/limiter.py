"""Rate limits: how many calls and tokens a provider admits per time, in whole numbers throughout.

A limiter paces admissions; what has been admitted runs at once. A call reserves what it may use when it is
admitted and settles what it did use at its end.
"""

from dataclasses import dataclass
from typing import Protocol

from sim.contract.provider import Limits, RateLimit


@dataclass(frozen=True, slots=True)
class Use:
    """What one call counts for."""

    input_tokens: int = 0
    output_tokens: int = 0

    def of(self, unit: str) -> int:
        """Return how much it takes of a limit."""
        if unit == "calls":
            return 1
        if unit == "input_tokens":
            return self.input_tokens
        return self.output_tokens if unit == "output_tokens" else self.input_tokens + self.output_tokens


NOTHING = Use()


class Meter(Protocol):
    """Measures one limit."""

    def wait_ns(self, amount: int, now_ns: int) -> int:
        """Return how long until `amount` may be admitted; 0 for now."""

    def take(self, amount: int, now_ns: int) -> None:
        """Admit an amount."""

    def give_back(self, amount: int, taken_ns: int, now_ns: int) -> None:
        """Return what was admitted at `taken_ns` and not used; negative where more was used."""


class TokenBucket:
    """Refills all the time and never holds more than its capacity; starts full.

    The level is held in units of 1 / window_ns, so that each nanosecond adds a whole number of them.
    """

    def __init__(self, rate: RateLimit) -> None:
        self.per_ns = rate.amount
        self.scale = rate.window_ns
        self.capacity = (rate.burst or 0) * rate.window_ns
        self.level = self.capacity
        self.since_ns = 0

    def wait_ns(self, amount: int, now_ns: int) -> int:
        """Return the time until it holds enough; an amount above the capacity waits for a full bucket."""
        self._refill(now_ns)
        missing = min(amount * self.scale, self.capacity) - self.level
        return max(0, -(-missing // self.per_ns))

    def take(self, amount: int, now_ns: int) -> None:
        """Lower the level, below 0 for an amount above the capacity: the debt delays what comes after."""
        self._refill(now_ns)
        self.level -= amount * self.scale

    def give_back(self, amount: int, taken_ns: int, now_ns: int) -> None:  # noqa: ARG002  a bucket has no windows
        """Raise the level, up to the capacity."""
        self._refill(now_ns)
        self.level = min(self.capacity, self.level + amount * self.scale)

    def _refill(self, now_ns: int) -> None:
        self.level = min(self.capacity, self.level + self.per_ns * (now_ns - self.since_ns))
        self.since_ns = now_ns


class FixedWindow:
    """Counts from 0 again at every multiple of the window."""

    def __init__(self, rate: RateLimit) -> None:
        self.amount = rate.amount
        self.window_ns = rate.window_ns
        self.window = 0
        self.used = 0

    def wait_ns(self, amount: int, now_ns: int) -> int:
        """Return the time to the next window if this one is used up; an empty one admits any amount."""
        self._turn(now_ns)
        if self.used == 0 or self.used + amount <= self.amount:
            return 0
        return (self.window + 1) * self.window_ns - now_ns

    def take(self, amount: int, now_ns: int) -> None:
        """Count an amount in this window."""
        self._turn(now_ns)
        self.used += amount

    def give_back(self, amount: int, taken_ns: int, now_ns: int) -> None:
        """Count less in this window, if it is still the one in which the amount was counted."""
        self._turn(now_ns)
        if taken_ns // self.window_ns == self.window:
            self.used -= amount

    def _turn(self, now_ns: int) -> None:
        window = now_ns // self.window_ns
        if window != self.window:
            self.window, self.used = window, 0


class Limiter:
    """All limits of one provider together, and what they hold in reserve."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.meters: list[tuple[str, Meter]] = [
            (rate.unit, FixedWindow(rate) if rate.burst is None else TokenBucket(rate))
            for rate in limits.rates
        ]
        self.outstanding = 0

    def wait_ns(self, use: Use, now_ns: int) -> int:
        """Return how long until every limit admits a call; 0 for now."""
        return max((meter.wait_ns(use.of(unit), now_ns) for unit, meter in self.meters), default=0)

    def admit(self, use: Use, now_ns: int) -> None:
        """Reserve what a call may use."""
        for unit, meter in self.meters:
            meter.take(use.of(unit), now_ns)
            self.outstanding += use.of(unit)

    def settle(self, reserved: Use, used: Use, admitted_ns: int, now_ns: int) -> None:
        """Give back what a call reserved and did not use. A call is used up when it is made."""
        for unit, meter in self.meters:
            meter.give_back(reserved.of(unit) - used.of(unit), admitted_ns, now_ns)
            self.outstanding -= reserved.of(unit)

    def reject(self, use: Use, now_ns: int) -> int:
        """Count a rejected call, where rejections count; return after how long one like it is admitted."""
        if self.limits.rejections_count:
            for unit, meter in self.meters:
                if unit == "calls":
                    meter.take(1, now_ns)
        return self.wait_ns(use, now_ns)
