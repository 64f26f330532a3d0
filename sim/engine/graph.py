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
    blockers = [sorted(set(needed)) for needed in dependencies]
    dependents: list[list[int]] = [[] for _ in dependencies]
    for call, needed in enumerate(blockers):
        for other in needed:
            dependents[other].append(call)
    return Graph(
        calls=len(dependencies),
        roots=tuple(call for call, needed in enumerate(blockers) if not needed),
        blockers=[len(needed) for needed in blockers],
        dependents=tuple(map(tuple, dependents)),
    )


def chain_graph(order: Sequence[int]) -> Graph:
    """Return the graph of a serial request: the calls one after another in the given order."""
    before: list[tuple[int, ...]] = [()] * len(order)
    for earlier, later in pairwise(order):
        before[later] = (earlier,)
    return dependency_graph(before)
