"""Step functions of time, such as the number of active requests: exact, or binned with mean and range."""

from dataclasses import dataclass

import numpy as np

from sim.contract.output import NO_SLOT
from sim.run.simulation import Run
from sim.units import FloatArray, IntArray


@dataclass(frozen=True, repr=False)
class StepFunction:
    """A number that changes at instants and holds in between.

    Parameters
    ----------
    time_ns
        int64[n], ascending, the first 0: from time_ns[i] on the number is value[i].
    value
        int64[n]; what several changes at one instant come to, not what they pass through.
    """

    time_ns: IntArray
    value: IntArray

    def at(self, times_ns: IntArray) -> IntArray:
        """Return the number at each instant, the changes of that instant included."""
        return self.value[np.searchsorted(self.time_ns, times_ns, side="right") - 1]


@dataclass(frozen=True, repr=False)
class Bins:
    """A step function over bins of time: time-weighted mean, least and greatest value of each (shape (m,)).

    Bin i is [edge_ns[i], edge_ns[i + 1]).
    """

    edge_ns: IntArray
    mean: FloatArray
    least: IntArray
    greatest: IntArray


def step_function(rise_ns: IntArray, fall_ns: IntArray) -> StepFunction:
    """Return how many have risen and not fallen yet, from times in any order."""
    times = np.concatenate(([0], rise_ns, fall_ns))
    changes = np.concatenate(([0], np.ones(len(rise_ns)), -np.ones(len(fall_ns)))).astype(np.int64)
    time_ns, where = np.unique(times, return_inverse=True)
    net = np.zeros(len(time_ns), dtype=np.int64)
    np.add.at(net, where, changes)
    return StepFunction(time_ns, np.cumsum(net))


def active_requests(run: Run) -> StepFunction:
    """Return the requests that have arrived and not completed."""
    return step_function(run.out.arrival_ns, run.out.completion_ns)


def queue_length(run: Run) -> StepFunction:
    """Return the calls that are ready and wait for a slot, each attempt for its own."""
    attempts = run.out.attempts
    return step_function(attempts.ready_ns, attempts.start_ns)


def slots_in_use(run: Run) -> StepFunction:
    """Return the calls that hold a slot, of any provider and whatever became of them."""
    attempts = run.out.attempts
    held = attempts.slot != NO_SLOT
    return step_function(attempts.start_ns[held], attempts.finish_ns[held])


def slots_offered(run: Run) -> StepFunction:
    """Return the slots of all providers together."""
    providers = run.given.providers
    time_ns = np.unique([at_ns for one in providers for at_ns, _ in one.slots])
    offered = [
        sum(max(step for step in one.slots if step[0] <= at_ns)[1] for one in providers)
        for at_ns in time_ns.tolist()
    ]
    return StepFunction(time_ns, np.array(offered, dtype=np.int64))


def binned(steps: StepFunction, end_ns: int, bins: int) -> Bins:
    """Return the step function from 0 to `end_ns` in bins of (nearly) equal width.

    Raises ValueError where there are more bins than nanoseconds.
    """
    if not 0 < bins <= end_ns:
        raise ValueError(f"bins must be from 1 to {end_ns} (got {bins})")
    edge_ns = np.array([end_ns * number // bins for number in range(bins + 1)])
    integral = _integral(steps, edge_ns)
    # Every bin begins with the value carried into it, then come the changes within it.
    times = np.union1d(steps.time_ns[steps.time_ns < end_ns], edge_ns[:-1])
    values = steps.at(times)
    starts = np.searchsorted(times, edge_ns[:-1])
    return Bins(
        edge_ns=edge_ns,
        mean=np.diff(integral) / np.diff(edge_ns),
        least=np.minimum.reduceat(values, starts),
        greatest=np.maximum.reduceat(values, starts),
    )


def _integral(steps: StepFunction, times_ns: IntArray) -> FloatArray:
    """Return value x time from 0 to each instant (float64: for drawing, not for checks)."""
    areas = steps.value[:-1] * np.diff(steps.time_ns).astype(np.float64)
    before = np.concatenate(([0.0], np.cumsum(areas)))
    last = np.searchsorted(steps.time_ns, times_ns, side="right") - 1
    return before[last] + steps.value[last] * (times_ns - steps.time_ns[last]).astype(np.float64)
