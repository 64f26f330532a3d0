"""Kernels compiled, called and kept by numba itself.

They take over where the versions of numba and llvmlite are not those that `native` has been tested with, or
their private interfaces are not as it knows them. They find the same, and take longer to compile and start.
"""

from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any

TESTED = {"numba": ((0, 61), (0, 69)), "llvmlite": ((0, 44), (0, 51))}
"""The least version that has been tested, and the first that has not."""


def untested_version() -> str | None:
    """Return which of the two has a version that was not tested, None where neither has."""
    for name, (least, below) in TESTED.items():
        found = version(name)
        if not least <= tuple(int(part) for part in found.split(".")[:2]) < below:
            return f"{name} {found} has not been tested"
    return None


made: dict[Callable[..., Any], Any] = {}
"""What numba made of the functions that kernels call."""


def dispatcher(
    function: Callable[..., Any],
    inner: Iterable[Callable[..., Any]],
    replaced: dict[Callable[..., Any], Any],
    folder: Path | None,
) -> Callable[..., Any]:
    """Return a kernel as numba makes it.

    Parameters
    ----------
    inner
        The functions that kernels call.
    replaced
        What `native` had put in the place of some of them before it met what it did not expect.
    folder
        Where numba keeps what it compiles; None for nowhere.
    """
    import numba  # noqa: PLC0415  only where a kernel is compiled

    if folder is not None:
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    functions = [python_of(one) for one in inner]
    made.update({one: numba.njit(error_model="numpy")(one) for one in functions if one not in made})
    before = {id(other): one for one, other in replaced.items()}
    for one in (function, *functions):
        names = one.__globals__
        plain = {name: python_of(before.get(id(value), value)) for name, value in names.items()}
        names |= {name: made[value] for name, value in plain.items() if is_made(value)}
    kept: Callable[..., Any] = numba.njit(error_model="numpy", nogil=True, cache=folder is not None)(function)
    return kept


def python_of(value: Any) -> Any:
    """Return the Python function that a value is or was made of, else the value."""
    return getattr(value, "py_func", value)


def is_made(value: Any) -> bool:
    """Return whether numba has made something of a value."""
    return isinstance(value, FunctionType) and value in made
