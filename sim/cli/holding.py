"""The folders that a command writes to: its alone from before it simulates until it ends."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path

from sim.errors import OutputError
from sim.sweeps.folder_lock import held

until_the_end: ContextVar[ExitStack] = ContextVar("until_the_end")


@contextmanager
def folders_let_go() -> Iterator[None]:
    """Let go of the folders that a command holds once it has ended, however it ends."""
    with ExitStack() as stack:
        token = until_the_end.set(stack)
        try:
            yield
        finally:
            until_the_end.reset(token)


def hold(out: str | None) -> None:
    """Hold the folder that results go to, where it is there already; a new one appears whole, at the end.

    Raises
    ------
    OutputError
        It can obviously not be written, or another process holds it.
    """
    if out is None:
        return
    require_writable(out)
    if Path(out).is_dir():
        until_the_end.get().enter_context(held(Path(out), needed=False))


def hold_points(out: str) -> None:
    """Hold the folder that points are kept in, made where it is missing."""
    require_writable(out)
    until_the_end.get().enter_context(held(Path(out)))


def require_writable(out: str) -> None:
    """Raise `OutputError` where a folder can obviously not be written."""
    place = Path(out).absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise OutputError(f"{out} could not be written: {place} is not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise OutputError(f"{out} could not be written: {place} is read-only")
