"""SimPy's environment with time in whole nanoseconds, and the order of what happens within an instant."""

from typing import TYPE_CHECKING, cast

import simpy
from simpy.events import EventPriority

from sim.contract.load import Progress

PROGRESS_EVERY = 1_000

# SimPy's own events (timeouts, succeeded events, ended processes) have priority NORMAL = 1, so every
# completion at an instant comes before what follows here. The first four happen to shared providers only:
# what comes of the attempts that have ended, requests run out of time, attempts become ready (retries,
# hedges, first tokens), slots and limits change.
OUTCOME, DEADLINE, READY, CAPACITY, USER_RETURN, ARRIVAL, SETTLED, DISPATCH = (
    cast(EventPriority, order) for order in range(2, 10)
)


class Clock(simpy.Environment):
    """The environment of a run, which starts at 0 ns."""

    def __init__(self) -> None:
        super().__init__(initial_time=0)

    def complete(self, event: simpy.Event, delay: int) -> None:
        """Let an event happen `delay` nanoseconds from now, among the completions of that instant."""
        event._ok = True
        event._value = None
        self.schedule(event, delay=delay)

    if TYPE_CHECKING:

        @property
        def now(self) -> int:
            """The current instant, ns."""


class Moment(simpy.Event):
    """An event `delay` nanoseconds from now, at its place in the order of that instant."""

    def __init__(self, env: Clock, order: EventPriority, delay: int = 0, value: object = None) -> None:
        super().__init__(env)
        self._ok = True
        self._value = value
        env.schedule(self, order, delay)


class Tally:
    """Counts completed requests, and tells of them now and then."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.completed = 0

    def count(self) -> None:
        """Count one more."""
        self.completed += 1
        if self.progress is not None and self.completed % PROGRESS_EVERY == 0:
            self.progress(self.completed)
