"""One process at a time in a folder, and a lock that ends with its process."""

import errno
import fcntl
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sim.errors import OutputError
from sim.sweeps.folder_lock import NAME, FileLock, held

HOLDER = """
import sys
from pathlib import Path
from sim.sweeps.folder_lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(folder: Path) -> subprocess.Popen[str]:
    """Start a process that holds a folder until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def refusal(folder: Path) -> str:
    with pytest.raises(OutputError) as caught, held(folder):
        pass
    return str(caught.value)


def test_another_process_is_told_by_number_host_time_and_command(tmp_path: Path) -> None:
    process = holding(tmp_path)
    since = json.loads((tmp_path / NAME).read_text())["since"]
    command = shlex.join([sys.executable, "-c", HOLDER, str(tmp_path)])
    assert refusal(tmp_path) == (
        f"{tmp_path} is in use by process {process.pid} on {socket.gethostname()} since {since}: {command}; "
        "wait for its end, or use another folder"
    )
    process.communicate()
    assert list(tmp_path.iterdir()) == []
    with held(tmp_path):
        pass


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    process = holding(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (tmp_path / NAME).exists()
    with held(tmp_path):
        assert json.loads((tmp_path / NAME).read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_body_may_hold_what_it_holds_and_another_thread_may_not(tmp_path: Path) -> None:
    told = []
    with held(tmp_path), held(tmp_path / "." / "new" / ".."):
        assert (tmp_path / NAME).exists()
        thread = threading.Thread(target=lambda: told.append(refusal(tmp_path)))
        thread.start()
        thread.join()
        with held(tmp_path):
            pass
        assert (tmp_path / NAME).exists()
    assert told[0].startswith(
        f"{tmp_path} is in use by process {os.getpid()} on {socket.gethostname()} since "
    )
    assert not (tmp_path / NAME).exists()


def test_a_folder_is_made_and_taken_away_again_where_it_stays_empty(tmp_path: Path) -> None:
    with held(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert list(tmp_path.iterdir()) == []
    with held(tmp_path / "a" / "b"):
        (tmp_path / "a" / "mine").touch()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "mine"]


def test_a_lock_that_is_deleted_by_its_holder_is_not_taken_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, path = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock"), tmp_path / "lock"
    assert first.take()
    flock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        first.release()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert second.take()
    assert path.exists()
    monkeypatch.undo()
    assert not FileLock(path).take()


def test_a_damaged_lock_names_another_process(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / NAME)
    assert lock.take()
    (tmp_path / NAME).write_text("{")
    words = "wait for its end, or use another folder"
    assert refusal(tmp_path) == f"{tmp_path} is in use by another process; {words}"
    lock.release()


def no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_a_disk_without_locks_is_told_where_one_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert refusal(tmp_path / "new") == (
        f"{tmp_path}/new could not be locked: its disk cannot keep other processes out; "
        "use a folder on a disk of this machine (No locks available)"
    )
    with held(tmp_path, needed=False):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file") == f"{tmp_path}/file could not be written: File exists"
    assert refusal(tmp_path / "file" / "a") == f"{tmp_path}/file/a could not be written: Not a directory"

    def read_only(*_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", read_only)
    assert refusal(tmp_path) == f"{tmp_path} could not be written: Read-only file system"


def test_a_full_disk_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    assert refusal(tmp_path) == f"{tmp_path} could not be written: No space left on device"
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
