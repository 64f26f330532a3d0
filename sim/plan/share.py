"""The slots that one request can use at once, while active requests share the providers evenly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sim.plan.criteria import fair_concurrency


@dataclass(frozen=True, slots=True)
class CalledProvider:
    """A provider that a workflow calls: its slots, and how many branches call it."""

    slots: int
    branches: int


def usable_slots(called: Sequence[CalledProvider], active_requests: int) -> int:
    """Return the slots that a request can use: its fair share; of several providers, what its branches use.

    At each of several no more than the branches that call it, added up. Of one the share is taken as it is.
    """
    shares = [fair_concurrency(one.slots, active_requests) for one in called]
    if len(called) == 1:
        return shares[0]
    return sum(min(share, one.branches) for share, one in zip(shares, called, strict=True))


def share_spans(called: Sequence[CalledProvider]) -> Iterator[tuple[int, int, int | None]]:
    """Yield (usable slots, active requests from, to or None), the most slots that branches can use first."""
    branches = sum(one.branches for one in called)
    falls = (one.slots // share + 1 for one in called for share in range(2, min(one.slots, one.branches) + 1))
    for active_from, beyond in pairwise([*sorted({1, *falls}), None]):
        assert active_from is not None
        active_to = None if beyond is None else beyond - 1
        yield min(usable_slots(called, active_from), branches), active_from, active_to
