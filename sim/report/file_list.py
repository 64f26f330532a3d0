"""Which files belong to a summary: it names each of them by its digest, and is written after them.

So a folder in which files of two runs stand beside each other, by a process that was killed or by a copy that
was cut off, is told from a whole one.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from sim.errors import Fault

SUMMARY, FILES = "summary.json", "files"
UNFINISHED = ".ready"
PREFIX = ".slotsim-"
SHOWN_CHARACTERS = 12
Listing = dict[str, dict[str, Any]]
"""`{"sha256": ..., "size_bytes": ...}` by the name of a file, with `/` for folders."""


def json_text(data: Any) -> str:
    """Return plain data as JSON, one key a line, numbers unrounded."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def names_below(folder: Path) -> list[str]:
    """Return the names of all files below a folder, in order."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def listing_of(folder: Path) -> Listing:
    """Return every file below a folder, but for its summary."""
    return {name: identity(folder / name) for name in names_below(folder) if name != SUMMARY}


def identity(path: Path) -> dict[str, Any]:
    """Return what tells a file from any other."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "size_bytes": path.stat().st_size}


def listed(folder: Path) -> Listing:
    """Return what the summary of a folder names; nothing where there is none, or none with names."""
    try:
        summary = json.loads((folder / SUMMARY).read_bytes())
    except (OSError, ValueError):
        return {}
    named = summary.get(FILES) if isinstance(summary, dict) else None
    return named if isinstance(named, dict) else {}


def owned(folder: Path) -> list[str]:
    """Return the names of the files of a folder that are as its summary names them, all within the folder."""
    whole = folder.resolve()
    return [
        name
        for name, told in listed(folder).items()
        if (folder / name).parent.resolve().is_relative_to(whole)
        and (folder / name).is_file()
        and identity(folder / name) == told
    ]


def mixture(folder: Path) -> list[Fault]:
    """Return a fault for each file that is not the one that the summary of its folder names.

    A file that is missing is none: what is there still belongs together.
    """
    if any(names_below(ready) for ready in folder.glob(f"{PREFIX}*{UNFINISHED}")):
        rule = "must be whole; its writing goes on or was cut off: run the command that wrote it again"
        return [Fault(str(folder), None, "", rule, has_value=False)]
    faults = []
    for name, told in listed(folder).items():
        path = folder / name
        found = identity(path) if path.is_file() else told
        if found != told:
            rule = (
                f"must be the file that {SUMMARY} names, sha256 {told['sha256'][:SHOWN_CHARACTERS]}; "
                "it has changed, or is of another run: run the command again"
            )
            faults.append(Fault(str(path), None, "", rule, found["sha256"][:SHOWN_CHARACTERS]))
    return faults
