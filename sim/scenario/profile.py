"""Rates over time, and the periods that reports tell apart."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sim.errors import Fault, InputError
from sim.scenario.load import ProfileLoad, StepsLoad
from sim.scenario.table import AMOUNTS, read_table
from sim.units import FloatArray

AT, RATE = "window_start_s", "requests_per_s"


@dataclass(frozen=True, repr=False)
class RateTable:
    """A rate over time on the run's clock, in m pieces; within a piece it runs straight from start to end.

    Parameters
    ----------
    edge_s : where pieces begin and end, float64, shape (m + 1,); from 0 to the end of the arrivals.
    start_rate_per_s, end_rate_per_s : the rate at both ends of each piece, float64, shape (m,).
    """

    edge_s: FloatArray
    start_rate_per_s: FloatArray
    end_rate_per_s: FloatArray

    @property
    def end_s(self) -> float:
        """Where the arrivals end."""
        return float(self.edge_s[-1])

    @property
    def expected_count(self) -> float:
        """Requests expected in all."""
        return float(np.sum(np.diff(self.edge_s) * (self.start_rate_per_s + self.end_rate_per_s) / 2))


@dataclass(frozen=True)
class Period:
    """A named part of a run; requests that arrive in [from_s, to_s) belong to it."""

    name: str
    from_s: float
    to_s: float


def read_profile(file: str, stated: Fault) -> tuple[FloatArray, FloatArray, float]:
    """Return the window starts (s), their rates (1/s), and where the last window ends; 0 without rows.

    The last window is as wide as the one before it.
    """
    table = read_table(file, {AT: AMOUNTS, RATE: AMOUNTS}, stated)
    at_s, rates = np.array(table.columns[AT]), np.array(table.columns[RATE])
    if len(at_s) == 0:
        return at_s, rates, 0.0
    falls = np.flatnonzero(np.diff(at_s) <= 0)
    if len(falls):
        row = int(falls[0]) + 1
        raise InputError(Fault(file, table.lines[row], AT, "must be > the time before it", float(at_s[row])))
    width_s = float(at_s[-1] - at_s[-2]) if len(at_s) > 1 else float("inf")
    return at_s, rates, float(at_s[-1]) + width_s


def sliced(load: ProfileLoad, at_s: FloatArray, rates: FloatArray) -> RateTable:
    """Return the part of a profile from `first_s` to `end_s`, scaled, with the run's start at 0.

    The last rate holds beyond the last point.
    """
    inside_s = at_s[(at_s > load.first_s) & (at_s < load.end_s)]
    edge_s = np.concatenate([[load.first_s], inside_s, [load.end_s]])
    if load.interpolation == "linear":
        edge_rates = np.interp(edge_s, at_s, rates) * load.rate_scale
        return RateTable(edge_s - load.first_s, edge_rates[:-1], edge_rates[1:])
    points = np.searchsorted(at_s, edge_s[:-1], side="right") - 1
    held = rates[points] * load.rate_scale
    return RateTable(edge_s - load.first_s, held, held)


def stepped(load: StepsLoad) -> RateTable:
    """Return the rates of a stepped open load."""
    rates = np.array([step.rate_per_s or 0.0 for step in load.steps])
    return RateTable(np.array([*(step.at_s for step in load.steps), load.end_s]), rates, rates)


def periods_of(load: StepsLoad | ProfileLoad) -> tuple[Period, ...]:
    """Return the periods of a load on the run's clock; a step without a name is called by its number."""
    if isinstance(load, ProfileLoad):
        start_s = load.first_s
        return tuple(Period(part.name, part.from_s - start_s, part.to_s - start_s) for part in load.periods)
    edges_s = [*(step.at_s for step in load.steps), load.end_s]
    names = [step.name or f"step {number}" for number, step in enumerate(load.steps, start=1)]
    return tuple(Period(name, *edges) for name, edges in zip(names, pairwise(edges_s), strict=True))
