"""When a request held as many slots of a provider as it might: recomputed from the tables alone."""

from collections.abc import Callable

import numpy as np

from sim.contract.output import NO_SLOT
from sim.run.simulation import Run
from sim.units import BoolArray, IntArray


class OwnCap:
    """The most slots of a provider that a request may hold, at each instant.

    That is its share of the slots among the active requests of workloads that call the provider, where the
    allocation caps, and no more than the plan's degree.
    """

    def __init__(self, run: Run, provider: int) -> None:
        self.run, self.provider = run, provider
        given, out = run.given, run.out
        rules = given.providers[provider]
        calling = np.array(
            [
                provider in {one.provider_of(call) for call in range(one.calls_per_request)}
                for one in given.workloads
            ]
        )
        mine = calling[out.workload]
        weight = np.array([one.weight if rules.allocation.by_weight else 1 for one in given.workloads])
        arrival_ns, completion_ns, weights = (
            out.arrival_ns[mine],
            out.completion_ns[mine],
            weight[out.workload[mine]],
        )
        slots_ns, slots = (np.array(column, dtype=np.int64) for column in zip(*rules.slots, strict=True))
        self.at_ns = np.unique(np.concatenate([arrival_ns, completion_ns, slots_ns]))
        change = np.zeros(len(self.at_ns), dtype=np.int64)
        np.add.at(change, np.searchsorted(self.at_ns, arrival_ns), weights)
        np.subtract.at(change, np.searchsorted(self.at_ns, completion_ns), weights)
        active = np.maximum(1, np.cumsum(change))
        offered = slots[np.searchsorted(slots_ns, self.at_ns, side="right") - 1]
        self.caps = []
        for one, each in zip(given.workloads, weight.tolist(), strict=True):
            cap = np.maximum(1, offered * each // active) if rules.allocation.caps else offered
            self.caps.append(cap if one.max_degree is None else np.minimum(cap, one.max_degree))

    def held_ns(
        self,
        request: int,
        from_ns: int,
        to_ns: int,
        changes_ns: IntArray,
        is_full_at: Callable[[IntArray], BoolArray],
    ) -> int:
        """Return for how long, beside a free slot, a request held all that it might between two instants.

        `changes_ns` are the instants, ascending, at which `is_full_at` (every slot is taken) may change.
        """
        if from_ns >= to_ns:
            return 0
        out, attempts = self.run.out, self.run.out.attempts
        first, last = np.searchsorted(attempts.number, [request, request + 1])
        call = attempts.call[first:last]
        workload = int(out.workload[request])
        here = self.run.given.providers_of(out.workload[attempts.number[first:last]], call) == self.provider
        here &= attempts.slot[first:last] != NO_SLOT
        start_ns, finish_ns = attempts.start_ns[first:last][here], attempts.finish_ns[first:last][here]
        marks = [
            within(times, from_ns, to_ns)
            for times in (self.at_ns, changes_ns, np.sort(start_ns), np.sort(finish_ns))
        ]
        at_ns = np.unique(np.concatenate([np.array([from_ns]), *marks]))
        held = (start_ns <= at_ns[:, None]).sum(axis=1) - (finish_ns <= at_ns[:, None]).sum(axis=1)
        cap = self.caps[workload][np.searchsorted(self.at_ns, at_ns, side="right") - 1]
        is_held: BoolArray = (held >= cap) & ~is_full_at(at_ns)
        return int(np.diff(at_ns, append=to_ns)[is_held].sum())


def within(times_ns: IntArray, from_ns: int, to_ns: int) -> IntArray:
    """Return the times between two instants, of ascending ones."""
    return times_ns[np.searchsorted(times_ns, from_ns, side="right") : np.searchsorted(times_ns, to_ns)]
