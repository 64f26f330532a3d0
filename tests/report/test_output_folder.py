"""Results appear complete or not at all."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sim.errors import OutputError
from sim.report.file_list import SUMMARY, mixture
from sim.report.output_folder import OutputFolder, interrupts_held
from sim.sweeps.folder_lock import FileLock, held


def write(target: Path, files: dict[str, str], error: BaseException | None = None) -> None:
    with OutputFolder(target) as folder:
        for name, text in files.items():
            folder.write_text(name, text)
        if error is not None:
            raise error


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_every_file_appears_at_the_end_and_none_before(tmp_path: Path) -> None:
    target = tmp_path / "reports" / "peak"
    with OutputFolder(target) as folder:
        folder.write_text("report.md", "# Peak\n")
        folder.path("figures/latency.svg").write_bytes(b"<svg/>")
        assert not target.exists()
    assert names(tmp_path) == [
        "reports",
        "reports/peak",
        "reports/peak/figures",
        "reports/peak/figures/latency.svg",
        "reports/peak/report.md",
    ]
    assert (target / "report.md").read_bytes() == b"# Peak\n"


def test_a_second_run_replaces_its_files_and_leaves_others(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for text in ("first", "second"):
        write(tmp_path, {"a/summary.json": text})
    assert names(tmp_path) == ["a", "a/summary.json", "notes.txt"]
    assert (tmp_path / "a/summary.json").read_text() == "second"
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no"), SystemExit(1)])
def test_an_exception_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    write(tmp_path / "out", {"summary.json": "first"})
    with pytest.raises(type(error)):
        write(tmp_path / "out", {"summary.json": "second", "other.json": "second"}, error)
    assert names(tmp_path) == ["out", "out/summary.json"]
    assert (tmp_path / "out/summary.json").read_text() == "first"


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    target = tmp_path / "out"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "requests.csv")
    with pytest.raises(OutputError) as caught:
        write(target, {"summary.json": "{}"}, full)
    assert str(caught.value) == f"{target} could not be written: No space left on device"
    assert names(tmp_path) == []


def test_a_file_in_the_way_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OutputError) as caught, OutputFolder(tmp_path / "out" / "deeper"):
        pass
    assert str(caught.value) == f"{tmp_path}/out/deeper could not be written: Not a directory"
    assert (tmp_path / "out").read_text() == "a file"


def test_a_folder_in_the_way_of_a_file_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "z.json").mkdir()
    with pytest.raises(OutputError) as caught:
        write(tmp_path, {"a.json": "{}", "z.json": "{}"})
    assert str(caught.value) == f"{tmp_path} could not be written: z.json is a folder"
    assert names(tmp_path) == ["z.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into a read-only folder")
def test_a_read_only_folder_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(OutputError) as caught, OutputFolder(tmp_path / "out"):
        pass
    tmp_path.chmod(0o755)
    assert str(caught.value) == f"{tmp_path}/out could not be written: Permission denied"


def test_ctrl_c_waits_for_the_last_file() -> None:
    done = []

    def move() -> None:
        with interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("moved")

    with pytest.raises(KeyboardInterrupt):
        move()
    assert done == ["moved"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


OLD = {"calls.csv": "old calls", "figures/old.svg": "old", "requests.csv": "old requests", "same.txt": "same"}
NEW = {"levels.csv": "new levels", "requests.csv": "new requests", "same.txt": "same"}
USERS = {"figures/mine.svg": "mine", "mine.txt": "mine"}

PUBLISHING = """
import json, os, sys
from sim.report.output_folder import OutputFolder

target, files, last = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
done = 0

def dying(call):
    def called(*given, **named):
        global done
        done += 1
        if done > last:
            os._exit(9)  # as by kill -9: nothing is tidied up
        return call(*given, **named)
    return called

with OutputFolder(target) as folder:
    for name, text in files.items():
        folder.write_text(name, text)
    folder.write_summary({"run": files["requests.csv"]})
    for name in ("rename", "replace", "unlink", "rmdir"):
        setattr(os, name, dying(getattr(os, name)))
"""


def publish(target: Path, files: dict[str, str]) -> None:
    with OutputFolder(target) as folder:
        for name, text in files.items():
            folder.write_text(name, text)
        folder.write_summary({"run": files["requests.csv"]})


def publish_and_die(target: Path, files: dict[str, str], steps: int) -> bool:
    """Publish in a process that dies after so many steps, and return whether it came to its end before."""
    command = [sys.executable, "-c", PUBLISHING, str(target), json.dumps(files), str(steps)]
    code = subprocess.run(command, check=False).returncode
    assert code in (0, 9)
    return code == 0


def texts(folder: Path) -> dict[str, str]:
    """Return the text of every file but the hidden ones and the summary."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != SUMMARY]
    found = {path.relative_to(folder).as_posix(): path.read_text() for path in files}
    return {name: text for name, text in found.items() if not name.startswith(".slotsim")}


