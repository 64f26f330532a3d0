"""What the tables say of each instant: when something happened, who was active, what the cap was."""

from dataclasses import dataclass

import numpy as np

from sim.engine import EngineInput, EngineOutput
from sim.units import IntArray


@dataclass(frozen=True)
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
    instants = np.unique(np.concatenate([out.arrival_ns, finishes, out.completion_ns]))
    arrived = np.searchsorted(np.sort(out.arrival_ns), instants, side="right")
    completed = np.searchsorted(np.sort(out.completion_ns), instants, side="right")
    active = arrived - completed
    cap_at = np.array([given.cap(max(1, count)) for count in range(int(active.max(initial=0)) + 1)])
    return Timeline(instants, active, cap_at[active])


class RangeExtremes:
    """Least and greatest value of any stretch of an array, each found in constant time (a sparse table)."""

    def __init__(self, values: IntArray) -> None:
        self.least, self.greatest = [values], [values]
        width = 1
        while 2 * width <= len(values):
            for levels, extreme in ((self.least, np.minimum), (self.greatest, np.maximum)):
                levels.append(extreme(levels[-1][:-width], levels[-1][width:]))
            width *= 2

    def over(self, first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
        """Return (least, greatest) over each inclusive stretch first..last (equal shapes)."""
        least, greatest = np.empty_like(first), np.empty_like(first)
        level = np.floor(np.log2(last - first + 1)).astype(np.int64)
        for step in np.unique(level):
            of_level = level == step
            left, right = first[of_level], last[of_level] - 2**step + 1
            least[of_level] = np.minimum(self.least[step][left], self.least[step][right])
            greatest[of_level] = np.maximum(self.greatest[step][left], self.greatest[step][right])
        return least, greatest
