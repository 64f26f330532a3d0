"""What one call asks for on the unloaded system: attempts, slot-time, how long it takes, whether it is lost.

Failures are those that are drawn, and a timeout or a hedge is as likely as the service time is longer; what a
limit turns away is not known before a simulation and does not count.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np

from sim.scenario import Scenario
from sim.scenario.failures import Failures, Retry
from sim.scenario.load import TraceLoad
from sim.scenario.tail import Tail, integral, sample, stated_values, tail_of
from sim.scenario.workflow import WorkflowBranch
from sim.units import FloatArray

MOST_CASES = 64
"""Parts that the rows of a trace are looked at in: every further attempt takes its row's time again."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """Means of one call.

    Parameters
    ----------
    attempts, slot_ms
        How many attempts hold a slot, and for how long in all.
    duration_ms
        From the start of the first to the answer or the loss, pauses included.
    lost
        The probability that no attempt answers.
    """

    attempts: float
    slot_ms: float
    duration_ms: float
    lost: float

    def mixed(self, other: "ExpectedCall", share: float) -> "ExpectedCall":
        """Return this one, with `share` of the way to another."""
        return ExpectedCall(
            *(
                (1 - share) * getattr(self, one.name) + share * getattr(other, one.name)
                for one in fields(self)
            )
        )


@dataclass(frozen=True)
class Attempt:
    """One attempt: what may happen to it, and the tail of the time that its answer takes."""

    failures: Failures
    timeout_ms: float | None
    tail: Tail

    @property
    def answers(self) -> float:
        """The probability that it answers, in time."""
        late = 0.0 if self.timeout_ms is None else float(self.tail.above(np.array([self.timeout_ms]))[0])
        return self._right * (1 - late)

    @property
    def _right(self) -> float:
        """The probability that nothing goes wrong with it but its time."""
        return 1 - self.failures.server_error - self.failures.rate_limited - self.failures.timeout

    @property
    def mean_ms(self) -> float:
        """Mean of the time that it holds its slot."""
        if self.timeout_ms is not None:
            return self.mean_up_to_ms(self.timeout_ms)
        turned_away = self.failures.rate_limited
        return turned_away * self.failures.rejection_ms + (1 - turned_away) * self.tail.mean

    def mean_up_to_ms(self, end_ms: float) -> float:
        """Return the mean of the part of that time that lies before `end_ms`."""
        return integral(self.holds, self.edges(end_ms))

    def edges(self, end_ms: float | None) -> FloatArray:
        """Return the edges of cells within which nothing jumps."""
        whole = self.tail.grid(end_ms)
        own = np.array([one for one in (self.timeout_ms, self.failures.rejection_ms) if one is not None])
        return np.unique(np.concatenate([whole, own[own < whole[-1]]]))

    def holds(self, x: FloatArray) -> FloatArray:
        """Return the probability that it still holds its slot after each time (ms)."""
        failures = self.failures
        turned_away = failures.rate_limited * (x < failures.rejection_ms)
        held = failures.timeout + turned_away + (self._right + failures.server_error) * self.tail.above(x)
        return held if self.timeout_ms is None else np.where(x < self.timeout_ms, held, 0.0)

    def answered(self, x: FloatArray) -> FloatArray:
        """Return the probability that it has answered by each time (ms)."""
        end = x if self.timeout_ms is None else np.minimum(x, self.timeout_ms)
        return self._right * (1 - self.tail.above(end))


def expected_calls(part: Scenario) -> tuple[ExpectedCall, ...]:
    """Return each branch's call, with as many further attempts as the workload's retry budget allows.

    The budget is one for all calls of a workload: each gets the same share of what it would need.
    """
    retry = part.workflow.retry
    whole = calls_with(part, retry)
    wanted = sum(one.attempts - 1 for one in whole)
    if retry.budget_ratio is None or wanted <= retry.budget_ratio * len(whole):
        return whole
    once = calls_with(part, retry.model_copy(update={"attempts": 1}))
    allowed = retry.budget_ratio * len(whole) / wanted
    return tuple(one.mixed(more, allowed) for one, more in zip(once, whole, strict=True))


def calls_with(part: Scenario, retry: Retry) -> tuple[ExpectedCall, ...]:
    """Return each branch's call with up to so many attempts."""
    branches = zip(part.workflow.branches, part.branch_means_ms, strict=True)
    return tuple(expected_call(part, branch, mean_ms, retry) for branch, mean_ms in branches)


def expected_call(part: Scenario, branch: WorkflowBranch, mean_ms: float, retry: Retry) -> ExpectedCall:
    """Return what one branch's call comes to, from the mean of its service time on."""
    hedge_ms = branch.hedge_after_ms if retry.attempts > 1 else None
    if not part.branch_failures(branch).can_happen and branch.timeout_ms is None and hedge_ms is None:
        return ExpectedCall(1.0, mean_ms, mean_ms, 0.0)
    found = [(share, _call(attempt, hedge_ms, retry)) for share, attempt in attempts(part, branch)]
    names = [one.name for one in fields(ExpectedCall)]
    return ExpectedCall(*(sum(share * getattr(one, name) for share, one in found) for name in names))


