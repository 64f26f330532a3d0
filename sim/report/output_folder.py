"""A folder of results that appears complete or not at all.

Files are written into a hidden folder on the same disk and moved into place at the end, so that a full disk,
Ctrl-C or a failed check leaves what was there before and nothing half-written.
"""

import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import NoReturn, Self

from sim.errors import OutputError


class OutputFolder:
    """Writes several files as one: on success all of them appear, on any exception none.

    Files that the folder holds already are replaced where a new one has their name, and stay otherwise.

    Parameters
    ----------
    target : the folder to fill, made with its parents where it is missing

    Raises
    ------
    OutputError
        On entering where the folder cannot be made, on leaving where a file could not be written. An
        OSError in the body counts as such, so nothing but writing belongs there.

    Examples
    --------
    >>> with OutputFolder("reports/peak") as folder:  # doctest: +SKIP
    ...     folder.write_text("summary.json", "{}")
    ...     table.to_csv(folder.path("requests.csv"))
    """

    def __init__(self, target: str | Path) -> None:
        self.target = Path(target)
        self._draft = Path()

    def __enter__(self) -> Self:
        # Inside an existing folder, since that may be a disk of its own; else where it will be made.
        place = self.target.absolute()
        while not place.exists() and place != place.parent:
            place = place.parent
        self._draft = place / f".slotsim-{token_hex(4)}.part"
        try:
            self._draft.mkdir()
        except OSError as error:
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

    def _publish(self) -> None:
        try:
            if not self.target.exists():
                self.target.parent.mkdir(parents=True, exist_ok=True)
                self._draft.rename(self.target)
                return
            drafts = sorted(path for path in self._draft.rglob("*") if path.is_file())
            moves = [(draft, self.target / draft.relative_to(self._draft)) for draft in drafts]
            for _, final in moves:
                # All that can be foreseen goes wrong here, before the first file is replaced.
                final.parent.mkdir(parents=True, exist_ok=True)
                if final.is_dir():
                    raise IsADirectoryError(0, f"{final.name} is a folder")
            for draft, final in moves:
                draft.replace(final)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> NoReturn:
        raise OutputError(f"{self.target} could not be written: {error.strerror or error}") from error


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
