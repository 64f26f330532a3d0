"""In which order a request's calls become ready."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Graph:
    """A request's calls as one plan runs them.

    `roots` are ready at arrival; `blockers[c]` other calls must finish before call c, which then counts down
    each of `dependents[c]` when it finishes itself.
    """

    calls: int
    roots: tuple[int, ...]
    blockers: list[int]
    dependents: tuple[tuple[int, ...], ...]


def dependency_graph(dependencies: Sequence[Sequence[int]]) -> Graph:
    """Return the graph of a parallel request: each call as soon as its dependencies finish."""
    calls = range(len(dependencies))
    return Graph(
        calls=len(dependencies),
        roots=tuple(call for call in calls if not dependencies[call]),
        blockers=[len(set(dependencies[call])) for call in calls],
        dependents=tuple(tuple(other for other in calls if call in dependencies[other]) for call in calls),
    )


def chain_graph(order: Sequence[int]) -> Graph:
    """Return the graph of a serial request: the calls one after another in the given order."""
    before: list[tuple[int, ...]] = [()] * len(order)
    for earlier, later in pairwise(order):
        before[later] = (earlier,)
    return dependency_graph(before)
