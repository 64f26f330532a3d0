"""Who is compared: each simulates an engine input and returns the latencies, int64[requests]."""

import ctypes
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy as np

from sim.contract.load import OpenArrivals
from sim.contract.plain import PlainInput
from sim.engine.compiled import run_events, run_in_order, serves_in_order
from sim.engine.simpy_model import run
from sim.units import NS_PER_S, IntArray
from tests.benchmarks import event_loop, handwritten_simpy
from tests.benchmarks.workloads import JOIN_NS, NAMES

HANDWRITTEN = "SimPy, hand-written"
PRODUCT = "SimPy, the model to read"
EVENTS = "compiled, event by event"
IN_ORDER = "compiled, in order"
CPP_TABLES = "C++, event list, same tables"
CPP = "C++, event list, latencies only"
CPP_RECURSION = "C++, recursion, same tables"
CIW = "Ciw"
CIMBA = "cimba"

Simulate = Callable[[PlainInput], IntArray]


class Contender(NamedTuple):
    """One way to simulate the workloads it can express; `requests` keeps one run to a second or so."""

    name: str
    simulate: Simulate
    workloads: tuple[str, ...] = NAMES
    requests: int = 500_000
    most_slots: int = 2_000


def contenders(library: ctypes.CDLL | None) -> list[Contender]:
    """Return everyone who can be run here."""
    in_order = NAMES[:2]
    found = [
        Contender(HANDWRITTEN, simulate_by_hand, requests=20_000, most_slots=20),
        Contender(PRODUCT, lambda given: run(given).latency_ns, requests=20_000),
        Contender(EVENTS, lambda given: run_events(given).latency_ns),
        Contender(IN_ORDER, simulate_in_order, in_order),
    ]
    if library is not None:
        found += [
            Contender(CPP_TABLES, lambda given: loop(library, given, True)),
            Contender(CPP, lambda given: loop(library, given, False)),
            Contender(
                CPP_RECURSION,
                lambda given: event_loop.call(library, "fifo_recursion", given, True).latency_ns,
                in_order,
            ),
        ]
    if is_installed("ciw"):
        found.append(Contender(CIW, simulate_with_ciw, NAMES[:1], requests=10_000, most_slots=20))
    if is_installed("cimba"):
        from tests.benchmarks.cimba_model import mean_latency_ns  # noqa: PLC0415 (may not be installed)

        found.append(Contender(CIMBA, mean_latency_ns, NAMES[:1], most_slots=20))
    return found


def is_installed(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True


def simulate_by_hand(given: PlainInput) -> IntArray:
    """Run the hand-written model of whichever workload this is."""
    assert isinstance(given.load, OpenArrivals)
    gaps_ns: list[int] = np.diff(given.load.arrival_ns, prepend=0).tolist()
    if given.calls_per_request == 1:
        one_each = given.service_ns.ravel().tolist()
        return np.array(handwritten_simpy.one_call(gaps_ns, one_each, given.slots), dtype=np.int64)
    model = handwritten_simpy.fair_fork_join if given.allocation.caps else handwritten_simpy.fork_join
    service_ns = given.service_ns.tolist()
    return np.array(model(gaps_ns, service_ns, JOIN_NS, given.slots), dtype=np.int64)


def simulate_in_order(given: PlainInput) -> IntArray:
    assert serves_in_order(given)
    return run_in_order(given).latency_ns


def loop(library: ctypes.CDLL, given: PlainInput, records: bool) -> IntArray:
    function = "fair_share_loop" if given.allocation.caps else "fifo_loop"
    return event_loop.call(library, function, given, records).latency_ns


def simulate_with_ciw(given: PlainInput) -> IntArray:
    """Run W1 with Ciw, whose clock is a float of seconds: latencies are right to the microsecond or so."""
    ciw = import_module("ciw")
    assert isinstance(given.load, OpenArrivals)
    gaps_s = np.diff(given.load.arrival_ns, prepend=0) / NS_PER_S
    requests = len(gaps_s)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps_s.tolist(), float("inf")])],
        service_distributions=[ciw.dists.Sequential((given.service_ns[:, 0] / NS_PER_S).tolist())],
        number_of_servers=[given.slots],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(requests)
    records = sorted(simulation.get_all_records(), key=lambda record: record.id_number)
    latency_s = [record.exit_date - record.arrival_date for record in records[:requests]]
    latency_ns: IntArray = np.rint(np.array(latency_s) * NS_PER_S).astype(np.int64)
    return latency_ns
