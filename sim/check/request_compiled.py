"""What the compiled check of requests on shared providers works on, and what it found. It needs numba."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sim.check import request_kernels as kernels
from sim.check.compiled import walk_graph
from sim.check.kernels import Graph
from sim.check.request_kernels import Rules, Tables
from sim.contract.allocation import FIFO
from sim.contract.load import OpenArrivals
from sim.contract.output import RunOutput
from sim.contract.plain import PlainInput
from sim.contract.run import PPM, RunInput, WorkloadInput
from sim.units import IntArray


class Requests:
    """The requests of one workload of a run."""

    def __init__(self, given: RunInput, out: RunOutput, index: int, tables: Tables) -> None:
        self.workload = given.workloads[index]
        self.out, self.tables = out, tables
        self.rules, self.graph = rules_of(given, out, index), graph_of(self.workload)
        self.providers = {self.workload.provider_of(call) for call in range(self.workload.calls_per_request)}

    def first_wrong(self) -> int | None:
        """Return the first request that breaks a rule of its own, or None."""
        number = int(kernels.first_wrong(self.tables, self.rules, self.graph))
        return number if number != kernels.NOBODY else self.first_beyond_budget()

    def first_beyond_budget(self) -> int | None:
        """Return the first request with an attempt too many for the first attempts made by then, or None."""
        budget_ppm = self.workload.faults.retry_budget_ppm if self.workload.faults else None
        if budget_ppm is None:
            return None
        attempts, decided_ns = self.out.attempts, self.rules.decided_ns
        mine = self.out.workload[attempts.number] == self.rules.settings[kernels.INDEX]
        made_ns = np.sort(attempts.ready_ns[mine & (attempts.attempt == 0)])
        firsts = np.searchsorted(made_ns, decided_ns, side="right")
        beyond = np.searchsorted(np.sort(decided_ns), decided_ns, side="right") * PPM > budget_ppm * firsts
        further = attempts.number[mine & (attempts.attempt > 0)]
        return int(further[np.argmax(beyond)]) if beyond.any() else None

    def count_exact(self, least: npt.NDArray[np.int32], greatest: npt.NDArray[np.int32]) -> int:
        """Return how many the list scheduler knows exactly; -1 - the first whose latency is another.

        `least` and `greatest` are their caps while they waited, by request; empty where caps never change.
        """
        return int(kernels.count_exact(self.tables, self.rules, self.graph, least, greatest))


def tables_of(out: RunOutput) -> Tables:
    """Return the tables of a run as kernels take them."""
    names = {"ended": "outcome", "parallel": "ran_parallel"}
    columns = [name for name in Tables._fields if name not in out.attempts.__annotations__]
    of_requests = {name: getattr(out, names.get(name, name)) for name in columns}
    of_attempts = {name: getattr(out.attempts, name) for name in Tables._fields if name not in columns}
    return Tables(**{name: flat(column) for name, column in (of_requests | of_attempts).items()})


def flat(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values in memory one after another, as kernels want them; a copy only if they are not."""
    return np.require(values, requirements=["C", "W"]).reshape(-1)


def graph_of(one: WorkloadInput) -> Graph:
    """Return what the calls of a workload wait for."""
    alone = PlainInput(
        slots=1,
        allocation=FIFO,
        service_ns=np.ones((1, one.calls_per_request), dtype=np.int64),
        join_ns=np.zeros(1, dtype=np.int64),
        dependencies=one.dependencies,
        serial_order=one.serial_order,
        runs_parallel_at=np.ones(2, dtype=np.bool_),
        load=OpenArrivals(np.zeros(1, dtype=np.int64)),
    )
    return walk_graph(alone)


def rules_of(given: RunInput, out: RunOutput, index: int) -> Rules:
    """Return what a workload was given, as kernels take it."""
    one, nothing = given.workloads[index], np.zeros(0, dtype=np.int64)
    faults, calls = one.faults, one.calls_per_request
    of_calls = np.full((kernels.CALL_ROWS, calls), kernels.NEVER)
    slots = [provider.most_slots for provider in given.providers]
    of_calls[kernels.MOST_SLOTS] = [slots[one.provider_of(call)] for call in range(calls)]
    of_calls[kernels.IS_REQUIRED] = True
    further = 0
    if faults is not None:
        for row, limits_ns in (
            (kernels.TIMEOUT, faults.timeout_ns),
            (kernels.HEDGE_AFTER, faults.hedge_after_ns),
        ):
            of_calls[row, : one.branches] = [
                kernels.NEVER if limit_ns is None else limit_ns for limit_ns in limits_ns[: one.branches]
            ]
        of_calls[kernels.IS_REQUIRED, : one.branches] = ~np.array(faults.optional)
        if faults.retry_budget_ppm is not None:
            mine = out.workload[out.attempts.number] == index
            further = int(np.count_nonzero(mine & (out.attempts.attempt > 0)))
    return Rules(
        settings=settings_of(given, index),
        calls=of_calls,
        serial_order=np.array(one.serial_order, dtype=np.int64),
        backoff_ns=np.array(faults.backoff_ns if faults else (), dtype=np.int64),
        service_ns=flat(one.service_ns),
        join_ns=flat(one.join_ns),
        tried_ns=flat(faults.service_ns) if faults else nothing,
        tried=flat(faults.outcome) if faults else nothing.astype(np.int8),
        jitter_ppm=flat(faults.jitter_ppm) if faults else nothing,
        first_token_ns=flat(one.tokens.first_token_ns) if one.tokens and one.warm_first else nothing,
        decided_ns=np.empty(further, dtype=np.int64),
        scratch=np.empty((kernels.SCRATCH_ROWS, calls), dtype=np.int64),
    )


def settings_of(given: RunInput, index: int) -> IntArray:
    one, provider = given.workloads[index], given.providers[given.workloads[index].provider_of(0)]
    faults = one.faults
    settings = np.full(kernels.SETTING_SIZE, kernels.NONE, dtype=np.int64)
    settings[kernels.INDEX] = index
    settings[kernels.CALLS] = one.calls_per_request
    settings[kernels.BRANCHES] = one.branches
    settings[kernels.JOIN_HOLDS_SLOT] = one.join_holds_slot
    settings[kernels.MOST_ATTEMPTS] = faults.most_attempts if faults else 1
    settings[kernels.HAS_FAULTS] = faults is not None
    settings[kernels.HAS_BUDGET] = faults is not None and faults.retry_budget_ppm is not None
    settings[kernels.HAS_TOKENS] = one.tokens is not None
    settings[kernels.DECIDED] = 0
    if faults is not None:
        settings[kernels.DEADLINE] = kernels.NONE if faults.deadline_ns is None else faults.deadline_ns
        settings[kernels.NEEDS] = kernels.NONE if faults.needs is None else faults.needs
    if one.warm_first:
        settings[kernels.LEADER] = one.dependencies[: one.branches].index(())
    settings[kernels.WAITS_UNKNOWN] = bool(
        provider.limits.rates or len(provider.slots) > 1 or any(provider.reserved)
    )
    cap = provider.most_slots if one.max_degree is None else min(provider.most_slots, one.max_degree)
    settings[kernels.CAP] = min(cap, one.calls_per_request)
    return settings
