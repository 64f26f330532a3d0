"""Figures that only a shared, limited, failing or cached provider has."""

import numpy as np

from sim.contract import figure as named
from sim.contract.plain import BoolArray
from sim.contract.run import REJECTED
from sim.draws.drawing import draw_values
from sim.draws.streams import Streams
from sim.run.follow_up import Reviews, review
from sim.run.simulation import Run
from sim.scenario import Scenario
from sim.statistics.figures import Figures, Value, ratio, time_figures
from sim.units import ms_array_to_ns, sum_exact


def shared_figures(run: Run, kept: BoolArray) -> Figures:
    """Return how many attempts the kept requests made, and what the cache served; nothing for a plain run."""
    if run.shared is None:
        return {}
    attempts = run.shared.out.attempts
    of_kept = kept[attempts.number]
    made, calls = int(of_kept.sum()), int((of_kept & (attempts.attempt == 0)).sum())
    carried, read = (int((of_kept & (attempts.hit >= least)).sum()) for least in (0, 1))
    rejected = int((of_kept & (attempts.outcome == REJECTED)).sum())
    figures: Figures = {
        named.ATTEMPTS_PER_CALL: ratio(made, calls),
        named.REJECTED_SHARE: ratio(rejected, made),
    }
    return figures | ({named.PREFIX_REUSE: ratio(read, carried)} if carried else {})


def slot_share(run: Run, workload: int) -> Value:
    """Return a workload's share of all slot-time in use."""
    assert run.shared is not None
    attempts = run.shared.out.attempts
    held_ns = np.where(attempts.slot >= 0, attempts.finish_ns - attempts.start_ns, 0)
    mine = run.shared.out.workload[attempts.number] == workload
    return ratio(sum_exact(held_ns[mine]), sum_exact(held_ns))


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
    if run.shared is None or follow_up is None:
        return None
    out = run.shared.out
    joined = np.flatnonzero((out.workload == index) & (out.join_start_ns >= 0))
    streams = Streams(part.experiment.seed, run.replication, part.part_name)
    count = int(out.position[out.workload == index].max(initial=-1)) + 1
    drawn_ms = draw_values(part, follow_up.duration_ms, streams, count, "follow_up")
    duration_ns = np.maximum(1, ms_array_to_ns(drawn_ms))[out.position[joined]]
    return review(out.join_start_ns[joined], duration_ns, follow_up.reviewers)
