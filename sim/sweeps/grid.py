"""What a sweep varies: key paths of a scenario and the values they take, every combination of them.

As text an axis is `KEY=VALUES`. Values are separated by commas, each one of

- `FROM:TO` or `FROM:TO:STEP`, both ends included: `1:40`, `0:1:0.025`;
- `log:FROM:TO:COUNT`, so many values at equal ratios, rounded where both ends are whole: `log:1:1000:10`;
- a YAML scalar: `5`, `fifo`, `null`, `true`, in quotes where it holds a comma or a colon.

Keys that change together are `KEY,KEY=VALUE:VALUE,VALUE:VALUE`: `a,b=1:2,3:4` is a=1, b=2, then a=3, b=4.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

import numpy as np

from sim.errors import ArgumentError, InputError
from sim.scenario.source import parsed_override

Value = bool | int | float | str | None
Point = dict[str, Value]
"""A value for each key path."""

MOST_POINTS = 10_000_000
VARY = "--vary"
NUMBER = r"(-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
RANGE = re.compile(rf"{NUMBER}:{NUMBER}(?::{NUMBER})?")
LOG_STEPS = re.compile(rf"log:{NUMBER}:{NUMBER}:(\d+)")
LOG_DIGITS = 6
KEY = re.compile(r"[A-Za-z_][\w.\[\]-]*")


@dataclass(frozen=True, slots=True)
class Axis:
    """Keys that change together, and the values they take: `values[i]` has one for each key."""

    keys: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]

    @classmethod
    def parsed(cls, text: str, option: str = VARY) -> Self:
        """Return the axis that a text describes.

        Raises
        ------
        ArgumentError
            The text has no such form; `option` is what the message shows as its origin.
        """
        names, equals, values = text.partition("=")
        keys = tuple(name.strip() for name in names.split(","))
        if not equals or not all(KEY.fullmatch(key) for key in keys):
            raise ArgumentError(option, "must be KEY=VALUES or KEY,KEY=VALUE:VALUE", text)
        parts = split_outside_quotes(values, ",")
        if len(keys) == 1:
            found: list[tuple[Value, ...]] = [
                (value,) for part in parts for value in values_of(part.strip(), text, option)
            ]
        else:
            found = [linked(part, len(keys), text, option) for part in parts]
        return cls(keys, different(found))

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination of the values of some axes; the last axis changes fastest."""

    axes: tuple[Axis, ...]

    @classmethod
    def of(cls, axes: Iterable[Axis], option: str = VARY) -> Self:
        """Return the grid of some axes.

        Raises
        ------
        ArgumentError
            There are none, a key has two, or there are more than ten million points.
        """
        grid = cls(tuple(axes))
        if not grid.axes:
            raise ArgumentError(option, "must be given", None)
        for place, key in enumerate(grid.keys):
            if key in grid.keys[:place]:
                raise ArgumentError(option, "must name each key once", key)
        if len(grid) > MOST_POINTS:
            raise ArgumentError(option, f"must give no more than {MOST_POINTS:,} points", f"{len(grid):,}")
        return grid

    @classmethod
    def parsed(cls, texts: Sequence[str]) -> Self:
        """Return the grid that texts describe, one axis each."""
        return cls.of(Axis.parsed(text) for text in texts)

    @classmethod
    def from_values(cls, vary: Mapping[str | tuple[str, ...], Iterable[object]]) -> Self:
        """Return the grid of key paths and their values; a tuple of keys takes tuples of values.

        Raises
        ------
        ArgumentError
            A value is not a YAML scalar, or an axis has none.
        """
        axes = []
        for keys, values in vary.items():
            many = isinstance(keys, tuple)
            points = [tuple(value) if many else (value,) for value in values]  # type: ignore[arg-type]
            names = keys if isinstance(keys, tuple) else (keys,)
            axes.append(Axis(names, different([scalars(point, names) for point in points])))
            if not axes[-1].values:
                raise ArgumentError("vary", "must give values", {keys: []})
        return cls.of(axes, "vary")

    def __len__(self) -> int:
        return math.prod(len(axis) for axis in self.axes)

    @property
    def keys(self) -> tuple[str, ...]:
        """All key paths, in order."""
        return tuple(key for axis in self.axes for key in axis.keys)

    def point(self, index: int) -> Point:
        """Return the point at a place, 0 <= index < len."""
        values: tuple[Value, ...] = ()
        for axis in reversed(self.axes):
            index, place = divmod(index, len(axis))
            values = (*axis.values[place], *values)
        return dict(zip(self.keys, values, strict=True))

    def points(self) -> Iterator[Point]:
        """Yield every point in order."""
        return (self.point(index) for index in range(len(self)))

    def probes(self) -> Iterator[Point]:
        """Yield points that hold every value of every axis, with the first values of the others."""
        first = self.point(0)
        yield first
        for axis in self.axes:
            for values in axis.values[1:]:
                yield first | dict(zip(axis.keys, values, strict=True))


