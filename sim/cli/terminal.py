"""The terminal: text and tables to standard output, errors and progress to standard error.

On a terminal tables have lines and colours and fit its width. In a pipe or a file there is neither, and lines
are as long as they need to be, so that the same command always gives the same bytes.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.errors import OutputError
from sim.report.file_list import json_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress
    from rich.table import Table

WIDE = 10_000
SECONDS_BEFORE_PROGRESS = 1.0

Report = Callable[[int], None]
"""Takes the number of things done so far."""


def say(*parts: "RenderableType") -> None:
    """Print texts and tables to standard output."""
    from rich.console import Console

    on_terminal = sys.stdout.isatty()
    text = StringIO()
    console = Console(
        file=text,
        force_terminal=on_terminal,
        width=None if on_terminal else WIDE,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part in parts:
        console.print(part)
    write("".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines()))


def say_json(data: Any) -> None:
    """Print plain data as JSON to standard output."""
    write(json_text(data))


def write(text: str) -> None:
    """Write to standard output at once, so that a closed pipe or a full disk shows here."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output could not be written: {error.strerror}") from error


def wrote(out: str, *, as_json: bool) -> None:
    """Say where the report is; beside JSON on standard error."""
    text = f"report: {Path(out) / 'report.html'}"
    if as_json:
        complain(text)
    else:
        write(f"{text}\n")


def complain(text: str) -> None:
    """Print to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def new_table(*columns: str, words: int = 1, last_words: int = 0) -> "Table":
    """Return an empty table; so many columns at either end are text, the others numbers, aligned right."""
    from rich import box
    from rich.table import Table

    lines = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    table = Table(box=lines, pad_edge=False, padding=(0, 1), collapse_padding=False)
    for index, column in enumerate(columns):
        is_text = index < words or index >= len(columns) - last_words
        table.add_column(column, justify="left" if is_text else "right")
    return table


@contextmanager
def progress(total: int, unit: str, *, quiet: bool) -> Iterator[Report | None]:
    """Give a function that shows progress on a terminal, once a run has taken a while; None elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn(f"{unit} simulated"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    try:
        yield _Tally(bar, total)
    finally:
        bar.stop()


class _Tally:
    """Adds up the counts of several runs, each of which starts again from 0, on one bar."""

    def __init__(self, bar: "Progress", total: int) -> None:
        self.bar = bar
        self.task = bar.add_task("", total=total)
        self.total = total
        self.before = self.last = 0
        self.started_s = time.monotonic()

    def __call__(self, done: int) -> None:
        if done < self.last:
            self.before += self.last
        self.last = done
        if time.monotonic() - self.started_s > SECONDS_BEFORE_PROGRESS:
            self.bar.start()
        completed = self.before + done
        self.bar.update(self.task, completed=completed, total=max(self.total, completed))
