"""A recorded trace, replayed: when each request arrived and what each row says of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sim.errors import Fault, InputError
from sim.scenario.base import MAX_S, fault_in
from sim.scenario.load import TOKEN_ROLES, TraceLoad
from sim.scenario.table import AMOUNTS, TOKENS, ColumnReader, read_table, timestamps
from sim.units import NS_PER_S, FloatArray, IntArray, exact

MAX_NS = int(MAX_S) * NS_PER_S


@dataclass(frozen=True, repr=False)
class Trace:
    """A replayed slice, in order of time.

    Parameters
    ----------
    arrival_ns : arrivals, int64 ns, shape (n,); the first is 0.
    columns : what rows say of their requests, float64, shape (n,) each: `input_tokens`, `output_tokens`,
        and durations (ms) by the name of their column.
    rows_before : rows of the file that were skipped.
    rows_moved : rows that stood after a later one.
    """

    arrival_ns: IntArray
    columns: dict[str, FloatArray] = field(default_factory=dict)
    rows_before: int = 0
    rows_moved: int = 0

    @property
    def column_means(self) -> dict[str, float]:
        """Mean of each column."""
        return {name: float(np.mean(values)) for name, values in self.columns.items()}

    def scaled(self, scale: float) -> "Trace":
        """Return the trace with every arrival time multiplied, exactly, and rounded half to even."""
        ratio = exact(scale)
        arrival_ns = [_rounded(ns * ratio.numerator, ratio.denominator) for ns in self.arrival_ns.tolist()]
        return replace(self, arrival_ns=np.array(arrival_ns, dtype=np.int64))


def read_trace(file: str, load: TraceLoad, wanted: Sequence[str], stated: Fault) -> Trace:
    """Return the slice of `file` that `load` replays, not yet scaled.

    Parameters
    ----------
    wanted : the columns in use: token roles, and columns of durations.
    stated : where the scenario names the file.

    Raises
    ------
    InputError
        The file or a cell breaks a rule.
    """
    headers = {name: _header(load, name) for name in wanted}
    readers: dict[str, ColumnReader] = {load.role_columns.timestamp: timestamps(load.unit)}
    readers |= {header: TOKENS if name in TOKEN_ROLES else AMOUNTS for name, header in headers.items()}
    table = read_table(file, readers, stated, load.first, load.count)
    stamps = table.columns[load.role_columns.timestamp]
    if not stamps:
        return Trace(np.empty(0, np.int64), {name: np.empty(0) for name in headers}, table.rows_before)
    if max(stamps) - min(stamps) > MAX_NS:
        line, rule = (
            table.lines[stamps.index(max(stamps))],
            f"must lie within {MAX_S:g} s of the first arrival",
        )
        raise InputError(fault_in(file, line, load.role_columns.timestamp, rule))
    stamp_ns = np.array(stamps, dtype=np.int64)
    order = np.argsort(stamp_ns, kind="stable")
    columns = {
        name: np.array(table.columns[header], dtype=np.float64)[order] for name, header in headers.items()
    }
    moved = int(np.count_nonzero(stamp_ns < np.maximum.accumulate(stamp_ns)))
    return Trace(stamp_ns[order] - stamp_ns.min(), columns, table.rows_before, moved)


def _header(load: TraceLoad, name: str) -> str:
    """Return the file's name of a column: a token role has its own, a duration goes by the file's."""
    return getattr(load.role_columns, name) if name in TOKEN_ROLES else name


def _rounded(numerator: int, denominator: int) -> int:
    whole, rest = divmod(numerator, denominator)
    return whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1))
