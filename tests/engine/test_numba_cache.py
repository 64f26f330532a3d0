"""numba's own cache takes over where what kept machine code rests on is not as expected."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sim.engine import numba_cache

NOTE = "note: numba keeps what it compiles itself, which takes longer: "
FORCED = """
from sim.check.compiled import verdict
from sim.engine import numba_cache
from sim.engine.compiled import run
from tests.engine.test_engine_equality import assert_engines_agree
from tests.engine_inputs import closed, engine_input
{force}
given = engine_input(closed(5, 40, think_ms=3), [30, 20], slots=4)
assert_engines_agree(given)
assert verdict(given, run(given)).broken is None
"""
OTHER_VERSION = "numba_cache.TESTED = {'numba': ((0, 1), (0, 2))}"
OTHER_INTERFACE = "from sim.engine import native; native.OPTIONS['_gone'] = True"


@pytest.mark.parametrize("name", ["numba", "llvmlite"])
def test_versions_that_were_not_tested_are_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert numba_cache.untested_version() is None
    monkeypatch.setattr(numba_cache, "version", lambda one: "9.1.0" if one == name else "0.61.0")
    monkeypatch.setattr(numba_cache, "TESTED", {name: numba_cache.TESTED[name]})
    assert numba_cache.untested_version() == f"{name} 9.1.0 has not been tested"


@pytest.mark.parametrize(
    ("force", "why"),
    [
        (OTHER_VERSION, "numba .* has not been tested"),
        (OTHER_INTERFACE, "an interface of numba .* is another: .*_gone.*"),
    ],
)
def test_numba_takes_over_with_one_note_and_finds_the_same(force: str, why: str, tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    command = [sys.executable, "-c", FORCED.format(force=force)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    notes = found.stderr.splitlines()
    assert len(notes) == 1
    assert re.fullmatch(NOTE + why, notes[0])
    # It is kept in a folder of the user's alone.
    kept = sorted((tmp_path / "kept").rglob("*.nbi"))
    names = ["kernels.advance", "kernels.first_early", "kernels.walk_through"]
    assert sorted(path.name.split("-")[0] for path in kept) == names
    folders = {folder for path in kept for folder in path.parents if folder.parent == tmp_path / "kept"}
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
