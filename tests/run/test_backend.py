"""Where tasks run: in order, with what they share, whatever fails."""

import math
import os
import time
from collections.abc import Iterator

import pytest

from sim.errors import EngineError
from sim.run.backend import Backend, DaskBackend, LocalBackend, backend_for

KEPT: list[bytearray] = []


def process_of(_: int) -> int:
    """Return the process that this runs in."""
    return os.getpid()


def grow(megabytes: int) -> int:
    """Keep more and more memory, for a while."""
    KEPT.append(bytearray(megabytes * 1_000_000))
    time.sleep(1.1)
    return megabytes


def end_process(_: int) -> None:
    """Take the worker away."""
    os._exit(1)


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_with_what_tasks_share(workers: int) -> None:
    with LocalBackend(workers) as backend:
        assert list(backend.map(math.gcd, range(1, 9), (12, 6))) == [1, 2, 3, 2, 1, 6, 1, 2]


def test_one_worker_is_this_process() -> None:
    backend = LocalBackend(1)
    assert backend.in_process
    assert list(backend.map(process_of, [0])) == [os.getpid()]


def test_items_are_taken_when_there_is_a_worker_for_them() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(5):
            taken.append(number)
            yield number

    results = LocalBackend(1).map(abs, items())
    next(results)
    assert taken == [0]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_task_raises_is_raised(workers: int) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(LocalBackend(workers).map(int, ["1", "x", "3"]))


def test_a_process_that_grows_is_replaced_without_a_word() -> None:
    assert list(LocalBackend(2).map(grow, [1, 1, 350, 350, 1, 1, 1, 1])) == [1, 1, 350, 350, 1, 1, 1, 1]


def test_a_lost_process_is_one_line() -> None:
    with pytest.raises(EngineError) as caught:
        list(LocalBackend(2).map(end_process, range(4)))
    assert str(caught.value) == "a worker process was killed, perhaps for want of memory"


def test_backends_by_what_is_asked_for() -> None:
    own: Backend = LocalBackend(3)
    assert backend_for(own, 1) is own
    assert backend_for(8, 3).parallelism == 3
    assert backend_for(1, 3).in_process
    assert backend_for(None, 100, worth_processes=False).in_process
    assert backend_for(2, 0).in_process


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere", "odd://127.0.0.1:9"])
def test_a_scheduler_that_does_not_answer_is_one_line_soon(address: str) -> None:
    pytest.importorskip("distributed")
    start_s = time.monotonic()
    with pytest.raises(EngineError) as caught:
        DaskBackend(address)
    assert str(caught.value) == f"Dask at {address}: no scheduler answers there"
    assert time.monotonic() - start_s < 20
