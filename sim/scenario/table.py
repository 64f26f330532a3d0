"""CSV tables that a scenario names, read with every bad cell reported by line and column.

A table is read as a stream, so a slice of a large trace costs only its rows.
Timestamps never pass through a float: Azure's have 100 ns digits, which float seconds lose.
"""

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from itertools import islice
from operator import itemgetter
from pathlib import Path as FilePath
from typing import Any

from sim.errors import Fault, InputError
from sim.scenario.base import MAX_MS, fault_in
from sim.scenario.faults import nearest
from sim.scenario.source import not_utf8
from sim.units import NS_PER_S

SHOWN_FAULTS = 20
INT64_MAX = 2**63 - 1
NS_PER_UNIT = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": NS_PER_S}
STAMP = re.compile(
    r"([0-9-]{10}[ T][0-9]{2}:[0-9]{2}):([0-5][0-9])(?:\.([0-9]{1,30}))?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
EPOCH = datetime(1970, 1, 1)  # times without an offset are taken as UTC


@dataclass(frozen=True)
class ColumnReader:
    """How the cells of a column are read: each as a value, or None where it breaks the rule."""

    rule: str
    read: Callable[[Sequence[str]], Sequence[Any]]


@dataclass(frozen=True)
class Table:
    """The wanted columns of a CSV file's slice, and the line that each row stands on.

    `rows_before` counts the rows that were skipped: less than asked for where the file ends first.
    """

    file: str
    columns: dict[str, Sequence[Any]]
    lines: list[int]
    rows_before: int


def read_table(
    file: str,
    readers: Mapping[str, ColumnReader],
    stated: Fault,
    first: int = 0,
    count: int | None = None,
) -> Table:
    """Return the columns that `readers` names, from `count` rows after the `first` ones.

    Raises
    ------
    InputError
        A file that cannot be read (`stated` is where the scenario names it), or every bad cell of the slice.
    """
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:  # noqa: PTH123
            rows = csv.reader(stream, strict=True)
            try:
                return _read(file, rows, readers, first, count)
            except csv.Error as error:
                raise InputError(fault_in(file, rows.line_num, "", f"must be CSV: {error}")) from None
            except UnicodeDecodeError:
                raise InputError(not_utf8(file, FilePath(file).read_bytes())) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(replace(stated, rule=f"cannot be read: {reason}")) from None


def _read(file: str, rows: Any, readers: Mapping[str, ColumnReader], first: int, count: int | None) -> Table:
    header = [name.strip() for name in next(rows, [])]
    if not any(header):
        raise InputError(fault_in(file, 1, "", "must start with a header line"))
    positions = _positions(file, header, tuple(readers))
    pick = itemgetter(*positions) if len(positions) > 1 else lambda row: (row[positions[0]],)
    faults: list[Fault] = []
    filled = (row for row in rows if len(row) > 1 or (row and row[0].strip()))
    rows_before = sum(1 for _ in islice(filled, first))
    cells: list[str] = []  # row after row in one list: a million small tuples would keep the collector busy
    lines: list[int] = []
    for row in islice(filled, count):
        if len(row) == len(header):
            cells.extend(pick(row))
            lines.append(rows.line_num)
        else:
            rule = f"must have {len(header)} values, as the header has"
            faults.append(fault_in(file, rows.line_num, "", rule, ",".join(row)))
    values = {}
    for position, (name, reader) in enumerate(readers.items()):
        column = cells[position :: len(readers)]
        values[name] = reader.read(column)
        if None in values[name]:
            bad = (index for index, value in enumerate(values[name]) if value is None)
            faults += (fault_in(file, lines[index], name, reader.rule, column[index]) for index in bad)
    refuse(file, faults)
    return Table(file, values, lines, rows_before)


def refuse(file: str, faults: Sequence[Fault]) -> None:
    """Raise the first faults in order of line, and say how many more there are."""
    if not faults:
        return
    ordered = sorted(faults, key=lambda fault: fault.line or 0)
    shown, more = ordered[:SHOWN_FAULTS], len(ordered) - SHOWN_FAULTS
    if more > 0:
        shown.append(fault_in(file, None, "", f"has {more} more bad values"))
    raise InputError(*shown)


def _positions(file: str, header: Sequence[str], names: Sequence[str]) -> list[int]:
    faults = []
    shown = tuple(name for name in header if name.isprintable())
    for name in names:
        if name not in header:
            close = nearest(name, shown) if shown else ""
            faults.append(fault_in(file, 1, "", f"must have a column {name!r}{close}"))
        elif header.count(name) > 1:
            faults.append(fault_in(file, 1, "", f"must have only one column {name!r}"))
    refuse(file, faults)
    return [header.index(name) for name in names]


def _numbers(is_whole: bool, largest: float) -> Callable[[Sequence[str]], list[float | None]]:
    def number(cell: str) -> float:
        try:
            return float(cell)
        except ValueError:
            return math.nan

    def numbers(cells: Sequence[str]) -> list[float | None]:
        try:
            values = list(map(float, cells))
        except ValueError:
            values = [number(cell) for cell in cells]
        return [
            value if 0 <= value <= largest and (not is_whole or value.is_integer()) else None
            for value in values
        ]

    return numbers


def _datetimes_ns(cells: Sequence[str]) -> list[int | None]:
    """Return nanoseconds since 1970 of `2023-11-16 18:17:03.9799600`, with any digits and any offset.

    Calendar and offset are worked out once for each minute that occurs.
    """
    minute_ns = cache(_minute_ns)

    def stamp_ns(cell: str) -> int | None:
        match = STAMP.fullmatch(cell.strip())
        if match is None:
            return None
        minute, seconds, fraction, offset = match.groups()
        whole_ns = minute_ns(minute, offset)
        if whole_ns is None:
            return None
        fraction_ns = _fraction_ns(fraction) if fraction else 0
        return _within_int64(whole_ns + int(seconds) * NS_PER_S + fraction_ns)

    return [stamp_ns(cell) for cell in cells]


def _minute_ns(minute: str, offset: str | None) -> int | None:
    try:
        since_epoch = datetime.fromisoformat(minute) - EPOCH
        if offset and offset != "Z":
            ahead = datetime.strptime(offset, "%z").utcoffset() or timedelta()
            since_epoch -= ahead
    except ValueError:
        return None
    return since_epoch // timedelta(minutes=1) * 60 * NS_PER_S


def _fraction_ns(digits: str) -> int:
    if len(digits) <= 9:
        return int(f"{digits:0<9}")
    return round(Fraction(int(digits), 10 ** (len(digits) - 9)))


def _decimals_ns(ns_per_unit: int) -> Callable[[Sequence[str]], list[int | None]]:
    context = Context(prec=60)

    def number_ns(cell: str) -> int | None:
        try:
            value = Decimal(cell)
        except InvalidOperation:
            return None
        if not value.is_finite() or value.copy_abs() > INT64_MAX:
            return None
        return _within_int64(int(context.to_integral_value(context.multiply(value, ns_per_unit))))

    return lambda cells: [number_ns(cell) for cell in cells]


def _within_int64(value_ns: int) -> int | None:
    return value_ns if abs(value_ns) <= INT64_MAX else None


AMOUNTS = ColumnReader("must be a number >= 0", _numbers(False, MAX_MS))
TOKENS = ColumnReader("must be a whole number >= 0", _numbers(True, MAX_MS))


def timestamps(unit: str) -> ColumnReader:
    """Return the reader of timestamps in ns, us, ms, s, or as `datetime`; values are int ns."""
    if unit == "datetime":
        return ColumnReader("must be a time such as 2023-11-16 18:17:03.9799600", _datetimes_ns)
    return ColumnReader(f"must be a time in {unit}", _decimals_ns(NS_PER_UNIT[unit]))
