"""Figures over the replications of a plan, a period or a workload: values, and estimates with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sim.contract.figure import OUTCOME_SHARES, REQUESTS, figure_of, of_delivered
from sim.statistics.figures import Figures, Value
from sim.statistics.interval import Estimate, estimate
from sim.statistics.percentile import NO_OBSERVATIONS, Missing
from sim.statistics.proportion import proportion
from sim.units import IntArray

Values = dict[str, tuple[Value, ...]]
"""Figures by name, one value per replication."""


@dataclass(frozen=True, repr=False)
class Observed:
    """What the replications measured.

    Parameters
    ----------
    values
        Each figure per replication.
    outlines_ns
        The latencies of issued requests of each replication, see `sim.statistics.proportion.outline`.
    deterministic
        Whether nothing is random, so that there is no uncertainty.
    may_fail
        Whether a request may end in more than one way; else shares of outcomes are known without a doubt.
    """

    values: Values
    outlines_ns: tuple[IntArray, ...]
    deterministic: bool
    may_fail: bool

    @classmethod
    def of(
        cls,
        rows: Sequence[Figures],
        outlines_ns: tuple[IntArray, ...],
        *,
        deterministic: bool,
        may_fail: bool,
    ) -> "Observed":
        """Return what so many replications measured; one without a figure had nothing to observe."""
        names = dict.fromkeys(name for row in rows for name in row)
        values = {name: tuple(row.get(name, Missing(NO_OBSERVATIONS)) for row in rows) for name in names}
        return cls(values, outlines_ns, deterministic, may_fail)

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Each figure's mean with its 95 % interval."""
        return {name: self.estimate(name, 0.95) for name in self.values}

    def estimate(self, name: str, confidence: float) -> Estimate:
        """Return a figure's mean with its interval: Wilson's of a share of requests, else Student's."""
        values = self.values[name]
        uncertain = self.may_fail or name not in OUTCOME_SHARES
        if figure_of(name).of_requests and uncertain:
            requests = self.values[REQUESTS]
            return proportion(values, requests, self.outlines_ns, confidence, self.deterministic)
        return estimate(values, confidence, self.deterministic)


@dataclass(frozen=True, repr=False)
class HasFigures:
    """What has figures over replications."""

    observed: Observed

    @property
    def values(self) -> Values:
        """Each figure per replication."""
        return self.observed.values

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Each figure's mean with its 95 % interval."""
        return self.observed.estimates


def tellable(name: str, *subjects: HasFigures) -> str:
    """Return a figure, or that of delivered requests where one of some plans did not deliver all."""
    return of_delivered(name) if any(one.estimates[name].undelivered for one in subjects) else name
