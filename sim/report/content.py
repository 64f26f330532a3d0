"""What a report says, before it is HTML or Markdown: both render this, so that they cannot disagree."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

Mark = Literal["", "good", "bad", "unsure", "overloaded"]
"""How something is set off: by a colour in HTML and always by its words too."""


MOST_NARROW_CHARACTERS = 55


@dataclass(frozen=True, slots=True)
class Cell:
    """Text in a table; `note` is a footnote below it, `mark` sets the cell off."""

    text: str
    mark: Mark = ""
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under headings.

    Parameters
    ----------
    alignment
        One letter per column: `l` for words, `r` for numbers.
    """

    kind: ClassVar[str] = "table"
    caption: str
    alignment: str
    headings: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def is_wide(self) -> bool:
        """Whether it takes the whole width of a page, rather than a place beside a figure."""
        columns = zip(self.headings, *self.rows, strict=True)
        return sum(max(len(cell.text) for cell in column) for column in columns) > MOST_NARROW_CHARACTERS

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """The footnotes, each once, in the order in which they are met."""
        cells = (cell for row in (self.headings, *self.rows) for cell in row)
        return tuple(dict.fromkeys(cell.note for cell in cells if cell.note))

    def note_number(self, cell: Cell) -> int:
        """Return the 1-based number of a cell's footnote, 0 where it has none."""
        return self.notes.index(cell.note) + 1 if cell.note else 0


def table_of(
    caption: str, alignment: str, headings: Iterable[str], rows: Iterable[tuple[Cell, ...]]
) -> Table:
    """Return a table whose headings are nothing but text."""
    return Table(caption, alignment, tuple(map(Cell, headings)), tuple(rows))


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing: `name` is that of its file, `description` what somebody hears who does not see it."""

    kind: ClassVar[str] = "figure"
    name: str
    title: str
    caption: str
    description: str
    svg: str

    @property
    def file(self) -> str:
        """Where it is written, relative to the report."""
        return f"figures/{self.name}.svg"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences."""

    kind: ClassVar[str] = "paragraph"
    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences below each other."""

    kind: ClassVar[str] = "bullets"
    items: tuple[str, ...]


Block = Table | Figure | Paragraph | Bullets


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading; `anchor` is where links lead."""

    anchor: str
    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """A plan's mean latency on a card."""

    label: str
    value: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class Card:
    """One scenario's verdict."""

    title: str
    setting: str
    decision: str
    mark: Mark
    readings: tuple[Reading, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class ReportContent:
    """A whole report."""

    title: str
    subtitle: str
    headline: str
    cards: tuple[Card, ...]
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All drawings, in order."""
        return tuple(block for part in self.sections for block in part.blocks if isinstance(block, Figure))
