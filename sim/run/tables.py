"""The tables of requests and calls: every column defined once, with its unit.

Every run has all columns, so that tables of different runs can stand below each other; on a plain run some of
them say the same on every row.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim.contract.output import ATTEMPT_OUTCOMES, REQUEST_OUTCOMES, RunOutput
from sim.contract.plan import FIXED_PLANS
from sim.run.costs import costs_micros
from sim.run.simulation import Run
from sim.scenario import Scenario
from sim.units import NS_PER_MS, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

REQUEST_COLUMNS = {
    "plan": "plan that was simulated",
    "replication": "0-based replication",
    "request": "number of the request, in order of arrival, all workloads together",
    "user": "user who issued it, numbered in each workload; -1 under an open load",
    "ran": "serial or parallel, chosen at its arrival",
    "arrival_ms": "arrival, ms from the start of the run",
    "completion_ms": "completion, ms from the start of the run",
    "latency_ms": "completion - arrival, ms",
    "waiting_ms": "waiting of all its calls together, ms; they may wait at the same time. "
    "Of a call with several attempts the one that counted",
    "service_ms": "service of all its calls together, ms; of several attempts the one that counted",
    "workload": "its workload; the name of the workflow where there is only one",
    "outcome": f"how it ended: {', '.join(REQUEST_OUTCOMES)}",
    "cost_micros": "price of everything that was paid for it, micros",
}
CALL_COLUMNS = {
    "plan": "plan that was simulated",
    "replication": "0-based replication",
    "request": "number of the request",
    "branch": "id of the branch; `join` for a join that holds a slot",
    "ready_ms": "it could have started, ms from the start of the run: its dependencies were met, "
    "or the pause before it was over",
    "start_ms": "it got its slot, ms from the start of the run; when it ended, where it never got one",
    "finish_ms": "it gave its slot back, ms from the start of the run",
    "waiting_ms": "start - ready, ms",
    "service_ms": "finish - start, ms",
    "slot": "0-based slot of the provider it ran on; -1 where it never got one",
    "attempt": "0-based attempt at the call",
    "provider": "name of the provider",
    "outcome": f"how it ended: {', '.join(ATTEMPT_OUTCOMES)}",
    "prefix_cache": "hit or miss; none where it carries no prefix that the provider keeps",
}
JOIN = "join"
PREFIX_CACHE = ("none", "miss", "hit")


def requests_table(scenario: Scenario, run: Run) -> "pd.DataFrame":
    """Return one row per request with the columns of `REQUEST_COLUMNS`."""
    import pandas as pd  # noqa: PLC0415  slow to import, and not every command needs it

    out, attempts = run.out, run.out.attempts
    return pd.DataFrame(
        {
            "plan": _labels([run.plan], np.zeros(out.requests, dtype=np.int64)),
            "replication": np.full(out.requests, run.replication),
            "request": np.arange(out.requests),
            "user": out.user,
            "ran": _labels(FIXED_PLANS, out.ran_parallel.astype(np.int64)),
            "arrival_ms": _ms(out.arrival_ns),
            "completion_ms": _ms(out.completion_ns),
            "latency_ms": _ms(out.latency_ns),
            "waiting_ms": _ms(per_request(out, attempts.start_ns - attempts.ready_ns)),
            "service_ms": _ms(per_request(out, attempts.finish_ns - attempts.start_ns)),
            "workload": _labels([part.part_name for part in scenario.parts], out.workload),
            "outcome": _labels(REQUEST_OUTCOMES, out.outcome),
            "cost_micros": costs_micros(scenario, out),
        }
    )


def calls_table(scenario: Scenario, run: Run) -> "pd.DataFrame":
    """Return one row per attempt at a call, by request, call and attempt; columns as `CALL_COLUMNS`."""
    import pandas as pd  # noqa: PLC0415  slow to import, and not every command needs it

    calls = run.out.attempts
    workload, rows = run.out.workload[calls.number], len(calls.number)
    return pd.DataFrame(
        {
            "plan": _labels([run.plan], np.zeros(rows, dtype=np.int64)),
            "replication": np.full(rows, run.replication),
            "request": calls.number,
            "branch": _branches(scenario, workload, calls.call),
            "ready_ms": _ms(calls.ready_ns),
            "start_ms": _ms(calls.start_ns),
            "finish_ms": _ms(calls.finish_ns),
            "waiting_ms": _ms(calls.start_ns - calls.ready_ns),
            "service_ms": _ms(calls.finish_ns - calls.start_ns),
            "slot": calls.slot,
            "attempt": calls.attempt,
            "provider": _labels(list(scenario.providers), run.given.providers_of_attempts(run.out)),
            "outcome": _labels(ATTEMPT_OUTCOMES, calls.outcome),
            "prefix_cache": _labels(PREFIX_CACHE, calls.hit + 1),
        }
    )


def per_request(out: RunOutput, time_ns: IntArray) -> IntArray:
    """Return the times of each request's attempts that counted, added up (int64[requests])."""
    ends = np.searchsorted(out.attempts.number, np.arange(out.requests + 1))
    before_ns = np.append(0, np.cumsum(np.where(out.counted, time_ns, 0)))
    return np.asarray(before_ns[ends[1:]] - before_ns[ends[:-1]])


def _branches(scenario: Scenario, workload: IntArray, call: IntArray) -> "pd.Categorical[str]":
    """Return the ids of calls, from the workload and the index of each."""
    ids = [[*(branch.id for branch in part.workflow.branches), JOIN] for part in scenario.parts]
    names = list(dict.fromkeys(name for each in ids for name in each))
    codes = np.zeros((len(ids), max(map(len, ids))), dtype=np.int64)
    for row, each in enumerate(ids):
        codes[row, : len(each)] = [names.index(name) for name in each]
    return _labels(names, codes[workload, call])


def _ms(times_ns: IntArray) -> FloatArray:
    return times_ns / NS_PER_MS


def _labels(names: Sequence[str], codes: IntArray) -> "pd.Categorical[str]":
    import pandas as pd  # noqa: PLC0415  slow to import, and not every command needs it

    return pd.Categorical.from_codes(codes, categories=pd.Index(names))
