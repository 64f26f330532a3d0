"""Check 2: one request alone in the engine is the list scheduler's schedule, slot by slot."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from sim.check.history import violated
from sim.contract.allocation import FIFO
from sim.contract.load import OpenArrivals
from sim.contract.output import RunOutput
from sim.contract.plain import PlainInput, run_input
from sim.contract.run import RunInput, WorkloadInput
from sim.plan.schedule import critical_path_ns, list_schedule

Run = Callable[[RunInput], RunOutput]

EVERY_NUMBER = 64
"""A request of so many calls is replayed at every number of slots, one of more calls at a spread of them."""


def check_isolated_replay(workload: WorkloadInput, run: Run) -> int:
    """Replay the first request's service times alone at 1..n slots; return how many replays were compared.

    No fault strikes it. Of a request of many calls `slot_numbers` are replayed, so that its replays take
    n log n, as its run does.

    Raises
    ------
    CheckError
        A start, finish, slot, makespan, queue delay or utilisation is not the list scheduler's.
    """
    if workload.load.requests == 0:
        return 0
    numbers = slot_numbers(workload.calls_per_request)
    critical_ns = critical_path_ns(workload.service_ns[0].tolist(), workload.dependencies)
    for slots in numbers:
        alone = isolated(workload, slots)
        out = run(run_input(alone))
        if out.requests != 1 or out.attempts.call.tolist() != list(range(alone.calls_per_request)):
            raise violated(out, f"isolated replay at {slots} slots: it did not make each call once")
        wanted = scheduled(alone, critical_ns)
        for name, found in replayed(alone, out, critical_ns).items():
            if found != wanted[name]:
                what = f"isolated replay at {slots} slots: {name} {found} must be {wanted[name]}"
                raise violated(out, what, 0)
    return len(numbers)


def slot_numbers(calls: int) -> Sequence[int]:
    """Return the numbers of slots at which a request of so many calls is replayed, ascending.

    All there are, or 1, 2, 3, the powers of two, and the last two.
    """
    if calls <= EVERY_NUMBER:
        return range(1, calls + 1)
    powers = (1 << power for power in range(calls.bit_length()))
    return sorted({*powers, 3, calls - 1, calls})


def scheduled(alone: PlainInput, critical_ns: int) -> dict[str, object]:
    """Return what the list scheduler says of a lone request."""
    times, join_ns = alone.service_ns[0].tolist(), int(alone.join_ns[0])
    schedule = list_schedule(times, alone.dependencies, alone.slots)
    return {
        "starts": list(schedule.starts_ns),
        "finishes": list(schedule.finishes_ns),
        "slots": list(schedule.slot),
        "makespan": schedule.span_ns + join_ns,
        "queue delay": schedule.span_ns - critical_ns,
        "utilisation": Fraction(sum(times), schedule.span_ns * alone.slots),
    }


def replayed(alone: PlainInput, out: RunOutput, critical_ns: int) -> dict[str, object]:
    """Return what the engine did with a lone request."""
    start_ns, finish_ns = out.attempts.start_ns, out.attempts.finish_ns
    makespan_ns, span_ns = int(out.latency_ns[0]), int(finish_ns.max())
    return {
        "starts": start_ns.tolist(),
        "finishes": finish_ns.tolist(),
        "slots": out.attempts.slot.tolist(),
        "makespan": makespan_ns,
        "queue delay": makespan_ns - critical_ns - int(alone.join_ns[0]),
        "utilisation": Fraction(int((finish_ns - start_ns).sum()), span_ns * alone.slots),
    }


def isolated(workload: WorkloadInput, slots: int) -> PlainInput:
    """Return the run of the first request alone, in parallel, on `slots` slots."""
    return PlainInput(
        slots=slots,
        allocation=FIFO,
        service_ns=workload.service_ns[:1],
        join_ns=workload.join_ns[:1],
        dependencies=workload.dependencies,
        serial_order=workload.serial_order,
        runs_parallel_at=np.ones(slots + 1, dtype=np.bool_),
        load=OpenArrivals(np.zeros(1, dtype=np.int64)),
    )
