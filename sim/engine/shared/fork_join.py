"""What the start and the end of an attempt mean for its request: retries, hedges, lost branches, the join."""

from collections.abc import Callable, Sequence
from typing import Any

from sim.contract.output import CANCELLED, DEADLINE_MISSED, DEGRADED, FAILED, OK, REJECTED, SUCCEEDED
from sim.contract.run import NEVER_NS
from sim.engine.clock import DEADLINE, OUTCOME, READY, Clock, Moment
from sim.engine.shared.calls import DONE, LIVE, LOST, PENDING, Call, Request
from sim.engine.shared.provider import Provider

Record = Callable[[Call, int, int], None]


class ForkJoin:
    """Makes a request's calls, and answers it: when its join is complete, or when it cannot be any more."""

    def __init__(self, env: Clock, record: Record) -> None:
        self.env = env
        self.record = record
        self.providers: Sequence[Provider] = ()
        # (attempt, how it ended) of calls that are answered or have failed at this instant, in order.
        self.over: list[tuple[Call, int]] = []

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

    def provider_of(self, call: Call) -> Provider:
        """Return the provider that a call is made to."""
        return self.providers[call.request.workload.given.provider_of(call.index)]

    def started(self, call: Call) -> None:
        """Watch an attempt that has got its slot: for its first token, and for being slow."""
        workload = call.request.workload
        if self.leads(call.request, call.index) and (after_ns := call.first_token_ns()) < NEVER_NS:
            Moment(self.env, READY, after_ns, call).callbacks.append(self.warmed)
        faults = workload.given.faults
        hedge_ns = (
            faults.hedge_after_ns[call.index] if faults and call.index < workload.given.branches else None
        )
        if hedge_ns is not None and call.attempt == 0:
            Moment(self.env, READY, hedge_ns, call).callbacks.append(self.hedge)

    def leads(self, request: Request, index: int) -> bool:
        """Return whether the request's other roots wait for the first token of this call."""
        warm_first = request.parallel and request.workload.given.warm_first
        return warm_first and index == request.graph.roots[0]

    def warmed(self, event: Any) -> None:
        """Make the other calls once the leading one has begun to answer, if only to end as it does."""
        call: Call = event.value
        if not call.is_over or call.end_ns == self.env.now:
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
        if not call.is_over and not request.is_settled and call.allows_more():
            request.workload.more_attempts += 1
            self.make(request, call.index)

    def ended(self, call: Call, outcome: int, retry_after_ns: int) -> None:
        """Take note of an attempt that is over; what comes of it waits for all others that end now."""
        self.record(call, outcome, self.env.now)
        request, index = call.request, call.index
        request.live[index].remove(call)
        if outcome == CANCELLED or request.state[index] == DONE:
            return
        if outcome == OK:
            self.count_answer(request, index)
        elif request.live[index]:
            return
        if outcome == REJECTED:
            # Known at a dispatch, when everything that ends at this instant has ended.
            self.conclude([(call, outcome)], retry_after_ns)
            return
        if not self.over:
            Moment(self.env, OUTCOME).callbacks.append(self.all_ended)
        self.over.append((call, outcome))

    def count_answer(self, request: Request, index: int) -> None:
        """Count a call's first answer, if the join has not begun without it."""
        if index < request.workload.given.branches and not request.is_settled:
            request.succeeded += 1
            request.unresolved -= 1
        request.state[index] = DONE

    def all_ended(self, _event: Any) -> None:
        """Draw the consequences of all attempts that have ended at this instant."""
        over, self.over = self.over, []
        self.conclude(over, 0)

    def conclude(self, over: Sequence[tuple[Call, int]], retry_after_ns: int) -> None:
        """Go on after calls that are answered or have failed: first all answers, then all failures.

        So what becomes of a request does not depend on the order in which its attempts ended.
        """
        for call, outcome in over:
            if outcome == OK:
                self.succeed(call.request, call.index)
        for call, outcome in over:
            if outcome != OK and self.is_needed(call.request, call.index):
                self.try_again(call, retry_after_ns)
        for call, _ in over:
            if call.request.state[call.index] != LIVE and not call.request.is_settled:
                self.go_on(call.request, call.index)

    def is_needed(self, request: Request, index: int) -> bool:
        """Return whether a call is of use: a branch until the join begins, the join until the answer."""
        is_join = index >= request.workload.given.branches
        return not (request.answer.triggered if is_join else request.is_settled)

    def succeed(self, request: Request, index: int) -> None:
        """Take a call's answer; the other attempt at it is not needed."""
        for other in list(request.live[index]):
            self.provider_of(other).cancel(other)
        if index >= request.workload.given.branches:
            self.answer(request, self.joined_as(request))
        elif not request.is_settled and self.is_enough(request):
            self.start_join(request)

    def try_again(self, call: Call, retry_after_ns: int) -> None:
        """Make another attempt after a pause, or give the call up."""
        request, workload = call.request, call.request.workload
        if call.allows_more():
            workload.more_attempts += 1
            pause = Moment(self.env, READY, call.pause_ns(retry_after_ns), call)
            pause.callbacks.append(self.paused)
        elif call.index >= workload.given.branches:
            self.answer(request, FAILED)
        else:
            self.lose(request, call.index)

    def paused(self, event: Any) -> None:
        """Make the next attempt, if its request still needs it."""
        call: Call = event.value
        if self.is_needed(call.request, call.index):
            self.make(call.request, call.index)

    def lose(self, request: Request, index: int) -> None:
        """Give a branch up, and with it every branch that depends on it."""
        lost = [index]
        request.state[index] = LOST
        for branch in lost:
            request.unresolved -= 1
            for dependent in request.workload.parallel.dependents[branch]:
                if request.state[dependent] == PENDING:
                    request.state[dependent] = LOST
                    lost.append(dependent)

    def go_on(self, request: Request, index: int) -> None:
        """Go on after a branch is done or lost: fail, join, or make the calls that waited for it."""
        if self.is_hopeless(request):
            self.answer(request, FAILED)
        elif self.is_enough(request):
            self.start_join(request)
        else:
            self.unblock_dependents(request, index)
            if self.leads(request, index):
                self.follow(request)

    def unblock_dependents(self, request: Request, index: int) -> None:
        """Make the calls for which this was the last one before them; a lost one is passed over."""
        passed = [index]
        for branch in passed:
            for dependent in request.graph.dependents[branch]:
                request.blockers[dependent] -= 1
                if request.blockers[dependent] == 0:
                    if request.state[dependent] == LOST:
                        passed.append(dependent)
                    else:
                        self.make(request, dependent)

    def is_hopeless(self, request: Request) -> bool:
        """Return whether the join can never be, or would have nothing to join."""
        workload = request.workload
        if request.unresolved == 0 and request.succeeded == 0:
            return True
        if workload.needs is not None:
            return request.succeeded + request.unresolved < workload.needs
        if request.succeeded + request.unresolved == workload.given.branches:
            return False  # none is lost
        return any(
            state == LOST and not optional
            for state, optional in zip(request.state, workload.optional, strict=False)
        )

    def is_enough(self, request: Request) -> bool:
        """Return whether the join has all that it needs."""
        needs = request.workload.needs
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
        if request.workload.cancels:
            for calls in request.live:
                for call in list(calls):
                    self.provider_of(call).cancel(call)