def key_of(point: Point) -> str:
    """Return a point as text that tells it from all others."""
    return json.dumps(point, sort_keys=True, separators=(",", ":"))


def values_of(part: str, text: str, option: str) -> Iterator[Value]:
    """Yield what one part of a list of values stands for."""
    if match := LOG_STEPS.fullmatch(part):
        yield from log_steps(match[1], match[2], int(match[3]), text, option)
    elif match := RANGE.fullmatch(part):
        yield from steps(Decimal(match[1]), Decimal(match[2]), Decimal(match[3] or 1), text, option)
    elif ":" in part and part[:1] not in "'\"":
        rule = "must have values such as 1:40, 0:1:0.025, log:1:1000:10, 5, fifo, null or 'a:b'"
        raise ArgumentError(option, rule, text)
    else:
        yield scalar(part, text, option)


def steps(low: Decimal, high: Decimal, step: Decimal, text: str, option: str) -> Iterator[Value]:
    """Yield low, low + step, ... up to high; whole where low and step are."""
    if high < low:
        raise ArgumentError(option, "must have FROM <= TO", text)
    if step <= 0:
        raise ArgumentError(option, "must have a STEP > 0", text)
    count = int((high - low) / step) + 1
    if count > MOST_POINTS:
        raise ArgumentError(option, f"must give no more than {MOST_POINTS:,} points", text)
    whole = low == int(low) and step == int(step)
    for number in range(count):
        value = low + number * step
        yield int(value) if whole else float(value)


def log_steps(low: str, high: str, count: int, text: str, option: str) -> Iterator[Value]:
    """Yield values at equal ratios, as whole numbers where both ends are written as such."""
    first, last = float(low), float(high)
    if not 0 < first < last:
        raise ArgumentError(option, "must have 0 < FROM < TO for log steps", text)
    if not 2 <= count <= MOST_POINTS:
        raise ArgumentError(option, "must have a COUNT >= 2 of log steps", text)
    whole = low.isdecimal() and high.isdecimal()
    for place in range(count):
        value = first * (last / first) ** (place / (count - 1))
        yield round(value) if whole else float(f"{value:.{LOG_DIGITS}g}")


def linked(part: str, count: int, text: str, option: str) -> tuple[Value, ...]:
    """Return one value for each of several keys."""
    values = split_outside_quotes(part, ":")
    if len(values) != count:
        raise ArgumentError(option, f"must give {count} values, separated by colons, each time", text)
    return tuple(scalar(value.strip(), text, option) for value in values)


def scalar(part: str, text: str, option: str) -> Value:
    """Return a YAML scalar."""
    try:
        _, value = parsed_override(f"value={part}")
    except InputError:
        value = ()
    if part == "" or not is_scalar(value):
        raise ArgumentError(option, "must have values that are numbers, words, true, false or null", text)
    return value  # type: ignore[no-any-return]


def is_scalar(value: object) -> bool:
    """Return whether a value is one that a table can hold in a column."""
    return value is None or isinstance(value, bool | int | str) or is_finite(value)


def is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def scalars(point: tuple[object, ...], keys: tuple[str, ...]) -> tuple[Value, ...]:
    """Return the values of a point without NumPy's types."""
    plain = tuple(value.item() if isinstance(value, np.generic) else value for value in point)
    if len(plain) != len(keys):
        raise ArgumentError("vary", f"must give {len(keys)} values for {', '.join(keys)}", point)
    for value in plain:
        if not is_scalar(value):
            raise ArgumentError("vary", "must give numbers, text, true, false or None", value)
    return plain  # type: ignore[return-value]


def different(values: Iterable[tuple[Value, ...]]) -> tuple[tuple[Value, ...], ...]:
    """Return values in their order, each once; 1 and true are different, 1 and 1.0 are not."""
    seen: dict[object, tuple[Value, ...]] = {}
    for value in values:
        seen.setdefault(tuple((isinstance(item, bool), item) for item in value), value)
    return tuple(seen.values())


def split_outside_quotes(text: str, mark: str) -> list[str]:
    """Return the parts of a text between marks, those within quotes left alone."""
    parts, start, quote = [], 0, ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == mark:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
