"""The plan of every request held against the fair share at the instant at which it was due to be chosen."""

import numpy as np

from sim.check.timeline import Timeline, distinct, timeline
from sim.contract.output import REJECTED, RunOutput
from sim.contract.run import DAY_NS, NEVER_NS, RunInput, WorkloadInput
from sim.units import BoolArray, IntArray


def wrong_plans(given: RunInput, out: RunOutput, line: Timeline | None = None) -> BoolArray:
    """Return which requests did not run the plan of their fair share (bool[requests of the run]).

    At an instant with a rejection the tables do not say whether a request was answered before or after the
    plans of that instant were chosen; those requests are passed over, unless every share has the same plan.
    """
    broken = np.zeros(len(out.arrival_ns), dtype=np.bool_)
    unclear_ns = np.append(distinct(out.attempts.finish_ns[out.attempts.outcome == REJECTED]), NEVER_NS)
    for index, workload in enumerate(given.workloads):
        table = workload.runs_parallel_at[1:]
        if workload.daily_plans is None and table.all() == table.any():
            broken |= (out.workload == index) & (out.ran_parallel != table[0])
            continue
        line = line or timeline(given, out)
        unclear = unclear_ns[np.searchsorted(unclear_ns, out.arrival_ns)] == out.arrival_ns
        mine = np.flatnonzero((out.workload == index) & ~unclear)
        arrival_ns = out.arrival_ns[mine]
        share = usable_slots(workload, line, index)[line.at(arrival_ns)]
        broken[mine] = out.ran_parallel[mine] != planned(workload, arrival_ns, share)
    return broken


def usable_slots(workload: WorkloadInput, line: Timeline, index: int) -> IntArray:
    """Return the slots at each instant that a plan goes by, over the providers that the branches call."""
    to = [workload.provider_of(branch) for branch in range(workload.branches)]
    if len(set(to)) == 1:
        return line.share(index, to[0])
    used = [np.minimum(line.share(index, provider), to.count(provider)) for provider in set(to)]
    return np.asarray(np.sum(used, axis=0))


def planned(workload: WorkloadInput, arrival_ns: IntArray, share: IntArray) -> BoolArray:
    """Return whether requests that arrive at these instants, at these fair shares, are to run in parallel."""
    daily = workload.daily_plans
    if daily is None:
        return np.asarray(workload.runs_parallel_at[share])
    time_ns = (daily.start_ns + arrival_ns) % DAY_NS
    parallel = np.zeros(len(share), dtype=np.bool_)
    for from_ns, table in daily.tables:
        later = time_ns >= from_ns
        parallel[later] = table[share[later]]
    return parallel
