"""How long one request takes at each number of slots, worked out only where it matters.

Every span is the list scheduler's, exactly; bounds tell at which numbers of slots it need not be asked. So a
decision about a request of a thousand branches takes a few dozen schedules, where the plain definition takes
one for each number of slots.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from heapq import heapify, heapreplace

from sim.plan.schedule import list_schedule

REQUESTS_KEPT = 32
"""The spans of so many requests are kept: the same one is decided at many shares and prices."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What a step to more slots has to gain: more than the join for each, and a share of the makespan."""

    join_ns: int
    least_ratio: Fraction

    def allows(self, span_ns: int, shorter_ns: int, added: int) -> bool:
        """Return whether so many added slots earn their keep, that make a span of one ns another."""
        gain_ns, least = span_ns - shorter_ns, self.least_ratio
        enough = gain_ns * least.denominator >= least.numerator * (span_ns + self.join_ns) * added
        return enough and gain_ns > self.join_ns * added


class Spans:
    """The makespan without the join of one request, in ns, by its number of slots.

    Parameters
    ----------
    service_ns, dependencies
        As for `list_schedule`.
    """

    def __init__(self, service_ns: Sequence[int], dependencies: Sequence[Sequence[int]]) -> None:
        self.service_ns = service_ns
        self.dependencies = dependencies
        self.branches = len(service_ns)
        self.is_independent = not any(dependencies)
        unlimited = list_schedule(service_ns, dependencies, self.branches)
        self.work_ns, self.critical_ns = sum(service_ns), unlimited.span_ns
        self.enough = most_at_once(unlimited.starts_ns, unlimited.finishes_ns)
        self._known: dict[int, int] = {1: self.work_ns}

    def at(self, slots: int) -> int:
        """Return the list scheduler's span on so many slots, at least 1.

        From `enough` slots on it is the critical path: that is the most branches that ever run at once where
        each starts when it is ready, so that with as many slots none waits. Without dependencies any number
        that reaches the longest branch is enough: more slots are then never slower, as one more leaves each
        of the slots' loads, sorted, no greater, branch after branch.
        """
        if slots >= self.enough:
            return self.critical_ns
        if slots not in self._known:
            span_ns = self._scheduled(slots)
            self._known[slots] = span_ns
            if self.is_independent and span_ns == self.critical_ns:
                self.enough = slots
        return self._known[slots]

    def _scheduled(self, slots: int) -> int:
        """Return the list scheduler's span; without dependencies from the slots' loads alone."""
        if not self.is_independent:
            return list_schedule(self.service_ns, self.dependencies, slots).span_ns
        loads = list(self.service_ns[:slots])
        heapify(loads)
        for duration in self.service_ns[slots:]:
            heapreplace(loads, loads[0] + duration)
        return max(loads)

    def least(self, slots: int) -> int:
        """Return what no schedule on so many slots is shorter than."""
        return max(self.critical_ns, -(-self.work_ns // slots))

    def most(self, slots: int) -> int:
        """Return what no list schedule on so many slots is longer than (Graham, see `sim.schedule`)."""
        return (self.work_ns + (slots - 1) * self.critical_ns) // slots

    def all(self) -> tuple[int, ...]:
        """Return the spans at 1, 2, ... slots up to the number of branches."""
        if self.is_independent:
            self._fill(1, self.branches)
        return tuple(self.at(slots) for slots in range(1, self.branches + 1))

    def _fill(self, fewest: int, most: int) -> None:
        """Work out the spans from one number of slots to another; between equal ones all are the same."""
        if self.at(fewest) == self.at(most):
            self._known.update(dict.fromkeys(range(fewest, most), self.at(fewest)))
        elif most - fewest > 1:
            middle = (fewest + most) // 2
            self._fill(fewest, middle)
            self._fill(middle, most)

    def recommended(self, most: int, worth: Worth) -> int:
        """Return the recommended degree on at most so many slots; see `sim.decide.recommend_degree`."""
        degree, step = 1, self.best_step(1, most, worth)
        while step is not None:
            degree, step = step, self.best_step(step, most, worth)
        return degree

    def best_step(self, degree: int, most: int, worth: Worth) -> int | None:
        """Return the degree up to `most` with the highest gain per added slot, if that is worth it.

        Exact, ties to the smaller degree. One is scheduled only if it would win were its span as short as it
        can be; and where not even the critical path would win, none beyond does, as it adds more slots.
        """
        before_ns = self.at(degree)
        best, best_gain_ns, best_added = None, 0, 1

        def wins(span_ns: int, added: int) -> bool:
            better = (before_ns - span_ns) * best_added > best_gain_ns * added
            return better and worth.allows(before_ns, span_ns, added)

        for slots in range(degree + 1, most + 1):
            added = slots - degree
            if not wins(self.critical_ns, added):
                break
            if wins(self.least(slots), added) and wins(self.at(slots), added):
                best, best_gain_ns, best_added = slots, before_ns - self.at(slots), added
        return best

    def first_worth(self, most: int, worth: Worth) -> int | None:
        """Return on how many slots, up to `most`, the recommended degree is first at least 2.

        So it is as soon as any step from 1 is worth it: the best one then is.
        """
        for slots in range(2, most + 1):
            if not worth.allows(self.work_ns, self.critical_ns, slots - 1):
                break
            could = worth.allows(self.work_ns, self.least(slots), slots - 1)
            if could and worth.allows(self.work_ns, self.at(slots), slots - 1):
                return slots
        return None


def most_at_once(starts_ns: Sequence[int], finishes_ns: Sequence[int]) -> int:
    """Return how many branches run at once at most; one that ends as another starts does not overlap it."""
    running = most = 0
    for _, change in sorted([(at, 1) for at in starts_ns] + [(at, -1) for at in finishes_ns]):
        running += change
        most = max(most, running)
    return most


@lru_cache(maxsize=REQUESTS_KEPT)
def spans_of(service_ns: tuple[int, ...], dependencies: tuple[tuple[int, ...], ...]) -> Spans:
    """Return the spans of a request; those of the last few requests are kept."""
    return Spans(service_ns, dependencies)


def by_halves(first: int, last: int) -> Iterator[int]:
    """Yield the whole numbers from first to last: the two ends, the middle, then those of both halves."""
    yield from dict.fromkeys((first, last))
    ranges = [(first, last)]
    for low, high in ranges:
        if high - low > 1:
            middle = (low + high) // 2
            yield middle
            ranges += [(low, middle), (middle, high)]
