"""Where tasks run: in this process, on the machine's cores, or on a Dask cluster.

A task is a function that a module has at its top level, and plain data; results come in the order of the
items and do not depend on where they were made.
"""

import logging
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from sim.contract.load import Progress
from sim.errors import EngineError

if TYPE_CHECKING:
    from distributed import Client, Future

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

SECONDS_TO_CONNECT = 4
SECONDS_FOR_WORKERS = 10
LEAST_TASKS_IN_FLIGHT = 64
TASKS_IN_FLIGHT_PER_THREAD = 4
"""So much of what is to do a scheduler knows at a time: enough to keep every worker busy."""


class Backend(ABC):
    """Runs tasks; a context manager that gives back what it holds."""

    in_process: bool
    """Whether tasks run in this very process, so that they may call back."""

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """How many tasks run at a time."""

    @abstractmethod
    def map(
        self, function: Callable[..., Outcome], items: Iterable[Item], given: tuple[Any, ...] = ()
    ) -> Iterator[Outcome]:
        """Yield `function(*given, item)` for each item, in the order of the items.

        Parameters
        ----------
        function
            At the top level of a module. What it raises is raised here.
        items
            Plain data that can be pickled; taken as workers get free.
        given
            What all tasks share. A cluster gets it once, not with every task.
        """

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Give back what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Workers = int | Backend | None
"""A number of processes on this machine, a backend, or None for as many processes as are worth it."""


class Crew:
    """Has tasks done wherever, on one engine, and tells how many things are done."""

    def __init__(self, workers: Workers, engine: str, progress: Progress | None) -> None:
        self.workers = workers
        self.engine = engine
        self.progress = progress
        self.done = 0

    def count(self, more: int) -> None:
        """Count what is done, and tell of it."""
        self.done += more
        if self.progress is not None:
            self.progress(self.done)


def backend_for(workers: Workers, tasks: int, *, worth_processes: bool = True) -> Backend:
    """Return where so many tasks run.

    Parameters
    ----------
    worth_processes
        Whether, where nothing is asked for, the tasks take longer than starting processes does.
    """
    if isinstance(workers, Backend):
        return workers
    if workers is None:
        workers = cores() if worth_processes and tasks > 1 else 1
    return LocalBackend(max(1, min(workers, tasks)))


def cores() -> int:
    """Return how many processes this machine can run at a time."""
    from joblib import cpu_count  # noqa: PLC0415  slow to import, as below

    return int(cpu_count())


class LocalBackend(Backend):
    """So many processes of this machine; 1 is this process itself."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.in_process = workers == 1

    @property
    def parallelism(self) -> int:
        return self.workers

    def map(
        self, function: Callable[..., Outcome], items: Iterable[Item], given: tuple[Any, ...] = ()
    ) -> Iterator[Outcome]:
        if self.in_process:
            yield from (function(*given, item) for item in items)
            return
        from joblib import Parallel, delayed  # noqa: PLC0415
        from joblib.externals.loky.process_executor import TerminatedWorkerError  # noqa: PLC0415

        # A process that has grown is replaced; nothing is lost, so nobody needs to hear of it.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
        try:
            with Parallel(n_jobs=self.workers, return_as="generator") as parallel:
                yield from parallel(delayed(function)(*given, item) for item in items)
        except TerminatedWorkerError as error:
            raise EngineError("a worker process was killed, perhaps for want of memory") from error


class DaskBackend(Backend):
    """The workers of a Dask cluster, as they come and go.

    A task whose worker is lost runs again elsewhere, until it has been there when several workers were lost.

    Parameters
    ----------
    address : of the scheduler, such as `tcp://127.0.0.1:8786`

    Raises
    ------
    EngineError
        There is no scheduler, or it has no workers; later, when it goes away.
    """

    in_process = False

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = connected(address)
        try:
            self.wait_for(1)
        except EngineError:
            self.close()
            raise

    @property
    def parallelism(self) -> int:
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def wait_for(self, workers: int) -> None:
        """Wait until so many workers are there.

        Raises
        ------
        EngineError
            They are not within ten seconds.
        """
        try:
            self._client.wait_for_workers(workers, timeout=SECONDS_FOR_WORKERS)
        except TimeoutError as error:
            raise EngineError(f"Dask at {self.address}: the scheduler has too few workers") from error

    def map(
        self, function: Callable[..., Outcome], items: Iterable[Item], given: tuple[Any, ...] = ()
    ) -> Iterator[Outcome]:
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415

        waiting: deque[Future[Outcome]] = deque()
        try:
            most = max(LEAST_TASKS_IN_FLIGHT, TASKS_IN_FLIGHT_PER_THREAD * self.parallelism)
            submit = self._submitter(function, given)
            rest = iter(items)
            waiting.extend(submit(item) for item in islice(rest, most))
            while waiting:
                yield waiting[0].result()
                waiting.popleft().release()
                waiting.extend(submit(item) for item in islice(rest, 1))
        except KilledWorker as error:
            reason = "several workers were lost while they ran one task, perhaps for want of memory"
            raise EngineError(f"Dask at {self.address}: {reason}") from error
        except (CancelledError, OSError) as error:
            raise EngineError(f"Dask at {self.address}: the scheduler went away") from error
        finally:
            for future in waiting:
                future.release()

    def _submitter(
        self, function: Callable[..., Outcome], given: tuple[Any, ...]
    ) -> Callable[[Any], "Future[Outcome]"]:
        """Return what hands one item to the cluster, which has `given` by then.

        `given` is the result of a task and not scattered: a scattered value is gone when the workers that
        hold it are, a result is made again from what the scheduler keeps. Workers copy it from each other.
        """
        name = f"slotsim-{uuid4().hex}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            shared = self._client.submit(same, given, key=f"{name}-given", pure=False)
        from importlib.metadata import version  # noqa: PLC0415

        numbers = iter(range(2**62))
        installed = version("slotsim")

        def submit(item: Any) -> "Future[Outcome]":
            key = f"{name}-{next(numbers)}"
            return self._client.submit(run_task, installed, function, shared, item, key=key, pure=False)

        return submit

    def close(self) -> None:
        self._client.close()


def same(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what was given."""
    return given


def run_task(
    installed: str, function: Callable[..., Outcome], given: tuple[Any, ...], item: object
) -> Outcome:
    """Run one task on a worker, which has to have the version of whoever asks."""
    from importlib.metadata import version  # noqa: PLC0415

    here = version("slotsim")
    if here != installed:
        raise EngineError(f"a worker has slotsim {here}, and this is slotsim {installed}")
    return function(*given, item)


def connected(address: str) -> "Client":
    """Return a connection to a scheduler."""
    try:
        from distributed import Client  # noqa: PLC0415  an extra, and slow to import
    except ImportError:
        raise EngineError("--dask needs Dask: install slotsim[dask]") from None
    import asyncio  # noqa: PLC0415  as above

    # What goes wrong is said once, in an error of ours.
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        # A client that cannot connect lingers and complains; so knock first.
        asyncio.run(knock(address))
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except Exception as error:  # whatever speaks there may answer anything
        raise EngineError(f"Dask at {address}: no scheduler answers there") from error
    return client


async def knock(address: str) -> None:
    """Raise an error where nobody at an address greets as Dask does."""
    import asyncio  # noqa: PLC0415  as above

    from distributed.comm.core import connect  # noqa: PLC0415

    comm = await asyncio.wait_for(connect(address, timeout=SECONDS_TO_CONNECT), SECONDS_TO_CONNECT)
    await comm.close()
