"""The tables of requests and calls: every column defined once, with its unit."""

from typing import TYPE_CHECKING

import numpy as np

from sim.simulation import Run
from sim.units import NS_PER_MS, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

REQUEST_COLUMNS = {
    "plan": "plan that was simulated",
    "replication": "0-based replication",
    "request": "number of the request, in order of arrival",
    "user": "user who issued it; -1 under an open load",
    "ran": "serial or parallel, chosen at its arrival",
    "arrival_ms": "arrival, ms from the start of the run",
    "completion_ms": "completion, ms from the start of the run",
    "latency_ms": "completion - arrival, ms",
    "waiting_ms": "waiting of all its calls together, ms; they may wait at the same time",
    "service_ms": "service of all its calls together, ms",
}
CALL_COLUMNS = {
    "plan": "plan that was simulated",
    "replication": "0-based replication",
    "request": "number of the request",
    "branch": "id of the branch; `join` for a join that holds a slot",
    "ready_ms": "its dependencies were met, ms from the start of the run",
    "start_ms": "it got its slot, ms from the start of the run",
    "finish_ms": "it gave its slot back, ms from the start of the run",
    "waiting_ms": "start - ready, ms",
    "service_ms": "finish - start, ms",
    "slot": "0-based slot it ran on",
}
JOIN = "join"


def requests_table(run: Run) -> "pd.DataFrame":
    """Return one row per request with the columns of `REQUEST_COLUMNS`."""
    import pandas as pd  # noqa: PLC0415  slow to import, and not every command needs it

    out = run.out
    return pd.DataFrame(
        {
            "plan": _labels([run.plan], np.zeros(out.requests, dtype=np.int64)),
            "replication": np.full(out.requests, run.replication),
            "request": np.arange(out.requests),
            "user": out.user,
            "ran": _labels(["serial", "parallel"], out.ran_parallel.astype(np.int64)),
            "arrival_ms": _ms(out.arrival_ns),
            "completion_ms": _ms(out.completion_ns),
            "latency_ms": _ms(out.latency_ns),
            "waiting_ms": _ms(out.waiting_ns.sum(axis=1)),
            "service_ms": _ms(out.service_ns.sum(axis=1)),
        }
    )


def calls_table(run: Run, branch_ids: tuple[str, ...]) -> "pd.DataFrame":
    """Return one row per call with the columns of `CALL_COLUMNS`, by request and branch."""
    import pandas as pd  # noqa: PLC0415  slow to import, and not every command needs it

    out = run.out
    request, call = np.nonzero(out.called)
    return pd.DataFrame(
        {
            "plan": _labels([run.plan], np.zeros(len(call), dtype=np.int64)),
            "replication": np.full(len(call), run.replication),
            "request": request,
            "branch": _labels([*branch_ids, JOIN][: out.called.shape[1]], call),
            "ready_ms": _ms(out.ready_ns[out.called]),
            "start_ms": _ms(out.start_ns[out.called]),
            "finish_ms": _ms(out.finish_ns[out.called]),
            "waiting_ms": _ms(out.waiting_ns[out.called]),
            "service_ms": _ms(out.service_ns[out.called]),
            "slot": out.slot[out.called],
        }
    )


def _ms(times_ns: IntArray) -> FloatArray:
    return times_ns / NS_PER_MS


def _labels(names: list[str], codes: IntArray) -> "pd.Categorical[str]":
    import pandas as pd  # noqa: PLC0415  slow to import, and not every command needs it

    return pd.Categorical.from_codes(codes, categories=pd.Index(names))
