"""Whether a workload issued what its load asks for: each request when it was due, none too many or too few.

An open load says so itself. Of users it follows from the tables: a user asks when it comes, and again when it
has thought about its answer, unless it was told to leave by then. Within one instant answers come first, then
users come and go, then they ask.
"""

from typing import NamedTuple

import numpy as np

from sim.contract.load import ClosedUsers, OpenArrivals
from sim.units import BoolArray, IntArray

NEVER = np.iinfo(np.int64).max


class Issued(NamedTuple):
    """The requests of one workload in the order in which they were issued, one element each.

    `at_dispatch` says whose answer may have come at a dispatch: users have come and gone by then.
    """

    user: IntArray
    arrival_ns: IntArray
    completion_ns: IntArray
    at_dispatch: BoolArray


class Misissued(NamedTuple):
    """What is wrong, in words, and the place of the request to show; -1 where there is none."""

    what: str
    request: int


def first_misissued(load: OpenArrivals | ClosedUsers, issued: Issued) -> Misissued | None:
    """Return the first thing that was not issued as the load has it, or None."""
    count, asked = len(issued.arrival_ns), load.requests
    too_many = Misissued(f"{count} requests issued of {asked}", count - 1)
    if isinstance(load, ClosedUsers):
        return too_many if count > asked else first_of_users(load, issued)
    if count != asked:
        return too_many
    return not_due(issued.arrival_ns != load.arrival_ns)


def not_due(broken: BoolArray) -> Misissued | None:
    """Return the first request that did not arrive when due, or None."""
    if not broken.any():
        return None
    request = int(np.argmax(broken))
    return Misissued(f"request {request} did not arrive when due", request)


def first_of_users(load: ClosedUsers, issued: Issued) -> Misissued | None:
    """Return the first request that came when no user was to ask, or that a user owes; or None."""
    user, arrival_ns = issued.user, issued.arrival_ns
    most = max(users for _, users in load.steps)
    stranger = not_due((user < 0) | (user >= most))
    if stranger is not None:
        return stranger
    next_ns, or_ns = due_back_ns(load, issued)
    # Each request against the one before it of the same user; numbers as small as these sort in one pass.
    order = np.argsort(user.astype(np.min_scalar_type(most)), kind="stable")
    later, earlier = order[1:], order[:-1]
    again = user[later] == user[earlier]
    due_ns = first_due_ns(load)[user]
    or_due_ns = due_ns.copy()
    due_ns[later[again]], or_due_ns[later[again]] = next_ns[earlier[again]], or_ns[earlier[again]]
    broken = (arrival_ns != due_ns) & (arrival_ns != or_due_ns)
    broken[1:] |= arrival_ns[1:] < arrival_ns[:-1]
    if load.end_ns is not None:
        broken |= arrival_ns >= load.end_ns
    latest = first_due_ns(load)
    latest[user[order]] = np.maximum(next_ns, or_ns)[order]
    return not_due(broken) or first_owed(load, issued, latest)


def first_owed(load: ClosedUsers, issued: Issued, next_ns: IntArray) -> Misissued | None:
    """Return the first user who was due to ask once more and did not, or None.

    `next_ns` (int64[users]) is when each would have asked next. Without an end, the requests that the load
    asks for are all issued, or nobody comes back.
    """
    count, limit_ns = len(issued.arrival_ns), NEVER
    if load.end_ns is not None:
        limit_ns = load.end_ns
    elif count == load.requests:
        limit_ns = int(issued.arrival_ns.max(initial=0))
    owed = next_ns < limit_ns
    if not owed.any():
        return None
    user = int(np.argmax(owed))
    asked = f" of {load.requests}" if load.end_ns is None else ""
    what = f"{count} requests issued{asked}, user {user} was due to ask at {next_ns[user]} ns"
    return Misissued(what, count - 1)


def first_due_ns(load: ClosedUsers) -> IntArray:
    """Return when each user asks first (int64[users]): with the first step that has so many."""
    step_ns, users = np.array(load.steps, dtype=np.int64).T
    most = np.maximum.accumulate(users)
    return np.asarray(step_ns[np.searchsorted(most, np.arange(most[-1]), side="right")])


def due_back_ns(load: ClosedUsers, issued: Issued) -> tuple[IntArray, IntArray]:
    """Return when the user of each request asks again, and when if its answer came at a dispatch.

    Both int64[requests], `NEVER` where it does not come back.
    """
    before = back_ns(load, issued, "left")
    after = before.copy()
    if issued.at_dispatch.any():
        after[issued.at_dispatch] = back_ns(load, issued, "right")[issued.at_dispatch]
    return before, after


def back_ns(load: ClosedUsers, issued: Issued, side: str) -> IntArray:
    """Return when the user of each request asks again; `side` says where a step at its answer stands."""
    step_ns, users = np.array(load.steps, dtype=np.int64).T
    ready_ns = issued.completion_ns + load.think_ns[: len(issued.user)]
    last = np.searchsorted(step_ns, issued.completion_ns, side=side) - 1  # type: ignore[call-overload]
    last = np.maximum(last, 0)
    changes = np.searchsorted(step_ns, ready_ns, side="right") - 1 > last
    for request in np.flatnonzero(changes | (users[last] <= issued.user)).tolist():
        steps = load.steps[last[request] :]
        ready_ns[request] = back_through(steps, int(issued.user[request]), int(ready_ns[request]))
    return np.asarray(ready_ns)


def back_through(steps: tuple[tuple[int, int], ...], user: int, ready_ns: int) -> int:
    """Return when a user asks again who has thought by `ready_ns`; the first step is that of its answer."""
    here = steps[0][1] > user
    for at_ns, users in steps[1:]:
        if here and at_ns > ready_ns:
            break
        if not here and users > user:
            return at_ns
        here = here and users > user
    return ready_ns if here else NEVER
