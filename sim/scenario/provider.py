"""A provider: its slots and who gets them, its limits, its prices, its prefix cache."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, Strict

from sim.contract.allocation import ALLOCATIONS, allocation_named
from sim.scenario.base import (
    Broken,
    Count,
    CountOrZero,
    Factor,
    Model,
    Name,
    OneOf,
    PositiveSeconds,
    Ratio,
    Slots,
    further,
)
from sim.scenario.limits import RateLimits

AllocationName = Annotated[str, OneOf(ALLOCATIONS)]
HOURS_PER_DAY = 24


class ConcurrencyStep(Model):
    """From this time on, this many slots. Slots that are taken away go when their calls have ended."""

    at_s: PositiveSeconds = Field(description="When it begins, seconds from the start.")
    concurrency: Slots = Field(description="Slots from here on.")


class PriceWindow(Model):
    """Hours of the day at which every price is multiplied; it may run past midnight."""

    name: Name | None = Field(None, description="What reports call it.")
    from_hour: Annotated[float, Field(ge=0, lt=HOURS_PER_DAY)] = Field(
        description="Hour of the day at which it begins, 0 to 24."
    )
    to_hour: Annotated[float, Field(ge=0, le=HOURS_PER_DAY)] = Field(
        description="Hour of the day at which it ends, 0 to 24; that hour does not belong to it."
    )
    ratio: Annotated[float, Field(ge=0, le=1e6)] = Field(description="Factor of every price.")

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """The parts of a day that it covers (from, to), hours; two where it runs past midnight."""
        if self.from_hour < self.to_hour:
            return ((self.from_hour, self.to_hour),)
        past_midnight = ((0.0, self.to_hour),) if self.to_hour else ()
        return (*past_midnight, (self.from_hour, float(HOURS_PER_DAY)))

    def overlaps(self, other: "PriceWindow") -> bool:
        """Return whether there is an hour that belongs to both."""
        return any(
            start < other_end and other_start < end
            for start, end in self.spans
            for other_start, other_end in other.spans
        )

    def broken_rules(self) -> Iterator[Broken]:
        if self.from_hour == self.to_hour:
            yield Broken(("to_hour",), "must differ from from_hour", self.to_hour)


class PrefixCacheRules(Model):
    """A provider's cache of prompt prefixes: which branches find the shared context in it is a result."""

    ttl_s: PositiveSeconds = Field(300.0, description="Seconds that a prefix is kept after its last use.")
    write_price_ratio: Factor = Field(
        1.25, description="Price of a token that is written, as a share of the full price."
    )
    read_price_ratio: Ratio = Field(
        0.1, description="Price of a token that is read, as a share of the full price, 0 to 1."
    )
    min_tokens: CountOrZero = Field(1024, description="Tokens that a prefix must have to be kept at all.")
    capacity: Count | None = Field(None, description="Most prefixes kept at once; without end unless given.")


class Provider(Model):
    """The API whose slots all requests borrow."""

    concurrency: Slots = Field(description="Slots: calls in flight at once.")
    allocation: AllocationName = Field("fair_share", description="Who gets a free slot.")
    concurrency_steps: Annotated[tuple[ConcurrencyStep, ...], Strict(False)] = further(
        (), "Concurrency that changes over time, in order of time."
    )
    lend_reserved_slots: bool = further(
        True, "Whether others may use the slots reserved for a workload while it does not need them."
    )
    limits: RateLimits | None = further(None, "Calls and tokens admitted per minute; no limit unless given.")
    prices: Annotated[tuple[PriceWindow, ...], Strict(False)] = further(
        (), "Hours of the day with other prices; 1 outside of them."
    )
    prefix_cache: PrefixCacheRules | None = further(
        None, "Rules of the cache of prompt prefixes; none unless given."
    )

    @property
    def is_plain(self) -> bool:
        """Whether it is nothing but a fixed number of slots that do not care who asks."""
        return allocation_named(self.allocation).is_plain and not (
            self.concurrency_steps or self.limits or self.prices or self.prefix_cache
        )

    @property
    def least_concurrency(self) -> int:
        """The fewest slots that it has at any time."""
        return min([self.concurrency, *(step.concurrency for step in self.concurrency_steps)])

    @property
    def most_concurrency(self) -> int:
        """The most slots that it has at any time."""
        return max([self.concurrency, *(step.concurrency for step in self.concurrency_steps)])

    @property
    def rejects(self) -> bool:
        """Whether it turns calls away that meet a limit."""
        return self.limits is not None and self.limits.rejects

    def broken_rules(self) -> Iterator[Broken]:
        for index, step in enumerate(self.concurrency_steps[1:], start=1):
            if step.at_s <= self.concurrency_steps[index - 1].at_s:
                yield Broken(("concurrency_steps", index, "at_s"), "must be > the time before it", step.at_s)
        for index, window in enumerate(self.prices):
            clash = next((other for other in range(index) if window.overlaps(self.prices[other])), None)
            if clash is not None:
                rule = f"must not overlap prices[{clash}]"
                yield Broken(("prices", index, "from_hour"), rule, window.from_hour)
