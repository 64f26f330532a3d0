"""The yardstick in C++, compiled when the benchmark runs and called in this process."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sim.contract.load import OpenArrivals
from sim.contract.plain import PlainInput
from sim.units import IntArray

SOURCE = Path(__file__).with_name("event_loop.cpp")
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


class Given(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("arrival", "service", "join")),
        *((name, ctypes.c_int64) for name in ("requests", "calls", "slots")),
    )


class Tables(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in ("latency", "ready", "start", "finish", "slot"))


class Loop(NamedTuple):
    """What a C++ function gives: latencies, int64[requests], and the call tables, or none."""

    latency_ns: IntArray
    tables: tuple[IntArray, ...]


def build(folder: Path) -> ctypes.CDLL | None:
    """Return the compiled library, or None where there is no g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    library = folder / "libevent_loop.so"
    subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def compiler_version() -> str | None:
    """Return the first line of `g++ --version`."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    found = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()[0]


def call(library: ctypes.CDLL, function: str, given: PlainInput, records: bool) -> Loop:
    """Run one of the C++ functions, with or without its call tables."""
    assert isinstance(given.load, OpenArrivals)
    requests, calls = given.service_ns.shape
    arrays = [
        np.ascontiguousarray(array) for array in (given.load.arrival_ns, given.service_ns, given.join_ns)
    ]
    latency_ns = np.empty(requests, dtype=np.int64)
    tables = tuple(np.empty((requests, calls), dtype=np.int64) for _ in range(4 if records else 0))
    of = Given(*(array.ctypes.data for array in arrays), requests, calls, given.slots)
    to = Tables(latency_ns.ctypes.data, *(table.ctypes.data for table in tables))
    getattr(library, function)(ctypes.byref(of), ctypes.byref(to))
    return Loop(latency_ns, tables)