def run_of(folder: Path) -> str:
    run: str = json.loads((folder / SUMMARY).read_text())["run"]
    return run


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Return a folder with an older run and files of the user."""
    older = tmp_path / "older"
    publish(older, OLD)
    for name, text in USERS.items():
        (older / name).write_text(text)
    return older


def test_files_that_only_the_older_run_wrote_are_deleted(older: Path) -> None:
    publish(older, NEW)
    assert texts(older) == NEW | USERS
    assert names(older) == sorted([*NEW, *USERS, "figures", SUMMARY])
    assert mixture(older) == []


def test_what_the_user_has_changed_since_is_kept(older: Path) -> None:
    (older / "calls.csv").write_text("with a remark")
    publish(older, NEW)
    assert texts(older) == NEW | USERS | {"calls.csv": "with a remark"}


def test_files_without_a_summary_leave_those_of_a_run(older: Path) -> None:
    write(older, {"schema.json": "{}"})
    assert texts(older) == OLD | USERS | {"schema.json": "{}"}
    assert (run_of(older), mixture(older)) == ("old requests", [])


def test_a_process_killed_at_any_step_leaves_the_old_run_the_new_one_or_what_readers_refuse(
    older: Path, tmp_path: Path
) -> None:
    seen = []
    for step in range(100):
        folder, third = tmp_path / "out", {"requests.csv": "third requests"}
        shutil.copytree(older, folder)
        ended = publish_and_die(folder, NEW, step)
        whole = not mixture(folder)
        seen.append(run_of(folder) if whole else "refused")
        if whole:
            of_old = run_of(folder) == "old requests"
            assert texts(folder) == (OLD if of_old else NEW) | USERS
        publish(folder, third)
        assert texts(folder) == third | USERS
        assert names(folder) == sorted([*third, *USERS, "figures", SUMMARY])
        assert mixture(folder) == []
        shutil.rmtree(folder)
        if ended:
            break
    assert list(dict.fromkeys(seen)) == ["old requests", "refused", "new requests"]
    assert len(seen) > 8


def test_a_process_killed_over_a_new_folder_leaves_none_of_it_or_all(tmp_path: Path) -> None:
    whole = []
    for step in range(100):
        folder = tmp_path / str(step) / "out"
        folder.parent.mkdir()
        ended = publish_and_die(folder, NEW, step)
        whole.append(folder.exists())
        if whole[-1]:
            assert (texts(folder), mixture(folder)) == (NEW, [])
        write(folder.parent / "next", {"a.txt": "a"})
        assert names(folder.parent) == names_of_two(folder) if whole[-1] else ["next", "next/a.txt"]
        if ended:
            break
    assert whole == sorted(whole)


def names_of_two(folder: Path) -> list[str]:
    return sorted(["next", "next/a.txt", "out", *(f"out/{name}" for name in names(folder))])


def test_what_a_dead_process_was_writing_is_cleared_and_that_of_a_living_one_left(older: Path) -> None:
    (older / ".slotsim-0000dead.part" / "figures").mkdir(parents=True)  # of a version without locks
    (older / ".slotsim-1111dead.part").mkdir()
    (older / ".slotsim-1111dead.lock").touch()
    (older / ".slotsim-2222dead.lock").touch()
    living = FileLock(older / ".slotsim-33334444.lock")
    assert living.take()
    (older / ".slotsim-33334444.part").mkdir()
    publish(older, NEW)
    hidden = [path.name for path in sorted(older.glob(".*"))]
    assert hidden == [".slotsim-33334444.lock", ".slotsim-33334444.part"]
    living.release()
    publish(older, NEW)
    assert list(older.glob(".*")) == []


def test_a_folder_that_another_process_holds_is_not_written_to(older: Path) -> None:
    command = "from pathlib import Path; import sys; from sim.sweeps.folder_lock import held\n" + (
        "with held(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", command, str(older)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(OutputError, match=rf"^{older} is in use by process {process.pid} on "):
        publish(older, NEW)
    process.communicate()
    assert texts(older) == OLD | USERS
    assert list(older.glob(".*")) == []
    with held(older):
        publish(older, NEW)
    assert texts(older) == NEW | USERS


def test_a_rename_that_fails_is_told_and_the_next_run_brings_it_to_its_end(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, calls = os.replace, []

    def failing(*given: Path) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(*given)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OutputError) as caught:
        publish(older, NEW)
    assert str(caught.value) == f"{older} could not be written: Input/output error"
    assert [str(fault) for fault in mixture(older)] == [
        f"{older}: must be whole; its writing goes on or was cut off: run the command that wrote it again"
    ]
    monkeypatch.undo()
    write(older, {"schema.json": "{}"})
    assert texts(older) == NEW | USERS | {"schema.json": "{}"}
    assert (run_of(older), mixture(older)) == ("new requests", [])
