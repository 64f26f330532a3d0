"""One workload while it runs: its draws as plain lists, its graphs, and what it has running."""

from collections import Counter

from sim.contract.run import WorkloadInput
from sim.engine.graph import chain_graph, dependency_graph


class Workload:
    """The draws of one workload, its graphs, and how many attempts it has made."""

    def __init__(self, index: int, given: WorkloadInput, providers: int) -> None:
        self.index = index
        self.given = given
        self.providers = providers
        branches = range(given.branches)
        self.serial = chain_graph(given.serial_order)
        self.parallel = dependency_graph([given.dependencies[branch] for branch in branches])
        self.uses = sorted({given.provider_of(call) for call in range(given.calls_per_request)})
        self.branches_at = Counter(given.provider_of(branch) for branch in branches)
        self.join_ns: list[int] = given.join_ns.tolist()
        self.service_ns: list[list[int]] = given.service_ns.tolist()
        # Without faults a call can still be lost, to a limit that rejects it; the join needs all of them.
        faults = given.faults
        self.needs = faults.needs if faults else None
        self.optional = faults.optional if faults else (False,) * given.branches
        self.cancels = faults is None or faults.cancels
        self.first_attempts = 0
        self.more_attempts = 0
        self.active = 0
        self.active_since_ns = 0
        self.active_integral_ns = 0

    def count_active(self, change: int, now_ns: int) -> None:
        """Change the number of active requests and sum them over the time before."""
        self.active_integral_ns += self.active * (now_ns - self.active_since_ns)
        self.active_since_ns = now_ns
        self.active += change

    def prefix(self, call: int) -> int:
        """Return the tokens of the shared prefix that a call carries."""
        tokens = self.given.tokens
        return tokens.prefix[call] if tokens is not None else 0
