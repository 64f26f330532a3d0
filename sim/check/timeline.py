"""When something happened in a run, who was active then, and what each workload's cap was."""

from dataclasses import dataclass

import numpy as np

from sim.contract.output import RunOutput
from sim.contract.run import RunInput
from sim.units import IntArray


@dataclass(frozen=True, repr=False)
class Timeline:
    """Instants (int64, ascending, distinct), active requests and slots at each.

    Parameters
    ----------
    active
        int64[workloads, instants], after what happened at the instant.
    slots
        int64[providers, instants].
    """

    given: RunInput
    instant_ns: IntArray
    active: IntArray
    slots: IntArray

    def at(self, time_ns: IntArray) -> IntArray:
        """Return the index of the instant at each time (any shape)."""
        return np.searchsorted(self.instant_ns, time_ns)

    def share(self, workload: int, provider: int) -> IntArray:
        """Return a request's fair share at each instant, by number, or by weight where that counts."""
        weights = np.array([[uses_weight(self.given, index, provider)] for index in range(len(self.active))])
        total = np.maximum(1, (self.active * weights).sum(axis=0))
        own = self.given.workloads[workload].weight
        weight = own if self.given.providers[provider].allocation.by_weight else 1
        return np.asarray(np.maximum(1, self.slots[provider] * weight // total))

    def cap(self, workload: int, provider: int) -> IntArray:
        """Return how many slots one request of a workload may hold at each instant."""
        caps = self.given.providers[provider].allocation.caps
        cap = self.share(workload, provider) if caps else self.slots[provider]
        degree = self.given.workloads[workload].max_degree
        return cap if degree is None else np.minimum(cap, degree)


def uses_weight(given: RunInput, workload: int, provider: int) -> int:
    """Return what one active request of a workload counts for at a provider; 0 where it calls another."""
    one = given.workloads[workload]
    if all(one.provider_of(call) != provider for call in range(one.calls_per_request)):
        return 0
    return one.weight if given.providers[provider].allocation.by_weight else 1


def timeline(given: RunInput, out: RunOutput) -> Timeline:
    """Return the timeline of a run, from its tables alone."""
    attempts = out.attempts
    steps = np.array([at_ns for provider in given.providers for at_ns, _ in provider.slots], dtype=np.int64)
    times_ns = (attempts.ready_ns, attempts.start_ns, attempts.finish_ns)
    instants = distinct(out.arrival_ns, out.completion_ns, *times_ns, steps)
    arrived, answered = (np.searchsorted(instants, at_ns) for at_ns in (out.arrival_ns, out.completion_ns))
    size = len(instants)
    active = np.stack(
        [
            np.cumsum(
                np.bincount(arrived[mine], minlength=size) - np.bincount(answered[mine], minlength=size)
            )
            for mine in (out.workload == index for index in range(len(given.workloads)))
        ]
    )
    slots = np.stack([slots_at(provider.slots, instants) for provider in given.providers])
    return Timeline(given, instants, active, slots)


def distinct(*times_ns: IntArray) -> IntArray:
    """Return the times that occur, in ascending order. `np.unique` hashes first, which takes longer."""
    ordered = np.sort(np.concatenate(times_ns))
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def slots_at(steps: tuple[tuple[int, int], ...], instants: IntArray) -> IntArray:
    """Return a provider's concurrency at each instant."""
    at_ns, slots = (np.array(column, dtype=np.int64) for column in zip(*steps, strict=True))
    return np.asarray(slots[np.searchsorted(at_ns, instants, side="right") - 1])
