"""Reads the CSV tables that a scenario names, and holds the rules that need them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from sim.errors import Fault, InputError
from sim.scenario.base import MAX_COUNT, MAX_S, NOTHING, Broken, Path
from sim.scenario.distribution import Empirical
from sim.scenario.faults import fault_at
from sim.scenario.keys import ScenarioKeys
from sim.scenario.load import ProfileLoad, StepsLoad, TraceLoad
from sim.scenario.profile import RateTable, read_profile, sliced, stepped
from sim.scenario.source import PartTree
from sim.scenario.table import AMOUNTS, read_table
from sim.scenario.trace import MAX_NS, Trace, read_trace
from sim.units import FloatArray

Cache = dict[tuple[Any, ...], Any]
Read = TypeVar("Read")


@dataclass(repr=False)
class Tables:
    """What the files of a scenario hold; `cache` hands what was read on to the scenario's variants."""

    cache: Cache = field(default_factory=dict)
    trace: Trace | None = None
    rates: RateTable | None = None
    notes: tuple[str, ...] = ()

    @property
    def column_means(self) -> dict[str, float]:
        """Mean of each column of the trace; empty without one."""
        return self.trace.column_means if self.trace else {}


class _Reading:
    """Reads the files of one scenario and collects the faults."""

    def __init__(self, tree: PartTree, cache: Cache) -> None:
        self.tree = tree
        self.tables = Tables(dict(cache))
        self.faults: list[Fault] = []

    def fault(self, path: Path, rule: str, value: object = NOTHING) -> None:
        """Note a broken rule of the value at `path`."""
        self.faults.append(fault_at(self.tree, path, Broken((), rule, value)))

    def read(self, path: Path, read: Callable[[str, Fault], Read], *key: object) -> Read | None:
        """Return what `read(file, stated)` makes of the file named at `path`; None where it cannot."""
        named = self.tree.at(path)
        file = named.named_file
        whole_key = (path[-1], file, *key)
        try:
            if whole_key not in self.tables.cache:
                self.tables.cache[whole_key] = read(
                    file, fault_at(self.tree, path, Broken((), "", named.value))
                )
            found: Read = self.tables.cache[whole_key]
        except InputError as error:
            self.faults += error.faults
            return None
        return found


def read_tables(scenario: ScenarioKeys, tree: PartTree, cache: Cache) -> Tables:
    """Return the tables of a scenario, and fill its empirical distributions.

    Raises
    ------
    InputError
        Every fault of the files, and of the values that only they tell.
    """
    reading = _Reading(tree, cache)
    for path, distribution in scenario.distributions():
        if isinstance(distribution, Empirical) and distribution.file is not None:
            _read_values(reading, (*path, "file"), distribution)
    load = scenario.load
    if isinstance(load, TraceLoad):
        reading.tables.trace = _read_trace(reading, load, scenario.trace_columns)
    if isinstance(load, ProfileLoad):
        reading.tables.rates = _profile(reading, load)
    if isinstance(load, StepsLoad) and not load.is_closed:
        reading.tables.rates = stepped(load)
    if not reading.faults:
        _hold_rules(reading, scenario)
    if reading.faults:
        raise InputError(*{str(fault): fault for fault in reading.faults}.values())
    return reading.tables


def _hold_rules(reading: _Reading, scenario: ScenarioKeys) -> None:
    """Note what only the tables' content can tell."""
    rates = reading.tables.rates
    if rates is not None and not 1 <= rates.expected_count <= MAX_COUNT:
        reading.fault(("load",), f"must give from 1 to {MAX_COUNT} arrivals", rates.expected_count)
    for index, mean_ms in enumerate(scenario.workflow.branch_means_ms(reading.tables.column_means)):
        if mean_ms < 1:
            reading.fault(("workflow", "branches", index, "duration_ms"), "must have a mean >= 1", mean_ms)


def _read_values(reading: _Reading, path: Path, distribution: Empirical) -> None:
    column = distribution.column or ""

    def values(file: str, stated: Fault) -> FloatArray:
        return np.array(read_table(file, {column: AMOUNTS}, stated).columns[column], dtype=np.float64)

    found = reading.read(path, values, column)
    if found is not None and len(found) == 0:
        reading.fault(path, "must name a file with rows", distribution.file)
    elif found is not None:
        distribution.load(found)


def _read_trace(reading: _Reading, load: TraceLoad, columns: tuple[str, ...]) -> Trace | None:
    path, key = ("load", "file"), load.model_dump_json(exclude={"file", "time_scale"})
    trace = reading.read(path, lambda file, stated: read_trace(file, load, columns, stated), key, columns)
    if trace is None:
        return None
    rows = len(trace.arrival_ns)
    if rows == 0 and load.first == 0:
        reading.fault(path, "must name a file with rows", load.file)
    elif rows == 0:
        reading.fault(("load", "first"), f"must be < {trace.rows_before}, the rows of the file", load.first)
    elif load.count is not None and rows < load.count:
        reading.fault(("load", "count"), f"must be <= {rows}, the rows from first on", load.count)
    elif int(trace.arrival_ns[-1]) * load.time_scale > MAX_NS:
        reading.fault(("load", "time_scale"), f"must keep all arrivals within {MAX_S:g} s", load.time_scale)
    if trace.rows_moved:
        rows_moved = f"{trace.rows_moved} rows were not in order of time and were sorted"
        reading.tables.notes += (f"{load.file}: {rows_moved}",)
    return trace if reading.faults or load.time_scale == 1 else trace.scaled(load.time_scale)


def _profile(reading: _Reading, load: ProfileLoad) -> RateTable | None:
    if load.points is not None:
        at_s = np.array([point.at_s for point in load.points])
        rates, end_s = np.array([point.rate_per_s for point in load.points]), load.end_s
    else:
        found = reading.read(("load", "file"), read_profile)
        if found is None:
            return None
        at_s, rates, end_s = found
        if len(at_s) == 0:
            reading.fault(("load", "file"), "must name a file with rows", load.file)
            return None
    outside = list(_outside(load, float(at_s[0]), end_s))
    for key, rule, value in outside:
        reading.fault(("load", key), rule, value)
    return None if outside else sliced(load, at_s, rates)


def _outside(load: ProfileLoad, start_s: float, end_s: float) -> Iterator[tuple[str, str, float]]:
    if load.first_s < start_s:
        yield "first_s", f"must be >= {start_s:.15g}, where the profile starts", load.first_s
    if load.end_s > end_s:
        yield "end_s", f"must be <= {end_s:.15g}, where the profile ends", load.end_s
