"""Borders between regions of equal labels on a grid, by search: far fewer cells are looked at than there are.

A coarse lattice comes first. Then, in rounds: halfway between two known cells of a row or column whose
labels differ, and, where the border is found, the cells beside it on all sides. So a border is followed cell
by cell wherever it leads, and a label that differs right beside it is found. An island within the coarse
lattice, away from any border, is not: what was not looked at is `inferred`, never known.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

Cell = tuple[int, int]
"""Row and column, 0-based."""
Label = Callable[[Sequence[Cell]], Sequence[str]]

COARSE = 8
"""Parts into which the lattice divides each side."""


def search(rows: int, columns: int, label: Label, known: Mapping[Cell, str] | None = None) -> dict[Cell, str]:
    """Return the labels of the cells that were looked at.

    Parameters
    ----------
    rows, columns
        The size of the grid; one row makes it a line.
    label
        Returns the labels of cells, in order; asked for many at a time.
    known
        Labels that are known already.
    """
    found = dict(known or {})
    wanted = {(row, column) for row in lattice(rows) for column in lattice(columns)}
    while missing := sorted(wanted - found.keys()):
        found |= zip(missing, label(missing), strict=True)
        wanted = set(halfway(found)) | set(beside_borders(found, rows, columns))
    return found


def lattice(size: int) -> list[int]:
    """Return places that divide a side, its ends among them."""
    return sorted({round(part * (size - 1) / COARSE) for part in range(COARSE + 1)})


def halfway(found: Mapping[Cell, str]) -> Iterator[Cell]:
    """Yield the middles between known cells that are next to each other on a line and differ."""
    for first, second in known_neighbours(found):
        if found[first] != found[second] and distance(first, second) > 1:
            yield (first[0] + second[0]) // 2, (first[1] + second[1]) // 2


def beside_borders(found: Mapping[Cell, str], rows: int, columns: int) -> Iterator[Cell]:
    """Yield the cells around two that touch and differ."""
    for first, second in known_neighbours(found):
        if found[first] != found[second] and distance(first, second) == 1:
            for cell in (first, second):
                yield from around(cell, rows, columns)


def known_neighbours(found: Mapping[Cell, str]) -> Iterator[tuple[Cell, Cell]]:
    """Yield pairs of known cells with no known one between them, along rows, then along columns."""
    by_row = sorted(found)
    by_column = sorted(found, key=lambda cell: (cell[1], cell[0]))
    for first, second in pairwise(by_row):
        if first[0] == second[0]:
            yield first, second
    for first, second in pairwise(by_column):
        if first[1] == second[1]:
            yield first, second


def distance(first: Cell, second: Cell) -> int:
    """Return how many steps lie between two cells of a line."""
    return abs(first[0] - second[0]) + abs(first[1] - second[1])


def around(cell: Cell, rows: int, columns: int) -> Iterator[Cell]:
    """Yield the cells that touch one, by a side or a corner."""
    row, column = cell
    for down in range(max(0, row - 1), min(rows, row + 2)):
        for right in range(max(0, column - 1), min(columns, column + 2)):
            yield down, right


def inferred(found: Mapping[Cell, str], rows: int, columns: int) -> dict[Cell, str]:
    """Return labels of the cells not looked at: of each connected region, where all it touches agree."""
    unknown = {(row, column) for row in range(rows) for column in range(columns)} - found.keys()
    labels: dict[Cell, str] = {}
    while unknown:
        region, touched = flood(unknown.pop(), found, rows, columns)
        unknown -= region
        names = {found[cell] for cell in touched}
        if len(names) == 1:
            labels |= dict.fromkeys(region, names.pop())
    return labels


def flood(start: Cell, found: Mapping[Cell, str], rows: int, columns: int) -> tuple[set[Cell], set[Cell]]:
    """Return the connected unknown cells from one on, and the known ones that they touch by a side."""
    region, touched, waiting = {start}, set(), [start]
    while waiting:
        here = waiting.pop()
        for cell in around(here, rows, columns):
            if distance(here, cell) != 1:
                continue
            if cell in found:
                touched.add(cell)
            elif cell not in region:
                region.add(cell)
                waiting.append(cell)
    return region, touched
