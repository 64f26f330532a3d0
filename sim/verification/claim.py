"""What theory claims about a quantity, and how a simulation is held to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sim.statistics.agreement import (
    OF_MEAN_LATENCY,
    Precision,
    Verdict,
    validates,
    validates_band,
    validates_exactly,
)
from sim.verification.observation import Observe

# A percentile, a throughput, a utilisation is its own scale; a probability of waiting is as hard as the wait.
OF_ITSELF = Precision(0.02, "value")
OF_WAIT_PROBABILITY = Precision(0.10, "probability")


@dataclass(frozen=True, slots=True)
class Mean:
    """A steady-state value that theory knows exactly.

    Theory has to lie in the 99.9 % interval of the replications, the half-width of which has to be under
    `precision`, relative to `scale`, so that the test could tell a wrong value.
    """

    theory: float
    scale: float
    precision: Precision = OF_MEAN_LATENCY

    def hold(self, values: Sequence[float]) -> Verdict:
        """Return the verdict on one value per replication."""
        return validates(self.theory, values, self.scale, self.precision)


@dataclass(frozen=True, slots=True)
class Band:
    """A bound, or an approximation with its margin: the whole 99.9 % interval has to lie within."""

    low: float
    high: float

    def hold(self, values: Sequence[float]) -> Verdict:
        """Return the verdict on one value per replication."""
        return validates_band(self.low, self.high, values)


@dataclass(frozen=True, slots=True)
class Always:
    """A value of which no replication and no request may differ by more than `tolerance`."""

    theory: float
    tolerance: float = 0.0

    def hold(self, values: Sequence[float]) -> Verdict:
        """Return the verdict on every value that occurred."""
        return validates_exactly(self.theory, values, self.tolerance)


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the table: a quantity with its unit, how it is observed, what theory says, and which."""

    quantity: str
    unit: str
    observe: Observe
    expected: Mean | Band | Always
    source: str
