"""What a provider admits per minute: calls and tokens."""

import math
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from sim.contract.limit import ENFORCEMENTS, ON_LIMIT, UNIT_OF_KEY
from sim.scenario.base import Broken, Count, Model, OneOf, further
from sim.units import exact

RATE_KEYS = tuple(UNIT_OF_KEY)
WINDOW_S = 60


class Burst(Model):
    """What may be admitted at once after a quiet time: the capacity of each limit's bucket."""

    rpm: Count | None = Field(None, description="Calls; the limit itself unless given.")
    tpm: Count | None = Field(None, description="Tokens; the limit itself unless given.")
    itpm: Count | None = Field(None, description="Input tokens; the limit itself unless given.")
    otpm: Count | None = Field(None, description="Output tokens; the limit itself unless given.")


class RateLimits(Model):
    """Limits per minute, how they are enforced, and what becomes of a call that meets one."""

    rpm: Count | None = Field(None, description="Calls per minute.")
    tpm: Count | None = Field(None, description="Tokens per minute, input and output together.")
    itpm: Count | None = Field(None, description="Input tokens per minute.")
    otpm: Count | None = Field(None, description="Output tokens per minute.")
    enforcement: Annotated[str, OneOf(ENFORCEMENTS)] = Field(
        "token_bucket",
        description="Refilled all the time, counted anew each minute, or in equal parts of a minute.",
    )
    burst: Burst | None = Field(None, description="Capacities of the buckets; token_bucket only.")
    sub_window_s: Annotated[float, Field(gt=0, le=WINDOW_S)] = further(
        1.0, "Length of a part of the minute, seconds; sub_window only."
    )
    on_limit: Annotated[str, OneOf(ON_LIMIT)] = Field(
        "queue", description="A call waits, or is turned away and told when to come again."
    )
    rejections_count: bool = Field(False, description="Whether calls that are turned away count for rpm.")
    cached_tokens_count: bool = Field(
        True, description="Whether input tokens that the prefix cache serves count."
    )

    @property
    def refills(self) -> bool:
        """Whether it is refilled all the time, as a bucket."""
        return ENFORCEMENTS[self.enforcement].refills

    @property
    def in_parts(self) -> bool:
        """Whether it is counted in parts of a minute."""
        return ENFORCEMENTS[self.enforcement].in_parts

    @property
    def rejects(self) -> bool:
        """Whether it turns calls away."""
        return ON_LIMIT[self.on_limit]

    @property
    def stated(self) -> dict[str, int]:
        """The limits that there are, by key."""
        rates = {key: getattr(self, key) for key in RATE_KEYS}
        return {key: rate for key, rate in rates.items() if rate is not None}

    @property
    def window_s(self) -> float:
        """The time that an amount is counted or refilled over, seconds."""
        return self.sub_window_s if self.in_parts else WINDOW_S

    def per_window(self, key: str) -> int:
        """Return how much a limit admits per window; parts of a call or token do not count."""
        return math.floor(self.stated[key] * exact(self.window_s) / WINDOW_S)

    def capacity(self, key: str) -> int:
        """Return the capacity of a limit's bucket."""
        burst = getattr(self.burst, key, None)
        return self.stated[key] if burst is None else int(burst)

    def broken_rules(self) -> Iterator[Broken]:
        if not self.stated:
            yield Broken((), f"must have at least one of {', '.join(RATE_KEYS)}")
        if self.in_parts:
            for key in self.stated:
                if self.per_window(key) < 1:
                    yield Broken((key,), "must admit at least 1 in each sub_window_s", self.stated[key])
        elif "sub_window_s" in self.model_fields_set:
            rule = "must be left out unless enforcement is sub_window"
            yield Broken(("sub_window_s",), rule, self.sub_window_s)
        if self.burst is not None:
            yield from self._burst_rules(self.burst)

    def _burst_rules(self, burst: Burst) -> Iterator[Broken]:
        if not self.refills:
            yield Broken(("burst",), "must be left out unless enforcement is token_bucket")
        for key in RATE_KEYS:
            if getattr(burst, key) is not None and key not in self.stated:
                yield Broken(("burst", key), f"must be left out without {key}", getattr(burst, key))
