"""One process at a time in a folder, by a lock that the system frees when its process ends, however it ends.

The lock is of the open file, not the file's being there: one that a killed process left behind holds nobody
up. It is `flock` where there is such a thing, and on Windows a byte of the file far behind its text, as a
locked byte cannot be read there. A disk that knows no locks, as some network folders, is told from one that
is read-only.
"""

import errno
import json
import os
import shlex
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sim.errors import OutputError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NAME = ".slotsim.lock"
FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
LOCKED_BYTE = 1 << 30
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
"""What a disk without locks answers."""
MOST_BYTES_READ = 100_000


class FileLock:
    """A lock on a file, which holds who has it and is gone once nobody does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Take the lock if it is free, and return whether it was.

        Raises
        ------
        OSError
            The file cannot be written, or its disk has no locks.
        """
        while True:
            descriptor = os.open(self.path, FLAGS, 0o666)
            try:
                if not locked(descriptor):
                    os.close(descriptor)
                    return False
                # Who held it may have deleted the file after it was opened here: then another is there.
                current = is_at(descriptor, self.path)
            except OSError as error:
                os.close(descriptor)
                if error.errno in NO_LOCKS:
                    self.path.unlink(missing_ok=True)
                raise
            if current:
                break
            os.close(descriptor)
        self._descriptor = descriptor
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, this_process().encode())
        except OSError:
            self.release()
            raise
        return True

    def release(self) -> None:
        """Let others take it; nothing happens where it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if os.name == "nt":  # an open file cannot be deleted there
            os.close(descriptor)
        with suppress(OSError):
            self.path.unlink()
        if os.name != "nt":
            os.close(descriptor)

    def holder(self) -> str:
        """Return who has it in words, as far as that can be read."""
        try:
            with self.path.open("rb") as file:
                told = json.loads(file.read(MOST_BYTES_READ))
            return f"process {told['pid']} on {told['host']} since {told['since']}: {told['command']}"
        except (OSError, ValueError, TypeError, KeyError):
            return "another process"


def locked(descriptor: int) -> bool:
    """Lock an open file if no one else has, and return whether it is."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def this_process() -> str:
    """Return what tells a user which process this is, as JSON."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    command = shlex.join(sys.orig_argv)
    told = {"pid": os.getpid(), "host": socket.gethostname(), "since": since, "command": command}
    return json.dumps(told) + "\n"


class Mine(threading.local):
    """The folders that this thread holds."""

    def __init__(self) -> None:
        self.folders: set[Path] = set()


mine = Mine()


@contextmanager
def held(folder: Path, *, needed: bool = True) -> Iterator[None]:
    """Keep other processes and threads out of a folder; a body that holds it already may do so again.

    Parameters
    ----------
    folder
        Made where it is missing, and taken away again where the body leaves it empty.
    needed
        Whether to refuse a disk that has no locks; else the body runs without one there.

    Raises
    ------
    OutputError
        Another holds it, named by process, host, time and command; or it cannot be written or locked.
    """
    with ExitStack() as stack:
        stack.callback(remove_empty, [one for one in (folder, *folder.parents) if not one.exists()])
        try:
            folder.mkdir(parents=True, exist_ok=True)
            place = folder.resolve()
            lock = None if place in mine.folders else taken(folder, needed=needed)
        except OSError as error:
            raise OutputError(f"{folder} could not be written: {error.strerror or error}") from error
        if lock is not None:
            stack.callback(lock.release)
            mine.folders.add(place)
            stack.callback(mine.folders.discard, place)
        yield


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, each within the next, up to the first that is not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def taken(folder: Path, *, needed: bool) -> FileLock | None:
    """Return the lock of a folder, taken; None where its disk has none and none is needed."""
    lock = FileLock(folder / NAME)
    try:
        if lock.take():
            return lock
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        if not needed:
            return None
        words = "its disk cannot keep other processes out; use a folder on a disk of this machine"
        raise OutputError(f"{folder} could not be locked: {words} ({error.strerror})") from error
    words = "wait for its end, or use another folder"
    raise OutputError(f"{folder} is in use by {lock.holder()}; {words}")
