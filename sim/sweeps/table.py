"""The tidy table of a sweep: a row for each point and plan, written in pieces that fit into memory.

Columns are what was varied, by key path; then the plan and the verdict; then figures, each before the
half-width of its interval. A figure that cannot be shown is null.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sim.sweeps.point_store import HALF_WIDTH, Row

ROWS_AT_A_TIME = 10_000
Kinds = dict[str, set[type]]
Rows = Callable[[], Iterable[Row]]
"""Goes through the rows of a sweep from the first on, each time that it is called."""


def table_of(rows: Rows) -> pa.Table:
    """Return the whole table in memory."""
    schema = schema_of(rows)
    return pa.Table.from_batches(list(batches(rows, schema)), schema)


def write_parquet(rows: Rows, path: Path) -> None:
    """Write the table as Parquet."""
    schema = schema_of(rows)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches(rows, schema):
            writer.write_batch(batch)


def write_csv(rows: Rows, path: Path) -> None:
    """Write the table as CSV; numbers have as few digits as tell them apart, null is empty."""
    names = schema_of(rows).names
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows())


def batches(rows: Rows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows, so many at a time."""
    left = iter(rows())
    text = {field.name for field in schema if pa.types.is_string(field.type)}
    while part := list(islice(left, ROWS_AT_A_TIME)):
        columns = {
            name: [as_text(row.get(name)) if name in text else row.get(name) for row in part]
            for name in schema.names
        }
        yield pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def schema_of(rows: Rows) -> pa.Schema:
    """Return the columns and their types, from all rows: a figure may be there at some points alone."""
    kinds: Kinds = {}
    for row in rows():
        for name, value in row.items():
            kinds.setdefault(name, set())
            if value is not None:
                kinds[name].add(type(value))
    return pa.schema([(name, column_type(kinds[name])) for name in in_order(kinds)])


def in_order(kinds: Kinds) -> list[str]:
    """Return the columns as they were met, half-widths behind their figures."""
    names = []
    for name in kinds:
        if not name.endswith(HALF_WIDTH):
            names += [name, *({f"{name}{HALF_WIDTH}"} & kinds.keys())]
    return names


def column_type(kinds: set[type]) -> Any:
    """Return the type of a column: numbers, true and false, or text where kinds are mixed."""
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds <= {int, float} else pa.string()


def as_text(value: object) -> str | None:
    """Return a value of a column of text, what is not text as in YAML."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
