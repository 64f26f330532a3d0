"""What a sweep has simulated so far, point by point, in a file that a killed process leaves usable.

The file has one line of JSON for a header, then one for each point, appended whole. A line that was cut off
by the end of its process is dropped. The header says which scenario and which version the points belong to;
points of another are not mixed in. A line has its point, its rows, and a digest of both together with the
header. One whose digest is another is not believed: the point counts as not simulated.

One process at a time may have the store of a folder, see `folder_lock`.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

from sim.errors import Fault, InputError, OutputError
from sim.sweeps.grid import Point, key_of

NAME = "points.jsonl"
SHOWN_CHARACTERS = 12
Row = dict[str, Any]
"""What one plan showed at a point: plain data by column."""
HALF_WIDTH = "_half_width_95"
"""What the column with the half-width of a figure's 95 % interval ends with."""


class PointStore:
    """The rows of points, looked up by the points' values: in a file, or in memory without one.

    Of a file, memory holds where each point stands, not its rows.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._kept: dict[str, list[Row]] = {}
        self._places: dict[str, int] = {}
        self._end = 0
        self._header: dict[str, Any] = {}

    @classmethod
    def at(cls, folder: str | Path, header: dict[str, Any], *, fresh: bool = False) -> Self:
        """Return the store of a folder, with what it holds already.

        Parameters
        ----------
        folder
            Made where it is missing.
        header
            What all its points belong to: plain data, names and values.
        fresh
            Forget what is there.

        Raises
        ------
        InputError
            The points there belong to something else, or the file is damaged.
        OutputError
            The folder cannot be written.
        """
        path = Path(folder) / NAME
        store = cls(path)
        store._header = header
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w+b" if fresh else "a+b") as file:
                file.seek(0)
                store._read(file)
                file.truncate(store._end)
        except OSError as error:
            raise not_written(path, error) from error
        if store._end == 0:
            store._append(header)
        return store

    def _read(self, file: IO[bytes]) -> None:
        for number, line in enumerate(whole_lines(file), start=1):
            content = self._parsed(line, number)
            if number == 1:
                self._compare(content)
            elif self._is_believed(content):
                self._places[key_of(content["point"])] = self._end
            self._end += len(line)

    def _is_believed(self, content: dict[str, Any]) -> bool:
        return content.get("sha256") == self._digest(content["point"], content["rows"])

    def _digest(self, point: Point, rows: list[Row]) -> str:
        return hashlib.sha256(as_line([self._header, point, rows])).hexdigest()

    def _compare(self, stored: dict[str, Any]) -> None:
        header = self._header
        differ = [name for name in header if stored.get(name) != header[name]]
        if differ:
            words = ", ".join(
                f"{name} {short(stored.get(name))}, now {short(header[name])}" for name in differ
            )
            rule = f"holds points of {words}; --fresh starts over"
            raise InputError(Fault(str(self._path), None, "", rule, has_value=False))

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            content = json.loads(line)
            if isinstance(content, dict) and (number == 1 or {"point", "rows"} <= content.keys()):
                return content
        except ValueError:
            pass
        fault = Fault(str(self._path), number, "", "is damaged; --fresh starts over", has_value=False)
        raise InputError(fault)

    def __contains__(self, point: Point) -> bool:
        key = key_of(point)
        return key in self._places or key in self._kept

    def add(self, point: Point, rows: list[Row]) -> None:
        """Add the rows of a point; once this returns, a killed process does not lose them."""
        if self._path is None:
            self._kept[key_of(point)] = rows
            return
        place = self._end
        self._append({"point": point, "rows": rows, "sha256": self._digest(point, rows)})
        self._places[key_of(point)] = place

    def _append(self, content: dict[str, Any]) -> None:
        assert self._path is not None
        line = as_line(content)
        try:
            with self._path.open("ab") as file:
                if file.tell() != self._end:
                    raise self._changed()
                file.write(line)
        except OSError as error:
            raise not_written(self._path, error) from error
        self._end += len(line)

    def rows(self, point: Point) -> list[Row]:
        """Return the rows of a point; `KeyError` where it is not there.

        Raises
        ------
        InputError
            The file has been changed since, and has something else there.
        """
        if self._path is None:
            return self._kept[key_of(point)]
        key = key_of(point)
        place = self._places[key]
        try:
            with self._path.open("rb") as file:
                file.seek(place)
                content = json.loads(file.readline())
            if key_of(content["point"]) == key and self._is_believed(content):
                rows: list[Row] = content["rows"]
                return rows
        except (OSError, ValueError, TypeError, KeyError):
            pass
        raise self._changed()

    def _changed(self) -> InputError:
        rule = "has changed since it was read here; run the command again"
        return InputError(Fault(str(self._path), None, "", rule, has_value=False))


def as_line(content: object) -> bytes:
    """Return plain data as a line of JSON; the same data gives the same bytes, also once read back."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines that have an end."""
    return (line for line in file if line.endswith(b"\n"))


def short(value: object) -> str:
    """Return a value as a message shows it: the beginning of a digest tells it from others."""
    return str(value)[:SHOWN_CHARACTERS]


def not_written(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{path} could not be written: {error.strerror or error}")
