"""Human review after the answer: its own pool of reviewers, first come first served, never in the latency."""

from dataclasses import dataclass
from heapq import heapreplace

import numpy as np

from sim.contract import figure as named
from sim.draws.drawing import draw_values
from sim.draws.streams import Streams
from sim.run.simulation import Run
from sim.scenario import Scenario
from sim.statistics.figures import Figures, ratio, time_figures
from sim.units import IntArray, ms_array_to_ns, sum_exact


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


def follow_up_figures(part: Scenario, run: Run, index: int) -> Figures:
    """Return how human review keeps up with a workload's answers; nothing where there is none."""
    reviews = reviews_of(part, run, index)
    if reviews is None:
        return {}
    last_ns = int(run.out.arrival_ns.max(initial=0))
    return {
        **time_figures(named.FOLLOW_UP, reviews.turnaround_ns),
        named.REVIEWERS_NEEDED: ratio(sum_exact(reviews.finish_ns - reviews.start_ns), last_ns),
        named.BACKLOG_AT_HALF: float(reviews.backlog_at(last_ns // 2)),
        named.BACKLOG_AT_END: float(reviews.backlog_at(last_ns)),
    }


def reviews_of(part: Scenario, run: Run, index: int) -> Reviews | None:
    """Return the reviews of a workload's answers, each from the beginning of its join."""
    follow_up = part.workflow.follow_up
    if follow_up is None:
        return None
    out = run.out
    joined = np.flatnonzero((out.workload == index) & (out.join_start_ns >= 0))
    streams = Streams(part.experiment.seed, run.replication, part.part_name)
    count = int(out.position[out.workload == index].max(initial=-1)) + 1
    drawn_ms = draw_values(part, follow_up.duration_ms, streams, count, "follow_up")
    duration_ns = np.maximum(1, ms_array_to_ns(drawn_ms))[out.position[joined]]
    return review(out.join_start_ns[joined], duration_ns, follow_up.reviewers)
