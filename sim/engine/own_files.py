"""Files that the running user or root wrote and nobody else can: what is executed may come from no others.

The folder and the file are opened first and then asked whose they are, so that what was asked about is what
is read. The folders above are not asked: who can write there can put another folder in the place of this
one, but none that is the user's. Windows has no such owners and modes; there every file is taken, as Python
takes its own bytecode.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HAS_OWNERS = hasattr(os, "geteuid")
ROOT = 0


class NotOwnError(PermissionError):
    """A file or folder that others can write; the text says which, and who can."""


def read(folder: Path, name: str) -> bytes:
    """Return the content of a file.

    Raises
    ------
    NotOwnError
        Others can write the file or its folder.
    OSError
        It cannot be read.
    """
    if not HAS_OWNERS:
        return (folder / name).read_bytes()
    with opened(folder, os.O_DIRECTORY) as place:
        refuse_others(place, folder)
        with opened(Path(name), os.O_NOFOLLOW | os.O_NONBLOCK, place) as descriptor:
            refuse_others(descriptor, folder / name)
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()


def make_folder(folder: Path) -> None:
    """Make a folder for the user alone, if it is not there.

    Raises
    ------
    NotOwnError
        It is there, and others can write it.
    OSError
        It cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if HAS_OWNERS:
        with opened(folder, os.O_DIRECTORY) as place:
            refuse_others(place, folder)


@contextmanager
def opened(path: Path, flags: int, folder: int | None = None) -> Iterator[int]:
    """Open a file or a folder for reading."""
    descriptor = os.open(path, os.O_RDONLY | flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def refuse_others(descriptor: int, path: Path) -> None:
    """Raise `NotOwnError` where others than the user and root can write what is open."""
    found = os.fstat(descriptor)
    if found.st_uid not in (os.geteuid(), ROOT):
        raise NotOwnError(f"{path} belongs to user {found.st_uid}")
    for bit, who in ((stat.S_IWOTH, "everybody"), (stat.S_IWGRP, "its group")):
        if found.st_mode & bit:
            raise NotOwnError(f"{path} can be written by {who}")
