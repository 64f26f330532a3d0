"""Kernels are kept as machine code, loaded without numba, and compiled anew where nothing can be kept."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from sim.contract.plain import PlainInput
from sim.engine import kernels, native
from sim.engine.compiled import run
from sim.units import IntArray
from tests.engine_inputs import arriving, engine_input


class Pair(NamedTuple):
    """Two arguments of a kernel."""

    values: IntArray
    flags: npt.NDArray[np.int32]


@native.helper
def doubled(value: int) -> int:
    return 2 * value


@native.part
def at(values: IntArray, place: int) -> int:
    return int(values[place])


@native.kernel
def total(pair: Pair, more: IntArray | None, place: int, negative: bool) -> int:
    """Add up some things that kernels take."""
    found = doubled(at(pair.values, place)) + int(pair.flags[1, 0])
    if more is not None:
        return found + int(more[0])
    return -found if negative else found


@native.kernel
def foreign(pair: Pair, more: IntArray | None, place: int, negative: bool) -> int:  # noqa: ARG001
    """Stand for the code of somebody else."""
    return 666


VALUES = np.array([1, 20, 300])
FLAGS = np.array([[0, 0], [5, 0]], dtype=np.int32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder for machine code; nothing is loaded yet."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    total.loaded.clear()
    foreign.loaded.clear()
    native.note.cache_clear()
    return tmp_path


def test_a_kernel_takes_named_tuples_arrays_numbers_and_none(folder: Path) -> None:
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 45
    assert total(Pair(VALUES, FLAGS), None, 2, True) == -605
    assert total(Pair(VALUES, FLAGS), VALUES, 2, True) == 606
    assert len(list(folder.glob("test_native.total.*.o"))) == 2


@pytest.mark.usefixtures("folder")
def test_what_is_kept_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 45
    total.loaded.clear()
    monkeypatch.setattr(native, "compiled", None)
    assert total(Pair(VALUES, FLAGS), None, 0, False) == 7
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    total.loaded.clear()
    assert total(Pair(VALUES, FLAGS), None, 0, False) == 7
    monkeypatch.setenv("NUMBA_OPT", "1")
    total.loaded.clear()
    with pytest.raises(TypeError):  # for another setting of numba it would be
        total(Pair(VALUES, FLAGS), None, 0, False)


@pytest.mark.parametrize("damage", [b"", b"total\nnot machine code"])
def test_damaged_code_is_compiled_anew(folder: Path, damage: bytes) -> None:
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 45
    (kept,) = folder.glob("*")
    whole = kept.read_bytes()
    for content in (damage, whole[:-1]):
        kept.write_bytes(content)
        total.loaded.clear()
        assert total(Pair(VALUES, FLAGS), None, 0, False) == 7
        assert b"total" in native.Machine.from_bytes(kept.read_bytes()).code


def foreign_code(folder: Path) -> Path:
    """Put other code, whole and with its hash, where that of a kernel is kept."""
    foreign(Pair(VALUES, FLAGS), None, 1, False)
    total(Pair(VALUES, FLAGS), None, 1, False)
    total.loaded.clear()
    (other,), (kept,) = (folder.glob(f"test_native.{name}.*.o") for name in ("foreign", "total"))
    kept.write_bytes(other.read_bytes())
    return kept


def test_code_that_others_could_have_written_is_not_run(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = foreign_code(folder)
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 666  # the user's own files are believed
    total.loaded.clear()
    kept.chmod(0o666)
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 45
    why = f"{kept} can be written by everybody"
    assert caplog.messages == [f"note: machine code is compiled anew, not loaded: {why}"]
    assert kept.stat().st_mode & 0o777 == 0o600
    total.loaded.clear()
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 45
    assert len(caplog.messages) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_code_of_another_user_is_not_run(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = foreign_code(folder)
    os.chown(kept, 12_345, 12_345)
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 45
    why = f"{kept} belongs to user 12345"
    assert caplog.messages == [f"note: machine code is compiled anew, not loaded: {why}"]


def test_a_folder_that_others_can_write_is_neither_read_nor_filled(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = foreign_code(folder)
    whole = kept.read_bytes()
    folder.chmod(0o1777)
    for place, value in ((1, 45), (0, 7)):
        total.loaded.clear()
        assert total(Pair(VALUES, FLAGS), None, place, False) == value
    why = f"{folder} can be written by everybody"
    assert caplog.messages == [f"note: machine code is compiled anew, not loaded: {why}"]
    assert kept.read_bytes() == whole


def test_a_missing_folder_is_made_for_the_user_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "new"))
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 45
    assert (folder / "new").stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in (folder / "new").iterdir()] == [0o600]


def test_the_note_is_a_line_on_standard_error(folder: Path) -> None:
    folder.chmod(0o777)
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], env={**os.environ}, check=True, capture_output=True, text=True
    )
    why = f"{folder} can be written by everybody"
    assert result.stderr == f"note: machine code is compiled anew, not loaded: {why}\n"


def test_a_full_disk_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 45
    assert list(folder.glob("*")) == []


def test_where_no_folder_can_be_written_to_nothing_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "file"))
    assert total(Pair(VALUES, FLAGS), None, 1, False) == 45


def test_without_the_variable_code_is_kept_beside_the_source_or_for_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/of/cache")
    assert list(native.cache_folders(Path("/a/kernels.py"))) == [
        Path("/a/__pycache__"),
        Path("/home/of/cache/slotsim"),
    ]


@pytest.mark.parametrize("change", ["strided", "read-only"])
def test_other_arrays_are_refused(change: str) -> None:
    values = np.arange(6)[::2] if change == "strided" else np.arange(6)
    values.flags.writeable = change == "strided"
    with pytest.raises(ValueError, match="in memory one after another and not read-only"):
        total(Pair(values, FLAGS), None, 1, False)


WITHOUT_NUMBA = """
import sys
from sim.engine.compiled import run
from tests.engine_inputs import arriving, engine_input
for given in (engine_input(arriving(0, 1)), engine_input(arriving(0, 1), allocation="fifo")):
    run(given)
print("numba" in sys.modules)
"""


def test_what_is_kept_runs_without_importing_numba(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", WITHOUT_NUMBA]
    said = [
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert said == ["True\n", "False\n"]


def read_only(given: PlainInput) -> PlainInput:
    given.service_ns.flags.writeable = False
    given.join_ns.flags.writeable = False
    return given


def test_read_only_draws_need_no_kernels_of_their_own() -> None:
    run(engine_input(arriving(0, 1)))
    loaded = dict(kernels.advance.loaded)
    run(read_only(engine_input(arriving(0, 1))))
    assert kernels.advance.loaded == loaded
