"""Kernels that are kept as machine code and called without numba.

numba compiles a kernel when it is first called with arguments of some types. Importing numba takes longer
than many a run does, so what it made is kept, and loaded by LLVM alone the next time: in `__pycache__` beside
the kernel's source, else in the user's cache folder (numba's variable NUMBA_CACHE_DIR names another one).
Where neither can be written to, each process compiles anew. What is kept has a name made of all that it
depends on. It is executed, so it is loaded only where nobody but the user and root can have written it, see
`own_files.py`; else it is compiled anew, with a note. This rests on private interfaces of numba and llvmlite;
where they are not as expected, numba's own cache takes over with one note, see `numba_cache.py`.

Arguments are integers, arrays in memory one after another, None, and named tuples of these, with which a
kernel is called as numba's own calls are: the parts of a tuple and of an array are arguments of their own.
"""

import ctypes
import gc
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import FunctionType
from typing import Any, Generic, NamedTuple, ParamSpec, Self, TypeVar

import llvmlite.binding as llvm
import numpy as np

from sim import contract
from sim.engine import numba_cache, own_files

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
Function = TypeVar("Function", bound=Callable[..., Any])

HASH_SIZE = 16
CACHE_VARIABLE = "NUMBA_CACHE_DIR"
NO_INFLUENCE = {CACHE_VARIABLE, "NUMBA_NUM_THREADS"}
"""Variables of numba on which the code of a kernel does not depend; worker processes have the latter."""

# Without reference counts, which would take most of the time: every array outlives the call.
OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

inner: list[tuple[Callable[..., Any], dict[str, Any]]] = []
"""Functions that are called by kernels alone, with how they are compiled."""

made_of: dict[Callable[..., Any], Any] = {}
"""What takes the place of such functions when a kernel is compiled."""

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def refer(arrays: Arrays) -> Arrays:
    """Return a named tuple of arrays as the functions of a kernel pass it on; see `by_reference.py`."""
    return arrays


def helper(function: Function) -> Function:
    """Let a function be compiled for kernels that call it."""
    inner.append((function, OPTIONS))
    return function


def part(function: Function) -> Function:
    """Let a function be compiled into each kernel that calls it: a call would cost more than it."""
    inner.append((function, OPTIONS | {"forceinline": True}))
    return function


class Machine(NamedTuple):
    """A kernel as machine code, and the name that it has there."""

    symbol: str
    code: bytes

    def to_bytes(self) -> bytes:
        """Return it as it is kept, with a hash in front: code that a crash cut short would crash again."""
        named = self.symbol.encode() + b"\n" + self.code
        return blake2b(named, digest_size=HASH_SIZE).digest() + named

    @classmethod
    def from_bytes(cls, kept: bytes) -> Self:
        """Return what was kept; raise ValueError where it is not all there."""
        named = kept[HASH_SIZE:]
        if blake2b(named, digest_size=HASH_SIZE).digest() != kept[:HASH_SIZE]:
            raise ValueError("kept machine code is damaged")
        symbol, _, code = named.partition(b"\n")
        return cls(symbol.decode(), code)


class UnexpectedError(Exception):
    """A version or a private interface of numba or llvmlite is not as this module knows it."""


class kernel(Generic[Parameters, Returned]):  # noqa: N801  a decorator
    """A function that is compiled for each kind of arguments it is called with. It returns an integer."""

    def __init__(self, function: Callable[Parameters, Returned]) -> None:
        self.function = function
        self.loaded: dict[str, Callable[..., int]] = {}
        self.by_numba: Callable[..., Any] | None = None
        update_wrapper(self, function)

    def __call__(self, *arguments: Parameters.args, **_: Parameters.kwargs) -> Returned:
        flat: list[Any] = []
        kinds = ",".join([kind(argument, flat) for argument in arguments])
        if self.by_numba is None and kinds not in self.loaded:
            try:
                self.loaded[kinds] = loaded(kept_or_compiled(self.function, kinds, arguments))
            except UnexpectedError as error:
                note(f"numba keeps what it compiles itself, which takes longer: {error}")
                self.by_numba = taken_over(self.function)
        if self.by_numba is not None:
            return int(self.by_numba(*arguments))  # type: ignore[return-value]
        returned, fault = ctypes.c_int64(), ctypes.c_void_p()
        if self.loaded[kinds](ctypes.byref(returned), ctypes.byref(fault), *flat):
            raise RuntimeError(f"the kernel {self.function.__name__} failed")
        return returned.value  # type: ignore[return-value]


def kind(value: Any, flat: list[Any]) -> str:
    """Return the type of an argument in words, and append what the machine code is called with for it."""
    if isinstance(value, np.ndarray):
        if not (value.flags.c_contiguous and value.flags.writeable):
            raise ValueError("a kernel takes arrays that are in memory one after another and not read-only")
        address = ctypes.c_void_p(value.ctypes.data)
        numbers = (value.size, value.itemsize, *value.shape, *value.strides)
        sizes = [ctypes.c_int64(number) for number in numbers]
        flat += [None, None, *sizes[:2], address, *sizes[2:]]
        return f"{value.dtype}[{value.ndim}]"
    if isinstance(value, tuple):
        return f"{type(value).__name__}({','.join([kind(one, flat) for one in value])})"
    if value is None:
        flat.append(None)
        return "none"
    if isinstance(value, bool):
        flat.append(ctypes.c_bool(value))
        return "bool"
    flat.append(ctypes.c_int64(value))
    return "int"


