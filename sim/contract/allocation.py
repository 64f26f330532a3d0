"""Who gets a free slot, as values: schema, engines, checks and reports ask them for what they do."""

from dataclasses import dataclass

from sim.errors import ArgumentError, require_one_of


@dataclass(frozen=True, slots=True)
class Allocation:
    """A rule by which waiting calls get free slots; without any of these, in the order in which they wait.

    Parameters
    ----------
    name, words
        As files and as reports have it.
    by_share
        A request holds at most its fair share: the slots over the active requests, at least 1.
    by_weight
        The same, each request counting with its workload's weight, where `adaptive` looks at shares too.
    fewest_first
        Calls of requests that hold fewest slots go first.
    by_priority
        Calls of workloads of a higher priority go first, before anything else is compared.
    """

    name: str
    words: str
    by_share: bool = False
    by_weight: bool = False
    fewest_first: bool = False
    by_priority: bool = False

    @property
    def caps(self) -> bool:
        """Whether a request may hold no more than its share, be that by number or by weight."""
        return self.by_share or self.by_weight

    @property
    def minds_held(self) -> bool:
        """Whether who gets a slot depends on how many slots requests hold."""
        return self.caps or self.fewest_first

    @property
    def is_plain(self) -> bool:
        """Whether it does not ask which workload a call is of."""
        return not (self.by_weight or self.by_priority)


FAIR_SHARE = Allocation("fair_share", "fair share", by_share=True)
FIFO = Allocation("fifo", "first in, first out")
MAX_MIN = Allocation("max_min", "max-min", fewest_first=True)
PRIORITY = Allocation("priority", "by priority", by_priority=True)
WEIGHTED = Allocation("weighted", "weighted fair share", by_share=True, by_weight=True)

ALLOCATIONS = {one.name: one for one in (FAIR_SHARE, FIFO, MAX_MIN, PRIORITY, WEIGHTED)}
"""All that there are; whoever adds one here has added it everywhere."""

PLAIN_ALLOCATIONS = tuple(name for name, one in ALLOCATIONS.items() if one.is_plain)


def allocation_named(name: object, field: str = "allocation") -> Allocation:
    """Return the allocation of a name; `ArgumentError` about `field` where there is none."""
    return ALLOCATIONS[require_one_of(field, name, ALLOCATIONS)]


def require_known(allocation: Allocation) -> None:
    """Refuse what is no value of the table: an `ArgumentError`."""
    name = allocation.name if isinstance(allocation, Allocation) else allocation
    if allocation_named(name) != allocation:
        raise ArgumentError("allocation", f"must be ALLOCATIONS[{name!r}]", allocation)
