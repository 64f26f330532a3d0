"""What the tables say of each instant: when something happened, who was active, what the cap was."""

from dataclasses import dataclass

import numpy as np

from sim.contract.plain import EngineInput, EngineOutput
from sim.units import IntArray


@dataclass(frozen=True, repr=False)
class Timeline:
    """The instants of a run (int64, ascending, distinct) and the active requests and cap at each dispatch."""

    instant_ns: IntArray
    active: IntArray
    cap: IntArray

    def at(self, time_ns: IntArray) -> IntArray:
        """Return the index of the instant at each time (any shape)."""
        return np.searchsorted(self.instant_ns, time_ns)


def timeline(given: EngineInput, out: EngineOutput) -> Timeline:
    """Return the timeline of a run, from its tables alone."""
    finishes = out.finish_ns[out.called]
    instants = distinct(out.arrival_ns, finishes, out.completion_ns)
    arrived = np.searchsorted(np.sort(out.arrival_ns), instants, side="right")
    completed = np.searchsorted(np.sort(out.completion_ns), instants, side="right")
    active = arrived - completed
    cap_at = np.array([given.cap(max(1, count)) for count in range(int(active.max(initial=0)) + 1)])
    return Timeline(instants, active, cap_at[active])


def distinct(*times_ns: IntArray) -> IntArray:
    """Return the times that occur, in ascending order. `np.unique` hashes first, which takes longer."""
    ordered = np.sort(np.concatenate(times_ns))
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def extremes(values: IntArray, first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Return (least, greatest) over each inclusive stretch first..last of a few different values >= 0."""
    least = np.full(first.shape, np.iinfo(np.int64).max)
    greatest = np.full(first.shape, -1)
    for value in np.flatnonzero(np.bincount(values)):
        count = np.append(0, np.cumsum(values == value))
        occurs = count[last + 1] > count[first]
        least[occurs] = np.minimum(least[occurs], value)
        greatest[occurs] = value
    return least, greatest