def attempts(part: Scenario, branch: WorkflowBranch) -> Iterator[tuple[float, Attempt]]:
    """Yield (share, attempt) of the attempts at a branch, within a share alike and independent.

    Where a trace's row states the time, another attempt takes as long: the rows in parts, each at its mean,
    none of them across a timeout or the delay of a hedge.
    """
    failures, timeout_ms = part.branch_failures(branch), branch.timeout_ms
    columns = traced_columns(part)
    stated_ms = stated_values(branch.duration_ms, columns)
    if stated_ms is None:
        yield 1.0, Attempt(failures, timeout_ms, tail_of(branch.duration_ms, columns))
        return
    bounds_ms = [one for one in (branch.hedge_after_ms, timeout_ms) if one is not None]
    values_ms = np.sort(stated_ms)
    for piece in np.split(values_ms, np.searchsorted(values_ms, bounds_ms, side="right")):
        for some in np.array_split(piece, max(1, min(MOST_CASES, len(piece)))):
            if len(some):
                yield (
                    len(some) / len(values_ms),
                    Attempt(failures, timeout_ms, sample(np.mean(some, keepdims=True))),
                )


def traced_columns(part: Scenario) -> Mapping[str, FloatArray]:
    """Return the columns of the load's trace; none without one."""
    return part.trace.columns if isinstance(part.load, TraceLoad) else {}


def _call(one: Attempt, hedge_ms: float | None, retry: Retry) -> ExpectedCall:
    """Return a call's means, of attempts that are all like this one."""
    if hedge_ms is None:
        first = ExpectedCall(1.0, one.mean_ms, one.mean_ms, 1 - one.answers)
        return _retried(first, one, retry, used=1)
    still = float(one.holds(np.array([hedge_ms]))[0])
    answered = float(one.answered(np.array([hedge_ms]))[0])
    unhedged, both_fail = 1 - still - answered, (still - (one.answers - answered)) * (1 - one.answers)
    slot_ms, duration_ms = _beside(one, hedge_ms)
    before_ms = one.mean_up_to_ms(hedge_ms)
    without = _retried(ExpectedCall(1.0, 0.0, 0.0, unhedged), one, retry, used=1)
    beside = _retried(ExpectedCall(still, slot_ms, duration_ms, both_fail), one, retry, used=2)
    return ExpectedCall(
        without.attempts + beside.attempts,
        before_ms + without.slot_ms + beside.slot_ms,
        before_ms + without.duration_ms + beside.duration_ms,
        without.lost + beside.lost,
    )


def _beside(one: Attempt, hedge_ms: float) -> tuple[float, float]:
    """Return slot-time and time from the delay of a hedge on, the first attempt and the hedge side by side.

    Either gives its slot back when it ends, or when the other answers; the call goes on while one runs.
    """
    edges = one.edges(one.timeout_ms)
    edges = np.unique(np.concatenate([edges, edges[edges > hedge_ms] - hedge_ms]))
    still, answered = one.holds(np.array([hedge_ms])), one.answered(np.array([hedge_ms]))

    def first_runs(x: FloatArray) -> FloatArray:
        return one.holds(hedge_ms + x) * (1 - one.answered(x))

    def hedge_runs(x: FloatArray) -> FloatArray:
        return one.holds(x) * (still - (one.answered(hedge_ms + x) - answered))

    def both_run(x: FloatArray) -> FloatArray:
        return one.holds(hedge_ms + x) * one.holds(x)

    first_ms, hedged_ms, both_ms = (integral(each, edges) for each in (first_runs, hedge_runs, both_run))
    return first_ms + hedged_ms, first_ms + hedged_ms - both_ms


def _retried(first: ExpectedCall, one: Attempt, retry: Retry, used: int) -> ExpectedCall:
    """Return what a first round, lost with its probability, comes to with the attempts that are left."""
    fails, reached = 1 - one.answers, first.lost
    more, pauses_ms = 0.0, 0.0
    for number in range(used, retry.attempts):
        more += reached
        pauses_ms += reached * pause_ms(retry, number - 1)
        reached *= fails
    held_ms = more * one.mean_ms
    return ExpectedCall(
        first.attempts + more, first.slot_ms + held_ms, first.duration_ms + held_ms + pauses_ms, reached
    )


def pause_ms(retry: Retry, attempt: int) -> float:
    """Return the mean pause after an attempt (0-based)."""
    return min(retry.backoff_ms * retry.multiplier**attempt, retry.max_backoff_ms) * (1 + retry.jitter / 2)


def unsettled_share(part: Scenario, branch: WorkflowBranch, window_s: float) -> float:
    """Return how likely an attempt ends in a later window than it began in, begun anywhere in its window."""
    window_ms = 1000 * window_s
    held_ms = sum(share * one.mean_up_to_ms(window_ms) for share, one in attempts(part, branch))
    return held_ms / window_ms
