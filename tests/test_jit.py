"""Kernels are kept on disk where that is possible, and compiled anew where it is not."""

from typing import Any

import numba
import numpy as np
import pytest

from sim.engine import jit


def doubled(values: Any) -> Any:
    return 2 * values[0]


def test_where_no_folder_can_be_written_to_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    njit = numba.njit

    def without_cache(*functions: Any, **options: Any) -> Any:
        if "cache" in options:
            asked.append("kept")
            raise RuntimeError("cannot cache function: no locator available")
        if not functions:
            asked.append("compiled")
        return njit(*functions, **options)

    monkeypatch.setattr(numba, "njit", without_cache)
    assert jit.compiled(doubled)(np.array([21])) == 42
    assert asked[:2] == ["kept", "compiled"]
