"""What goes wrong with the attempts at a call, and when another one is made."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from sim.scenario.base import Amount, Broken, Model, PositiveAmount, Ratio
from sim.units import exact

CAUSES = ("server_error", "rate_limited", "timeout")


class Failures(Model):
    """How likely an attempt fails, by cause; at most one of them happens to it."""

    server_error: Ratio = Field(0.0, description="Probability that it ends with a server error, 0 to 1.")
    rate_limited: Ratio = Field(0.0, description="Probability that the provider turns it away, 0 to 1.")
    timeout: Ratio = Field(0.0, description="Probability that it hangs until its timeout, 0 to 1.")
    rejection_ms: PositiveAmount = Field(
        50.0, description="How long an attempt that is turned away holds its slot, ms."
    )

    @property
    def can_happen(self) -> bool:
        """Whether any of them can."""
        return any(getattr(self, cause) > 0 for cause in CAUSES)

    def broken_rules(self) -> Iterator[Broken]:
        total = sum(exact(getattr(self, cause)) for cause in CAUSES)
        if total > 1:
            yield Broken((), f"must have {', '.join(CAUSES)} that sum to at most 1", float(total))


class Retry(Model):
    """How often a call is attempted, and the pause before each further attempt."""

    attempts: Annotated[int, Field(ge=1, le=20)] = Field(
        description="Most attempts at a call, the first included."
    )
    backoff_ms: Amount = Field(500.0, description="Pause after the first attempt, ms.")
    multiplier: Annotated[float, Field(ge=1, le=100)] = Field(
        2.0, description="Each further pause is so many times as long."
    )
    max_backoff_ms: Amount = Field(30_000.0, description="Longest pause before jitter, ms.")
    jitter: Ratio = Field(
        0.5, description="By how much of it a pause is longer at most, at random, 0 to 1; never shorter."
    )
    budget_ratio: Ratio | None = Field(
        None, description="Most further attempts as a share of first ones, 0 to 1; no budget unless given."
    )

    def broken_rules(self) -> Iterator[Broken]:
        if self.max_backoff_ms < self.backoff_ms:
            yield Broken(("max_backoff_ms",), "must be >= backoff_ms", self.max_backoff_ms)


ONE_ATTEMPT = Retry(attempts=1)
