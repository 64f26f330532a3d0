"""The tidy table of a sweep: a row for each point and plan, written in pieces that fit into memory.

Columns are what was varied, by key path; then the plan and the verdict; then figures, each before the
half-width of its interval. A figure that cannot be shown is null.
"""

import csv
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sim.sweeps.sweep import HALF_WIDTH, Sweep

ROWS_AT_A_TIME = 10_000
Kinds = dict[str, set[type]]


def table_of(sweep: Sweep) -> pa.Table:
    """Return the whole table in memory."""
    schema = schema_of(sweep)
    return pa.Table.from_batches(list(batches(sweep, schema)), schema)


def write_parquet(sweep: Sweep, path: Path) -> None:
    """Write the table as Parquet."""
    schema = schema_of(sweep)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches(sweep, schema):
            writer.write_batch(batch)


def write_csv(sweep: Sweep, path: Path) -> None:
    """Write the table as CSV; numbers have as few digits as tell them apart, null is empty."""
    names = schema_of(sweep).names
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sweep.rows())


def batches(sweep: Sweep, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows, so many at a time."""
    rows = sweep.rows()
    text = {field.name for field in schema if pa.types.is_string(field.type)}
    while part := list(islice(rows, ROWS_AT_A_TIME)):
        columns = {
            name: [as_text(row.get(name)) if name in text else row.get(name) for row in part]
            for name in schema.names
        }
        yield pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def schema_of(sweep: Sweep) -> pa.Schema:
    """Return the columns and their types, from all rows: a figure may be there at some points alone."""
    kinds: Kinds = {}
    for row in sweep.rows():
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
