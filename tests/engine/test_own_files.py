"""Files that others could have written are not read, whatever they hold."""

import os
from pathlib import Path

import pytest

from sim.engine import own_files

OTHER = 12_345
IS_ROOT = os.geteuid() == 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of the user's with one file."""
    folder = tmp_path / "kept"
    own_files.make_folder(folder)
    (folder / "file").write_bytes(b"content")
    (folder / "file").chmod(0o600)
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(own_files.NotOwnError) as caught:
        own_files.read(folder, "file")
    return str(caught.value)


def test_a_new_folder_is_the_users_alone(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    assert own_files.read(folder, "file") == b"content"


@pytest.mark.parametrize(
    ("mode", "who"), [(0o666, "everybody"), (0o602, "everybody"), (0o660, "its group"), (0o620, "its group")]
)
def test_a_file_that_others_can_write_is_refused(folder: Path, mode: int, who: str) -> None:
    (folder / "file").chmod(mode)
    assert refusal(folder) == f"{folder}/file can be written by {who}"


@pytest.mark.parametrize(
    ("mode", "who"), [(0o1777, "everybody"), (0o777, "everybody"), (0o2775, "its group")]
)
def test_a_folder_that_others_can_write_is_refused(folder: Path, mode: int, who: str) -> None:
    folder.chmod(mode)
    assert refusal(folder) == f"{folder} can be written by {who}"
    with pytest.raises(own_files.NotOwnError, match="can be written by"):
        own_files.make_folder(folder)


def test_others_may_read(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "file").chmod(0o644)
    assert own_files.read(folder, "file") == b"content"


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a file to another user")
def test_what_belongs_to_another_user_is_refused(folder: Path) -> None:
    os.chown(folder / "file", OTHER, OTHER)
    assert refusal(folder) == f"{folder}/file belongs to user {OTHER}"
    os.chown(folder / "file", 0, 0)
    os.chown(folder, OTHER, OTHER)
    assert refusal(folder) == f"{folder} belongs to user {OTHER}"


@pytest.mark.skipif(not IS_ROOT, reason="only root can be another user for a while")
def test_what_belongs_to_root_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"of root")
    (tmp_path / "file").chmod(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    assert own_files.read(tmp_path, "file") == b"of root"


def test_a_sticky_parent_and_a_link_to_an_own_folder_are_fine(folder: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "link").symlink_to(folder)
    assert own_files.read(tmp_path / "link", "file") == b"content"
    folder.chmod(0o777)
    assert refusal(tmp_path / "link") == f"{tmp_path}/link can be written by everybody"


def test_what_is_no_file_is_not_waited_for(folder: Path) -> None:
    (folder / "file").unlink()
    (folder / "link").symlink_to(folder / "file")
    with pytest.raises(OSError, match="symbolic links"):
        own_files.read(folder, "link")
    os.mkfifo(folder / "pipe", 0o600)
    assert own_files.read(folder, "pipe") == b""


def test_without_owners_every_file_is_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "HAS_OWNERS", False)
    (folder / "file").chmod(0o666)
    assert own_files.read(folder, "file") == b"content"