def kept_or_compiled(function: Callable[..., Any], kinds: str, arguments: tuple[Any, ...]) -> Machine:
    """Return a kernel for such arguments from the disk; else compile it, and keep it if possible."""
    if reason := numba_cache.untested_version():
        raise UnexpectedError(reason)
    source = Path(function.__code__.co_filename)
    name = f"{source.stem}.{function.__name__}.{digest(source, kinds)}.o"
    folders = list(cache_folders(source))
    refused = []
    for folder in folders:
        try:
            return Machine.from_bytes(own_files.read(folder, name))
        except own_files.NotOwnError as error:
            refused.append(str(error))
        except (OSError, ValueError):
            pass
    if refused:
        note(f"machine code is compiled anew, not loaded: {'; '.join(refused)}")
    try:
        machine = compiled(function, arguments)
    except (AttributeError, ImportError, KeyError) as error:
        raise UnexpectedError(f"an interface of numba {version('numba')} is another: {error}") from error
    for folder in folders:
        with suppress(OSError):
            keep(machine, folder, name)
            break
    return machine


def taken_over(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that numba compiles and keeps itself, in a folder that is the user's alone."""
    source = Path(function.__code__.co_filename)
    functions = [refer, *(one for one, _ in inner)]
    for folder in cache_folders(source):
        with suppress(OSError):
            own_files.make_folder(folder / digest(source, "numba"))
            return numba_cache.dispatcher(function, functions, made_of, folder / digest(source, "numba"))
    return numba_cache.dispatcher(function, functions, made_of, None)


@cache
def note(text: str) -> None:
    """Tell the user once: on standard error, where nobody has set up logging."""
    import logging  # noqa: PLC0415  seldom needed

    logging.getLogger(__name__).warning("note: %s", text)


def cache_folders(source: Path) -> Iterator[Path]:
    """Yield where machine code may be kept, in order of preference."""
    if os.environ.get(CACHE_VARIABLE):
        yield Path(os.environ[CACHE_VARIABLE])
        return
    yield source.parent / "__pycache__"
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slotsim"


def keep(machine: Machine, folder: Path, name: str) -> None:
    """Write a file for the user alone that is there whole or not at all."""
    own_files.make_folder(folder)
    with NamedTemporaryFile(dir=folder, suffix=".tmp", delete=False) as file:
        beside = Path(file.name)
    try:
        beside.write_bytes(machine.to_bytes())
        beside.replace(folder / name)
    finally:
        beside.unlink(missing_ok=True)


def digest(source: Path, kinds: str) -> str:
    """Return a name for everything that machine code depends on."""
    settings = sorted(
        item for item in os.environ.items() if item[0].startswith("NUMBA_") and item[0] not in NO_INFLUENCE
    )
    versions = platform.python_version(), version("numba"), version("llvmlite")
    name = blake2b(repr((kinds, versions, host(), settings, OPTIONS)).encode(), digest_size=HASH_SIZE)
    # What a kernel takes from other files is there, constants of the contract among it.
    folders = {source.parent, Path(__file__).parent, Path(contract.__file__).parent}
    for file in (source, *sorted(file for folder in folders for file in folder.rglob("*.py"))):
        name.update(file.read_bytes())
    return name.hexdigest()


@cache
def host() -> tuple[str, str]:
    """Return the processor that code is made for, and what it has beyond others."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def compiled(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Machine:
    """Compile a function for arguments such as these."""
    with garbage_left():
        import numba  # noqa: PLC0415  what this module is there to avoid

        without_linear_algebra()
        from sim.engine import by_reference  # noqa: PLC0415  imports numba

        made_of.setdefault(refer, by_reference.refer)
        for one, options in inner:
            if one not in made_of:
                made_of[one] = numba.njit(**options)(one)
        for one in (function, *(one for one, _ in inner)):
            names = one.__globals__  # of a function's module, which may have it from another
            names |= {
                name: made_of[value]
                for name, value in names.items()
                if isinstance(value, FunctionType) and value in made_of
            }
        dispatcher = numba.njit(**OPTIONS)(function)
        types = tuple(map(numba.typeof, arguments))
        dispatcher.compile(types)
    made = dispatcher.overloads[types]
    return Machine(made.fndesc.llvm_func_name, made.library._get_compiled_object())


def without_linear_algebra() -> None:
    """Let numba take it for granted that scipy is there, which it would import all linear algebra to see."""
    from numba.np import linalg  # noqa: PLC0415  imports numba

    ensure, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: PLC0415, F401  looks for it when it is imported
    finally:
        linalg.ensure_blas = ensure


@contextmanager
def garbage_left() -> Iterator[None]:
    """Look for no garbage meanwhile: a compiler makes much that lives on."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def loaded(machine: Machine) -> Callable[..., int]:
    """Return machine code as a function that can be called; other threads go on meanwhile."""
    engine = code_engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine.code))
    engine.finalize_object()
    return ctypes.CFUNCTYPE(ctypes.c_int32)(engine.get_function_address(machine.symbol))


@cache
def code_engine() -> Any:
    """Return what holds the code of all kernels."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = host()
    machine = llvm.Target.from_default_triple().create_target_machine(name, features, jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
