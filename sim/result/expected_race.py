"""Calls side by side of which a join needs only some: when it has them, how long the others ran by then."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim.result.expected_call import ExpectedCall, traced_columns
from sim.scenario import Scenario
from sim.scenario.tail import Tail, above_normal, tail_of
from sim.units import FloatArray

MOST_EXACT = 16
"""Up to so many calls the number of answers is exact; of more it is taken to be normal."""


@dataclass(frozen=True, slots=True)
class Race:
    """Means of a race.

    Parameters
    ----------
    answered_ms
        When enough calls have answered.
    ran
        For each call, the share of its time that it ran by then.
    made
        For each call, how likely it began before.
    """

    answered_ms: float
    ran: tuple[float, ...]
    made: tuple[float, ...]


@dataclass(frozen=True)
class _Runner:
    """One call: when it starts, the tail of its time, and whether it answers."""

    start_ms: float
    tail: Tail
    answers: float

    def runs(self, at_ms: FloatArray) -> FloatArray:
        """Return the probability that it would still run at each time, if nothing stopped it."""
        return np.where(at_ms < self.start_ms, 0.0, self.tail.above(at_ms - self.start_ms))

    def answered(self, at_ms: FloatArray) -> FloatArray:
        """Return the probability that it has answered by each time."""
        return np.where(
            at_ms < self.start_ms, 0.0, self.answers * (1 - self.tail.above(at_ms - self.start_ms))
        )


def race(part: Scenario, calls: Sequence[ExpectedCall], ends_ms: Sequence[float], needs: int) -> Race:
    """Return a race of independent calls, each from its mean start on.

    Parameters
    ----------
    ends_ms
        When each call would end at mean times.
    """
    runners = []
    for branch, call, end_ms in zip(part.workflow.branches, calls, ends_ms, strict=True):
        tail = tail_of(branch.duration_ms, traced_columns(part))
        scaled = tail if call.duration_ms == tail.mean else tail.scaled(call.duration_ms / tail.mean)
        runners.append(_Runner(end_ms - call.duration_ms, scaled, 1 - call.lost))
    edges = _edges(runners)
    middles, widths = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
    answered = Answers(needs, np.array([one.answered(middles) for one in runners]))
    ran = tuple(
        float((one.runs(middles) * answered.too_few(without=index)) @ widths) / one.tail.mean
        for index, one in enumerate(runners)
    )
    starts_ms = np.array([one.start_ms for one in runners])
    begun = Answers(needs, np.array([one.answered(starts_ms) for one in runners]))
    made = tuple(float(begun.too_few(without=index)[index]) for index in range(len(runners)))
    never = Answers(needs, np.array([[one.answers] for one in runners])).too_few()[0]
    return Race(float((answered.too_few() - never) @ widths), ran, made)


def _edges(runners: Sequence[_Runner]) -> FloatArray:
    """Return the edges of cells that meet every start, and every jump after it."""
    longest = max(runners, key=lambda one: one.start_ms + one.tail.mean)
    kinks = [np.append(one.tail.kinks, 0.0) + one.start_ms for one in runners]
    return np.unique(np.concatenate([longest.tail.grid() + longest.start_ms, longest.tail.grid(), *kinks]))


@dataclass(frozen=True, repr=False)
class Answers:
    """Independent calls of which so many are needed.

    Parameters
    ----------
    answered
        [calls, times], the probability that each has answered by each time.
    """

    needs: int
    answered: FloatArray

    def too_few(self, without: int | None = None) -> FloatArray:
        """Return how likely fewer than needed have answered by each time, one of them left out."""
        if len(self.answered) > MOST_EXACT:
            own = 0.0 if without is None else self.answered[without]
            variance = np.maximum(self._variance - own * (1 - own), 1e-12)
            return above_normal((self._mean - own - self.needs + 0.5) / np.sqrt(variance))
        counts = np.zeros((self.needs, self.answered.shape[1]))
        counts[0] = 1.0
        for index, one in enumerate(self.answered):
            if index != without:
                counts[1:] = counts[1:] * (1 - one) + counts[:-1] * one
                counts[0] *= 1 - one
        return np.asarray(counts.sum(axis=0))

    @cached_property
    def _mean(self) -> FloatArray:
        return np.asarray(self.answered.sum(axis=0))

    @cached_property
    def _variance(self) -> FloatArray:
        return np.asarray((self.answered * (1 - self.answered)).sum(axis=0))
