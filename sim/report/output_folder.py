"""A folder of results that appears complete or not at all.

Files are written into a hidden folder on the same disk and moved into place at the end, so that a full disk,
Ctrl-C or a failed check leaves what was there before and nothing half-written. A folder that is new appears
by one rename. Over an older one the files are moved one after another, the summary last, which names them by
their digests: a process that is killed meanwhile leaves a folder that readers refuse, and that the next
process to write there brings to its end first.
"""

import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, NoReturn, Self

from sim.errors import OutputError
from sim.report.file_list import (
    FILES,
    PREFIX,
    SUMMARY,
    UNFINISHED,
    json_text,
    listed,
    listing_of,
    names_below,
    owned,
)
from sim.sweeps.folder_lock import NO_LOCKS, FileLock, held

DRAFT, LOCK = ".part", ".lock"


class OutputFolder:
    """Writes several files as one: on success all of them appear, on any exception none.

    Files that the folder holds already are replaced where a new one has their name. Where there is a new
    summary, files that the older summary names and the new one does not are deleted, unless they have been
    changed since. All others stay.

    Parameters
    ----------
    target : the folder to fill, made with its parents where it is missing

    Raises
    ------
    OutputError
        On entering where the folder cannot be made, on leaving where a file could not be written or another
        process holds the folder. An OSError in the body counts as such, so nothing but writing belongs there.

    Examples
    --------
    >>> with OutputFolder("reports/peak") as folder:  # doctest: +SKIP
    ...     folder.write_summary({"scenario": "peak"})
    ...     table.to_csv(folder.path("requests.csv"))
    """

    def __init__(self, target: str | Path) -> None:
        self.target = Path(target)
        self._draft = Path()
        self._summary: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        # Inside an existing folder, since that may be a disk of its own; else where it will be made.
        place = self.target.absolute()
        while not place.exists() and place != place.parent:
            place = place.parent
        name = f"{PREFIX}{token_hex(4)}"
        self._draft = place / f"{name}{DRAFT}"
        self._lock = FileLock(place / f"{name}{LOCK}")
        try:
            clear_left_over(place)
            with suppress_no_locks():
                self._lock.take()
            self._draft.mkdir()
        except OSError as error:
            self._lock.release()
            self._fail(error)
        return self

    def path(self, name: str) -> Path:
        """Return where to write the file that will be called `name` (with `/` for folders)."""
        path = self._draft / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._fail(error)
        return path

    def write_text(self, name: str, text: str) -> None:
        """Write one file, in UTF-8 with the same line ends on every system."""
        try:
            self.path(name).write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            self._fail(error)

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write plain data as `summary.json`, with the digests of all other files as `files`."""
        self._summary = summary

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if isinstance(error, OSError):
                self._fail(error)
            if error is None:
                with interrupts_held():
                    self._publish()
        finally:
            shutil.rmtree(self._draft, ignore_errors=True)
            self._lock.release()

    def _publish(self) -> None:
        try:
            if self._summary is not None:
                self.write_text(SUMMARY, json_text({**self._summary, FILES: listing_of(self._draft)}))
            if not self.target.exists():
                self.target.parent.mkdir(parents=True, exist_ok=True)
                self._draft.rename(self.target)
                return
            with held(self.target, needed=False):
                self._publish_over()
        except OSError as error:
            self._fail(error)

    def _publish_over(self) -> None:
        # Whoever moved these held the folder, so is dead by now.
        for left_over in sorted(self.target.glob(f"{PREFIX}*{UNFINISHED}")):
            move_into(self.target, left_over)
        for name in names_below(self._draft):
            # All that can be foreseen goes wrong here, before the first file is replaced.
            final = self.target / name
            final.parent.mkdir(parents=True, exist_ok=True)
            if final.is_dir():
                raise IsADirectoryError(0, f"{final.name} is a folder")
        ready = self.target / self._draft.with_suffix(UNFINISHED).name
        self._draft.rename(ready)
        move_into(self.target, ready)

    def _fail(self, error: OSError) -> NoReturn:
        raise OutputError(f"{self.target} could not be written: {error.strerror or error}") from error


def move_into(target: Path, ready: Path) -> None:
    """Move the files of a folder into another, the summary last; begun by a killed process or not.

    Its own folder is there until all is done, and so tells a reader that it is not.
    """
    names = names_below(ready)
    for name in names:
        if name != SUMMARY:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (ready / name).replace(target / name)
    if SUMMARY in names:
        kept = listed(ready)
        for name in owned(target) if kept else ():
            if name not in kept:
                delete(target, name)
        (ready / SUMMARY).replace(target / SUMMARY)
    shutil.rmtree(ready)


def delete(target: Path, name: str) -> None:
    """Delete a file of a folder, and the folders between them that it leaves empty."""
    path = target / name
    path.unlink()
    with suppress(OSError):
        for folder in path.parents:
            if folder == target:
                break
            folder.rmdir()


def clear_left_over(place: Path) -> None:
    """Delete what killed processes were writing; a living one has the lock of its draft."""
    drafts = {path.with_suffix("") for end in (DRAFT, LOCK) for path in place.glob(f"{PREFIX}*{end}")}
    for draft in sorted(drafts):
        lock = FileLock(draft.with_name(f"{draft.name}{LOCK}"))
        with suppress(OSError):  # what cannot be deleted is in no one's way
            if lock.take():
                shutil.rmtree(draft.with_name(f"{draft.name}{DRAFT}"), ignore_errors=True)
        lock.release()


@contextmanager
def suppress_no_locks() -> Iterator[None]:
    """Go on where a disk has no locks: left-overs stay there."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait until the body is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        with suppress(TypeError):  # a handler that was not set from Python cannot be put back
            signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
