"""One provider as engines take it: slots over time, the allocation, rate limits, a prefix cache."""

from dataclasses import dataclass

from sim.contract.allocation import FAIR_SHARE, Allocation, require_known
from sim.contract.limit import UNITS
from sim.errors import require_one_of


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many calls or tokens may be admitted per window.

    Parameters
    ----------
    unit
        What is counted, one of `UNITS`.
    amount, window_ns
        The limit, and the time it holds for.
    burst
        The capacity of a bucket that refills all the time and starts full; None for windows that start at
        the multiples of `window_ns` and forget what was left of the one before.
    """

    unit: str
    amount: int
    window_ns: int
    burst: int | None = None

    def __post_init__(self) -> None:
        require_one_of("unit", self.unit, UNITS)


@dataclass(frozen=True, slots=True)
class Limits:
    """A provider's rate limits. On a limit a call waits, or is rejected and told when to come again."""

    rates: tuple[RateLimit, ...] = ()
    rejects: bool = False
    rejections_count: bool = False
    cached_tokens_count: bool = True


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Prefixes that the provider remembers for `ttl_ns` after their last use, at most `capacity` of them."""

    ttl_ns: int
    capacity: int | None = None


@dataclass(frozen=True)
class ProviderInput:
    """One provider.

    Parameters
    ----------
    slots
        (instant in ns, concurrency from then on), the first at 0.
    allocation
        Who gets a free slot.
    reserved
        Slots kept for each workload; empty for none.
    lends
        Whether others may use reserved slots while nobody they are kept for waits.
    """

    slots: tuple[tuple[int, int], ...]
    allocation: Allocation = FAIR_SHARE
    reserved: tuple[int, ...] = ()
    lends: bool = True
    limits: Limits = Limits()
    cache: PrefixCache | None = None

    def __post_init__(self) -> None:
        require_known(self.allocation)

    @property
    def most_slots(self) -> int:
        """The highest concurrency of the run."""
        return max(slots for _, slots in self.slots)

    def slot_time_ns(self, start_ns: int, end_ns: int) -> int:
        """Return slots x time between two instants."""
        ends_ns = [at_ns for at_ns, _ in self.slots[1:]] + [max(end_ns, self.slots[-1][0])]
        steps = zip(self.slots, ends_ns, strict=True)
        return sum(
            slots * max(0, min(to_ns, end_ns) - max(from_ns, start_ns)) for (from_ns, slots), to_ns in steps
        )
