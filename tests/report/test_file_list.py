"""A summary names the files that belong to it, and a mixture is told."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from sim.report.file_list import FILES, SUMMARY, json_text, listed, listing_of, mixture, owned


def told(text: str) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "size_bytes": len(text)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two files and a summary that names them."""
    folder = tmp_path / "out"
    (folder / "figures").mkdir(parents=True)
    (folder / "calls.csv").write_text("calls")
    (folder / "figures" / "a.svg").write_text("<svg/>")
    (folder / SUMMARY).write_text(json_text({FILES: listing_of(folder)}))
    (folder / "mine.txt").write_text("of the user")
    return folder


def messages(folder: Path) -> list[str]:
    return [str(fault) for fault in mixture(folder)]


def test_a_summary_names_files_by_digest_and_size(folder: Path) -> None:
    assert listed(folder) == {"calls.csv": told("calls"), "figures/a.svg": told("<svg/>")}
    assert owned(folder) == ["calls.csv", "figures/a.svg"]
    assert messages(folder) == []


def test_a_file_of_another_run_is_told_and_a_missing_one_is_not(folder: Path) -> None:
    (folder / "calls.csv").unlink()
    assert messages(folder) == []
    (folder / "calls.csv").write_text("other")
    was, found = (told(text)["sha256"][:12] for text in ("calls", "other"))
    assert messages(folder) == [
        f"{folder}/calls.csv: must be the file that summary.json names, sha256 {was}; "
        f"it has changed, or is of another run: run the command again (got '{found}')"
    ]
    assert owned(folder) == ["figures/a.svg"]


def test_a_folder_whose_writing_was_cut_off_is_told(folder: Path) -> None:
    ready = folder / ".slotsim-0123abcd.ready"
    ready.mkdir()
    assert messages(folder) == []  # all files had left it
    (ready / "requests.csv").touch()
    assert messages(folder) == [
        f"{folder}: must be whole; its writing goes on or was cut off: run the command that wrote it again"
    ]


@pytest.mark.parametrize("summary", ["", "[]", "{}", '{"files": 1}'])
def test_a_summary_without_names_owns_nothing(folder: Path, summary: str) -> None:
    (folder / SUMMARY).write_text(summary)
    assert (listed(folder), owned(folder), messages(folder)) == ({}, [], [])


def test_nothing_outside_of_the_folder_is_owned(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("outside")
    (folder / "link").symlink_to(tmp_path)
    names = ("../outside", str(tmp_path / "outside"), "link/outside")
    (folder / SUMMARY).write_text(json_text({FILES: {name: told("outside") for name in names}}))
    assert owned(folder) == []
