"""Where requests come from: arrivals that do not wait, or users who do."""

from collections.abc import Callable, Generator
from typing import Any

import simpy

from sim.contract.load import NO_USER, ClosedUsers, DrawsExhaustedError, OpenArrivals
from sim.engine.clock import ARRIVAL, USER_RETURN, Clock, Moment

Issue = Callable[[int, int], None]
"""Starts a request, given its number and its user."""


class OpenSource:
    """Issues each request at its drawn arrival."""

    def __init__(self, env: Clock, load: OpenArrivals, issue: Issue) -> None:
        self.env = env
        self.arrival_ns = load.arrival_ns.tolist()
        self.issue = issue
        env.process(self.arrivals())

    def arrivals(self) -> Generator[simpy.Event, Any, None]:
        """Wait for each arrival in turn; simultaneous ones follow each other within the instant."""
        for number, arrival_ns in enumerate(self.arrival_ns):
            yield Moment(self.env, ARRIVAL, arrival_ns - self.env.now)
            self.issue(number, NO_USER)

    def completed(self, number: int, user: int) -> None:
        """Nobody waits for the answer."""


AWAY, THINKING, BUSY = "away", "thinking", "busy"


class ClosedSource:
    """Users who issue, wait, think and issue again, and whose number may change at given instants."""

    def __init__(self, env: Clock, load: ClosedUsers, issue: Issue, workload: int = 0) -> None:
        self.env = env
        self.load = load
        self.workload = workload
        self.issue = issue
        self.think_ns = load.think_ns.tolist()
        self.state = [AWAY] * max(users for _, users in load.steps)
        self.thinks_after = [-1] * len(self.state)
        self.users = 0
        self.issued = 0
        self.returning: set[int] = set()
        env.process(self.steps())

    def steps(self) -> Generator[simpy.Event, Any, None]:
        """Change the number of users at each step."""
        for at_ns, users in self.load.steps:
            yield Moment(self.env, USER_RETURN, at_ns - self.env.now)
            self.set_users(users)

    def set_users(self, users: int) -> None:
        """Let users come at once, and thinking ones leave at once; a busy one leaves after its request."""
        self.users = users
        for user, state in enumerate(self.state):
            if user < users and state == AWAY:
                self.come_back(user)
            elif user >= users and state == THINKING:
                self.state[user] = AWAY

    def completed(self, number: int, user: int) -> None:
        """Let the user leave, if fewer are wanted by now, or think about the answer to request `number`."""
        if user >= self.users:
            self.state[user] = AWAY
            return
        think_ns = self.think_ns[number]
        if think_ns == 0:
            self.come_back(user)
            return
        self.state[user] = THINKING
        self.thinks_after[user] = number
        thought = Moment(self.env, USER_RETURN, think_ns, (user, number))
        thought.callbacks.append(self.stop_thinking)

    def stop_thinking(self, event: Any) -> None:
        """Bring a user back, unless it left (and perhaps came again) while it was thinking."""
        user, number = event.value
        if self.state[user] == THINKING and self.thinks_after[user] == number:
            self.come_back(user)

    def come_back(self, user: int) -> None:
        """Let the user ask at the arrivals of this instant."""
        if not self.returning:
            Moment(self.env, ARRIVAL).callbacks.append(self.issue_all)
        self.returning.add(user)

    def issue_all(self, _event: Any) -> None:
        """Issue the requests of all who came back at this instant, in ascending user number."""
        returning, self.returning = sorted(self.returning), set()
        for user in returning:
            self.state[user] = BUSY if user < self.users and self.may_issue() else AWAY
            if self.state[user] == BUSY:
                self.issued += 1
                self.issue(self.issued - 1, user)

    def may_issue(self) -> bool:
        """Return whether the load asks for one more request now."""
        end_ns = self.load.end_ns
        if end_ns is not None and self.env.now >= end_ns:
            return False
        if self.issued < len(self.think_ns):
            return True
        if end_ns is None:
            return False
        raise DrawsExhaustedError(self.workload)
