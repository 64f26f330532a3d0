"""One workload while it runs: its draws as plain lists, and what its calls ask of a provider."""

from collections import Counter
from typing import TYPE_CHECKING

from sim.contract.run import OK, PPM, TIMED_OUT, WorkloadInput
from sim.engine.graph import chain_graph, dependency_graph
from sim.engine.shared.limiter import NOTHING, Use

if TYPE_CHECKING:
    from sim.engine.shared.calls import Call


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

    def service(self, call: "Call") -> tuple[int, int]:
        """Return how long an attempt holds its slot (ns), and how it ends."""
        position, index, attempt = call.request.position, call.index, call.attempt
        faults = self.given.faults
        if faults is None or index >= self.given.branches:
            return self.service_ns[position][index], OK
        service_ns = int(faults.service_ns[position, index, attempt])
        outcome = int(faults.outcome[position, index, attempt])
        timeout_ns = faults.timeout_ns[index]
        if timeout_ns is not None and (outcome == TIMED_OUT or service_ns > timeout_ns):
            return timeout_ns, TIMED_OUT
        return service_ns, outcome

    def allows_more(self, call: "Call") -> bool:
        """Return whether another attempt is allowed, by their number and by the budget."""
        faults = self.given.faults
        if faults is None or call.request.attempts[call.index] >= faults.most_attempts:
            return False
        budget = faults.retry_budget_ppm
        return budget is None or (self.more_attempts + 1) * PPM <= budget * self.first_attempts

    def pause_ns(self, call: "Call", retry_after_ns: int) -> int:
        """Return the pause before the next attempt: at least the backoff, and what the provider asked."""
        faults = self.given.faults
        assert faults is not None
        least_ns = max(faults.backoff_ns[call.attempt], retry_after_ns)
        if call.index >= self.given.branches:
            return least_ns  # a join has no jitter drawn
        jitter_ppm = int(faults.jitter_ppm[call.request.position, call.index, call.attempt])
        return least_ns + least_ns * jitter_ppm // PPM

    def prefix(self, call: int) -> int:
        """Return the tokens of the shared prefix that a call carries."""
        tokens = self.given.tokens
        return tokens.prefix[call] if tokens is not None else 0

    def first_token_ns(self, call: "Call") -> int:
        """Return the time from an attempt's start to its first token; a whole answer is not shorter."""
        tokens = self.given.tokens
        if tokens is None:
            return 0
        first_token_ns = int(tokens.first_token_ns[call.request.position, call.index])
        service_ns, outcome = self.service(call)
        return min(first_token_ns, service_ns) if outcome == OK else first_token_ns

    def reserved_use(self, call: "Call", uncounted: int) -> Use:
        """Return what admitting an attempt reserves; `uncounted` input tokens do not count."""
        tokens = self.given.tokens
        if tokens is None:
            return NOTHING
        return Use(self._counted_input(call, uncounted), tokens.reserved_output[call.index])

    def actual_use(self, call: "Call", uncounted: int) -> Use:
        """Return what an attempt that held a slot has used."""
        tokens = self.given.tokens
        if tokens is None:
            return NOTHING
        return Use(
            self._counted_input(call, uncounted), int(tokens.output[call.request.position, call.index])
        )

    def _counted_input(self, call: "Call", uncounted: int) -> int:
        tokens = self.given.tokens
        assert tokens is not None
        return max(0, int(tokens.input[call.request.position, call.index]) - uncounted)
