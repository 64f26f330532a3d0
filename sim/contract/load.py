"""What issues the requests of a workload, and when: arrays, all times integer nanoseconds."""

from collections.abc import Callable
from dataclasses import dataclass

from sim.units import IntArray

Progress = Callable[[int], None]
"""Called now and then with the number of requests completed so far."""

NO_USER = -1


class DrawsExhaustedError(Exception):
    """The load of a workload outlasted its arrays: draw more for it (the first stay the same), run again.

    `workload` is its index among the workloads of the run.
    """

    def __init__(self, workload: int = 0) -> None:
        super().__init__(workload)
        self.workload = workload


@dataclass(frozen=True, slots=True, repr=False)
class OpenArrivals:
    """Requests that arrive whatever happens; `arrival_ns` (int64, one each) never decreases."""

    arrival_ns: IntArray

    @property
    def requests(self) -> int:
        """How many requests arrive."""
        return len(self.arrival_ns)


@dataclass(frozen=True, slots=True, repr=False)
class ClosedUsers:
    """Users who each wait for their answer, think, and ask again.

    `steps` holds (instant in ns, users from then on), the first at 0; `think_ns[i]` follows request i.
    Without `end_ns` the run issues one request per element of `think_ns`; with it nothing is issued from
    `end_ns` on, and running out of elements before raises `DrawsExhaustedError`.
    """

    steps: tuple[tuple[int, int], ...]
    think_ns: IntArray
    end_ns: int | None = None

    @property
    def requests(self) -> int:
        """How many requests can be issued before the elements run out."""
        return len(self.think_ns)
