"""How kernels are compiled: for each kind of arguments when first called, to code kept on disk."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

# Without reference counts, which would take most of the time: every array outlives the call.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
INNER_OPTIONS: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: Function) -> Function:
    """Return a function that is compiled at its first call and kept on disk where that is possible."""
    try:
        return cast(Function, numba.njit(cache=True, **OPTIONS)(function))
    except RuntimeError:  # no folder for the cache can be written to
        return cast(Function, numba.njit(**OPTIONS)(function))


def helper(function: Function) -> Function:
    """Return a function that is compiled for kernels only."""
    return cast(Function, numba.njit(**INNER_OPTIONS)(function))


def part(function: Function) -> Function:
    """Return a function that is compiled into each kernel that calls it: a call would cost more than it."""
    return cast(Function, numba.njit(forceinline=True, **INNER_OPTIONS)(function))
