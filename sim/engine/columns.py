"""The columns that the SimPy model fills while it runs: plain lists, turned into arrays at the end."""

from typing import Any

import numpy as np

from sim.contract.plain import NO_CALL
from sim.engine.call_queue import Call


class RequestColumns:
    """One row per request, in order of arrival."""

    def __init__(self) -> None:
        self.user: list[int] = []
        self.ran_parallel: list[bool] = []
        self.arrival_ns: list[int] = []
        self.completion_ns: list[int] = []

    def arrive(self, user: int, now_ns: int) -> None:
        """Add the next request."""
        self.user.append(user)
        self.arrival_ns.append(now_ns)
        self.ran_parallel.append(False)
        self.completion_ns.append(NO_CALL)

    def complete(self, number: int, parallel: bool, now_ns: int) -> None:
        """Note how and when a request ended."""
        self.ran_parallel[number] = parallel
        self.completion_ns[number] = now_ns

    def arrays(self) -> dict[str, Any]:
        """Return the columns by name, each of one element per request."""
        return {
            "user": np.array(self.user, dtype=np.int64),
            "ran_parallel": np.array(self.ran_parallel, dtype=np.bool_),
            "arrival_ns": np.array(self.arrival_ns, dtype=np.int64),
            "completion_ns": np.array(self.completion_ns, dtype=np.int64),
        }


class CallColumns:
    """One element per request and call, `NO_CALL` until the call has finished."""

    names = ("ready_ns", "start_ns", "finish_ns", "slot")

    def __init__(self, size: int, calls_per_request: int) -> None:
        self.calls_per_request = calls_per_request
        self.ready_ns = [NO_CALL] * size
        self.start_ns = [NO_CALL] * size
        self.finish_ns = [NO_CALL] * size
        self.slot = [NO_CALL] * size

    def record(self, call: Call, now_ns: int) -> None:
        """Note a call that finishes now."""
        self.ready_ns[call.row] = call.ready_ns
        self.start_ns[call.row] = call.start_ns
        self.finish_ns[call.row] = now_ns
        self.slot[call.row] = call.slot

    def arrays(self, requests: int) -> dict[str, Any]:
        """Return the columns by name, each of shape (requests, calls)."""
        shape = (requests, self.calls_per_request)
        size = requests * self.calls_per_request
        return {
            name: np.array(getattr(self, name)[:size], dtype=np.int64).reshape(shape) for name in self.names
        }
