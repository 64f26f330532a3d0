"""What the start and the end of an attempt mean for its request: retries, hedges, lost branches, the join."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sim.engine.clock import DEADLINE, READY, Clock, Moment
from sim.engine.shared.calls import DONE, LIVE, LOST, PENDING, Call, Request
from sim.engine.shared.interface import CANCELLED, DEADLINE_MISSED, DEGRADED, FAILED, OK, SUCCEEDED

if TYPE_CHECKING:
    from sim.engine.shared.provider import Provider

Record = Callable[[Call, int, int], None]


class ForkJoin:
    """Makes a request's calls, and answers it: when its join is complete, or when it cannot be any more."""

    def __init__(self, env: Clock, record: Record) -> None:
        self.env = env
        self.record = record
        self.providers: Sequence[Provider] = ()

    def begin(self, request: Request, parallel: bool) -> None:
        """Make the calls that a request starts with."""
        workload = request.workload
        request.parallel = parallel
        request.graph = workload.parallel if parallel else workload.serial
        request.blockers = request.graph.blockers.copy()
        faults = workload.given.faults
        if faults is not None and faults.deadline_ns is not None:
            Moment(self.env, DEADLINE, faults.deadline_ns, request).callbacks.append(self.out_of_time)
        first, *others = request.graph.roots
        self.make(request, first)
        if not (parallel and workload.given.warm_first):
            for branch in others:
                self.make(request, branch)

    def make(self, request: Request, index: int) -> None:
        """Make one more attempt at a call."""
        attempt = request.attempts[index]
        request.attempts[index] += 1
        request.state[index] = LIVE
        request.workload.first_attempts += attempt == 0
        call = Call(request, index, attempt, self.env.now)
        request.live[index].append(call)
        self.provider_of(call).ask(call)

    def provider_of(self, call: Call) -> "Provider":
        """Return the provider that a call is made to."""
        return self.providers[call.request.workload.given.provider_of(call.index)]

    def started(self, call: Call) -> None:
        """Watch an attempt that has got its slot: for its first token, and for being slow."""
        workload = call.request.workload
        if self.leads(call):
            first_token = Moment(self.env, READY, workload.first_token_ns(call), call)
            first_token.callbacks.append(self.warmed)
        faults = workload.given.faults
        hedge_ns = (
            faults.hedge_after_ns[call.index] if faults and call.index < workload.given.branches else None
        )
        if hedge_ns is not None and call.attempt == 0:
            Moment(self.env, READY, hedge_ns, call).callbacks.append(self.hedge)

    def leads(self, call: Call) -> bool:
        """Return whether the request's other roots wait for this attempt's first token."""
        request = call.request
        warm_first = request.parallel and request.workload.given.warm_first
        return warm_first and call.index == request.graph.roots[0]

    def warmed(self, event: Any) -> None:
        """Make the other calls once the leading one has begun to answer."""
        call: Call = event.value
        if not call.is_over:
            self.follow(call.request)

    def follow(self, request: Request) -> None:
        """Make the calls that waited for the leading one, unless they have been made or are not needed."""
        for branch in request.graph.roots[1:]:
            if request.state[branch] == PENDING and not request.is_settled:
                self.make(request, branch)

    def hedge(self, event: Any) -> None:
        """Make a second attempt beside a first one that still runs."""
        call: Call = event.value
        request = call.request
        if not call.is_over and not request.is_settled and request.workload.allows_more(call):
            request.workload.more_attempts += 1
            self.make(request, call.index)

    def ended(self, call: Call, outcome: int, retry_after_ns: int) -> None:
        """Go on after an attempt that is over."""
        self.record(call, outcome, self.env.now)
        request, index = call.request, call.index
        request.live[index].remove(call)
        if index >= request.workload.given.branches:
            self.answer(request, self.joined_as(request))
        elif outcome == OK and request.state[index] == LIVE:
            self.succeed(request, index)
        elif outcome not in {OK, CANCELLED} and not request.live[index]:
            self.try_again(call, retry_after_ns)
        if self.leads(call):
            self.follow(request)

    def succeed(self, request: Request, index: int) -> None:
        """Take a branch's answer; the other attempt at it is not needed."""
        request.succeeded += 1
        for other in list(request.live[index]):
            self.provider_of(other).cancel(other)
        self.resolve(request, index, DONE)

    def try_again(self, call: Call, retry_after_ns: int) -> None:
        """Make another attempt after a pause, or give the branch up."""
        request, workload = call.request, call.request.workload
        if request.is_settled or not workload.allows_more(call):
            self.resolve(request, call.index, LOST)
            return
        workload.more_attempts += 1
        pause = Moment(self.env, READY, workload.pause_ns(call, retry_after_ns), call)
        pause.callbacks.append(self.paused)

    def paused(self, event: Any) -> None:
        """Make the next attempt, if its request still needs it."""
        call: Call = event.value
        if not call.request.is_settled:
            self.make(call.request, call.index)

    def resolve(self, request: Request, index: int, state: int) -> None:
        """Note what became of a branch, and go on with what depended on it, or with the join."""
        request.state[index] = state
        request.unresolved -= 1
        if request.is_settled:
            return
        if self.is_hopeless(request, index):
            self.answer(request, FAILED)
        elif self.is_enough(request):
            self.start_join(request)
        else:
            for dependent in request.graph.dependents[index]:
                self.unblock(request, dependent)

    def unblock(self, request: Request, index: int) -> None:
        """Count one call less before this one; make it after the last, if all that it needs succeeded."""
        request.blockers[index] -= 1
        if request.blockers[index] or request.is_settled:
            return
        needed = request.workload.given.dependencies[index]
        if all(request.state[call] == DONE for call in needed):
            self.make(request, index)
        else:
            self.resolve(request, index, LOST)

    def is_hopeless(self, request: Request, index: int) -> bool:
        """Return whether the join can never be, now that a branch is resolved."""
        faults = request.workload.given.faults
        if faults is None or request.state[index] == DONE:
            return False
        if faults.needs is None:
            return not faults.optional[index]
        return request.succeeded + request.unresolved < faults.needs

    def is_enough(self, request: Request) -> bool:
        """Return whether the join has all that it needs."""
        faults = request.workload.given.faults
        needs = faults.needs if faults is not None else None
        return request.unresolved == 0 if needs is None else request.succeeded >= needs

    def start_join(self, request: Request) -> None:
        """Join what succeeded; a serial request has nothing to join."""
        workload = request.workload
        request.join_start_ns = self.env.now
        self.drop(request)
        join_ns = workload.join_ns[request.position] if request.parallel else 0
        if request.parallel and workload.given.join_holds_slot:
            self.make(request, workload.given.branches)
        elif join_ns:
            self.env.timeout(join_ns, request).callbacks.append(self.joined)
        else:
            self.answer(request, self.joined_as(request))

    def joined(self, event: Any) -> None:
        """Answer at the end of the join."""
        self.answer(event.value, self.joined_as(event.value))

    def joined_as(self, request: Request) -> int:
        """Return how a request ends whose join is complete."""
        whole = request.succeeded >= request.workload.given.branches
        return SUCCEEDED if whole else DEGRADED

    def out_of_time(self, event: Any) -> None:
        """Give up a request that is not answered by its deadline."""
        self.answer(event.value, DEADLINE_MISSED)

    def answer(self, request: Request, outcome: int) -> None:
        """Answer a request once, and drop what it still has under way."""
        if not request.answer.triggered:
            request.answer.succeed(outcome)
            self.drop(request)

    def drop(self, request: Request) -> None:
        """Cancel what is no longer needed, unless the workload lets it run on."""
        faults = request.workload.given.faults
        if faults is not None and faults.cancels:
            for calls in request.live:
                for call in list(calls):
                    self.provider_of(call).cancel(call)
