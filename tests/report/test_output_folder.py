"""Results appear complete or not at all."""

import errno
import os
import signal
from pathlib import Path

import pytest

from sim.errors import OutputError
from sim.report.output_folder import OutputFolder, interrupts_held


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
