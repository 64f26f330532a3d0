"""Human review after the answer: its own pool of reviewers, first come first served, never in the latency."""

from dataclasses import dataclass
from heapq import heapreplace

import numpy as np

from sim.units import IntArray


@dataclass(frozen=True, repr=False)
class Reviews:
    """Reviews in order of their start in the queue; int64 ns each.

    `ready_ns` is when the join began, `start_ns` when a reviewer took it up, `finish_ns` when it was done.
    """

    ready_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray

    @property
    def turnaround_ns(self) -> IntArray:
        """From the join to the end of the review."""
        return self.finish_ns - self.ready_ns

    def backlog_at(self, time_ns: int) -> int:
        """Return how many reviews are waiting or under way at a time."""
        return int((self.ready_ns <= time_ns).sum() - (self.finish_ns <= time_ns).sum())


def review(ready_ns: IntArray, duration_ns: IntArray, reviewers: int) -> Reviews:
    """Return the reviews of answers by a pool of reviewers.

    Parameters
    ----------
    ready_ns : int64[n], in any order; when each join began.
    duration_ns : int64[n], how long each review takes, in the same order.
    """
    order = np.argsort(ready_ns, kind="stable")
    free_ns = [0] * reviewers
    starts = []
    for ready, duration in zip(ready_ns[order].tolist(), duration_ns[order].tolist(), strict=True):
        start = max(ready, free_ns[0])
        heapreplace(free_ns, start + duration)
        starts.append(start)
    start_ns = np.array(starts, dtype=np.int64)
    return Reviews(ready_ns[order], start_ns, start_ns + duration_ns[order])
