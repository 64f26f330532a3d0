"""The checks on a run: every attempt, every request, every workload accounted for."""

from collections.abc import Callable, Iterator

import numpy as np

from sim.check.grants import walk_provider
from sim.check.history import violated, violation
from sim.check.issued import Issued, first_misissued
from sim.check.joins import join_rules
from sim.check.list_scheduler import critical_paths_ns, known_latencies
from sim.check.made import made_rules
from sim.check.plans import wrong_plans
from sim.check.replay import Run, check_isolated_replay
from sim.check.report import COMPILED, READABLE, CheckReport, check_of
from sim.check.timeline import Timeline, timeline
from sim.contract.allocation import FIFO
from sim.contract.load import OpenArrivals
from sim.contract.output import (
    CANCELLED,
    DEGRADED,
    FAILED,
    NO_SLOT,
    OK,
    REJECTED,
    SUCCEEDED,
    TIMED_OUT,
    RunOutput,
)
from sim.contract.plain import NO_CALL, PlainInput, PlainOutput, PlainRunOutput, plain_view
from sim.contract.run import NEVER_NS, RunInput, WorkloadInput
from sim.errors import CheckError
from sim.units import BoolArray, IntArray, sum_exact

Drawn = Callable[[WorkloadInput, IntArray, IntArray, IntArray], IntArray]
"""What was drawn for attempts of a workload, by position, call and attempt."""


def check_run(given: RunInput, out: RunOutput, run: Run) -> CheckReport:
    """Run every check on a run; `run` is what made it, for the replays.

    Raises
    ------
    CheckError
        The first rule broken, with the history of the request it was broken for.
    """
    exact, run_by = fast_path(given, out) or check_general(given, out)
    replays = [check_isolated_replay(workload, run) for workload in given.workloads] if out.requests else []
    return CheckReport(
        requests=out.requests,
        requests_exact=exact,
        requests_bounded=out.requests - exact,
        calls_conserved=len(out.attempts.number),
        isolated_replays=sum(replays),
        active_integral_ns=sum(out.active_integral_ns),
        slot_numbers_left_out=sum(
            workload.calls_per_request - made
            for workload, made in zip(given.workloads, replays, strict=False)
            if made
        ),
        run_by=(run_by,),
    )


def fast_path(given: RunInput, out: RunOutput) -> tuple[int, str] | None:
    """Check the tables of a long plain run in one compiled pass; None where others have to look at it."""
    if not isinstance(out, PlainRunOutput) or not out.requests:
        return None
    if check_of(out.engine, out.tables.slot.size) == READABLE:
        return None
    from sim.check.compiled import verdict  # noqa: PLC0415  it needs numba to be there

    plain = plain_view(given)
    assert plain is not None
    found = verdict(plain, out.tables)
    if found.broken is None:
        return found.exact, COMPILED
    check_issue(given, out)
    check_tables(given, out)
    raise violated(out, f"request {found.request}: {found.broken}", found.request)


def check_general(given: RunInput, out: RunOutput) -> tuple[int, str]:
    """Check the tables of any run; return how many requests were exact, and which check it was."""
    check_issue(given, out)
    if out.requests == 0:
        check_integrals(given, out)
        return 0, READABLE
    known = check_large(given, out)
    return (check_tables(given, out), READABLE) if known is None else (known, COMPILED)


def check_issue(given: RunInput, out: RunOutput) -> None:
    """Make sure that nothing is left over, and that the requests are those that the loads ask for."""
    check_leaks(out)
    check_references(given, out)
    for index in range(len(given.workloads)):
        check_issued(given, out, index)


def check_rules(out: RunOutput, rules: Iterator[tuple[str, BoolArray]]) -> None:
    """Make sure that no request breaks one of these rules."""
    for rule, broken in rules:
        if broken.any():
            raise violation(out, int(np.argmax(broken)), rule)


def check_tables(given: RunInput, out: RunOutput) -> int:
    """Hold every request and every grant against the rules; return how many requests were exact."""
    check_rules(out, table_rules(given, out))
    line = timeline(given, out)
    unplanned = wrong_plans(given, out, line)
    if unplanned.any():
        raise violation(out, int(np.argmax(unplanned)), "did not run the plan of its fair share")
    for provider in range(len(given.providers)):
        walk_provider(given, out, line, provider)
    check_rules(out, join_rules(given, out))
    check_rules(out, made_rules(given, out))
    check_integrals(given, out)
    return sum(check_workload(given, out, line, index) for index in range(len(given.workloads)))


def check_large(given: RunInput, out: RunOutput) -> int | None:
    """Do the same compiled, or return None; where that finds a fault the readable checks explain it."""
    if check_of(out.engine, len(out.attempts.number)) == READABLE:
        return None
    from sim.check.shared_compiled import NoVerdict, verdict  # noqa: PLC0415  it needs numba to be there

    try:
        found = verdict(given, out)
    except NoVerdict:
        return None
    if isinstance(found, int):
        check_integrals(given, out)
        return found
    check_tables(given, out)
    raise violation(out, found.request, found.rule)


def check_leaks(out: RunOutput) -> None:
    """Make sure that every slot is free and every reservation settled at the end."""
    if out.slots_held:
        raise CheckError(f"conservation: {out.slots_held} slots are still held at the end of the run")
    if out.tokens_outstanding:
        raise CheckError(f"conservation: {out.tokens_outstanding} reserved tokens were never settled")


def check_references(given: RunInput, out: RunOutput) -> None:
    """Make sure that attempts are of requests, and requests of workloads, that there are."""
    if ((out.workload < 0) | (out.workload >= len(given.workloads))).any():
        raise CheckError("conservation: a request is of no workload")
    number = out.attempts.number
    if ((number < 0) | (number >= len(out.arrival_ns))).any():
        raise CheckError("conservation: an attempt is of no request")


def check_issued(given: RunInput, out: RunOutput, index: int) -> None:
    """Make sure that a workload issued what its load asks for, numbered as its draws are."""
    mine = np.flatnonzero(out.workload == index)
    shuffled = out.position[mine] != np.arange(len(mine))
    if shuffled.any():
        raise violation(out, int(mine[np.argmax(shuffled)]), "is not in the order of its draws")
    attempts = out.attempts
    rejected = attempts.outcome == REJECTED
    rejected &= attempts.finish_ns == out.completion_ns[attempts.number]
    at_dispatch = per_request(out, rejected) & (out.outcome == FAILED)
    issued = Issued(out.user[mine], out.arrival_ns[mine], out.completion_ns[mine], at_dispatch[mine])
    found = first_misissued(given.workloads[index].load, issued)
    if found is not None:
        what = f"workload {index}: {found.what}"
        raise violated(out, what, int(mine[found.request]) if len(mine) else None)


def table_rules(given: RunInput, out: RunOutput) -> Iterator[tuple[str, BoolArray]]:
    """Yield (rule, whether each request breaks it), bool[requests] each."""
    attempts = out.attempts
    yield "was never answered", (out.completion_ns < out.arrival_ns) | (out.outcome < SUCCEEDED)
    yield "made an attempt that it cannot make", per_request(out, impossible(given, out))
    backwards = (attempts.start_ns < attempts.ready_ns) | (attempts.finish_ns < attempts.start_ns)
    yield "made an attempt backwards in time", per_request(out, backwards)
    yield "has an attempt whose time is not the one drawn", per_request(out, wrong_service(given, out))
    yield "has an attempt that did not end as drawn", per_request(out, wrong_outcome(given, out))
    yield "held a slot that another attempt held", per_request(out, double_booked(given, out))
    yield (
        "made an attempt before it arrived",
        per_request(out, attempts.ready_ns < out.arrival_ns[attempts.number]),
    )
    joined = (out.join_start_ns >= 0) & (out.outcome <= DEGRADED)
    yield "was answered without a join", (out.outcome <= DEGRADED) & ~joined
    join_ns = np.zeros(len(out.arrival_ns), dtype=np.int64)
    for index, workload in enumerate(given.workloads):
        mine = (out.workload == index) & out.ran_parallel & joined & (not workload.join_holds_slot)
        join_ns[mine] = workload.join_ns[out.position[mine]]
        holds = (out.workload == index) & out.ran_parallel & workload.join_holds_slot
        joined &= ~holds
    yield (
        "was not answered at the end of its join",
        joined & (out.completion_ns != out.join_start_ns + join_ns),
    )


def per_request(out: RunOutput, broken: BoolArray) -> BoolArray:
    """Return which requests have an attempt that breaks a rule."""
    found = np.zeros(len(out.arrival_ns), dtype=np.bool_)
    found[out.attempts.number[broken]] = True
    return found


def impossible(given: RunInput, out: RunOutput) -> BoolArray:
    """Return which attempts cannot be: beyond the calls, attempts or slots there are, or not in order."""
    attempts = out.attempts
    workload = out.workload[attempts.number]
    calls = np.array([one.calls_per_request for one in given.workloads])
    most = np.array([one.faults.most_attempts if one.faults else 1 for one in given.workloads])
    broken = (attempts.call < 0) | (attempts.call >= calls[workload])
    broken |= (attempts.attempt < 0) | (attempts.attempt >= most[workload])
    if not broken.any():
        slots = np.array([provider.most_slots for provider in given.providers])
        broken |= (attempts.slot < NO_SLOT) | (attempts.slot >= slots[given.providers_of_attempts(out)])
        key = (attempts.number * calls.max() + attempts.call) * most.max() + attempts.attempt
        broken[1:] |= key[1:] <= key[:-1]
    return np.asarray(broken)


def wrong_service(given: RunInput, out: RunOutput) -> BoolArray:
    """Return which attempts held their slot for another time than drawn; a cancelled one for less.

    What ends at the instant at which others are cancelled has ended by itself.
    """
    attempts = out.attempts
    took_ns, drawn_ns = attempts.finish_ns - attempts.start_ns, drawn(given, out, drawn_service_ns)
    held, cancelled = attempts.slot != NO_SLOT, attempts.outcome == CANCELLED
    return np.asarray(held & np.where(cancelled, took_ns >= drawn_ns, took_ns != drawn_ns))


def wrong_outcome(given: RunInput, out: RunOutput) -> BoolArray:
    """Return which attempts ended otherwise than drawn, cut short or never begun."""
    outcome, held = out.attempts.outcome, out.attempts.slot != NO_SLOT
    by_itself = held & (outcome != CANCELLED)
    never_begun = ~held & (outcome != CANCELLED) & (outcome != REJECTED)
    return np.asarray(never_begun | (by_itself & (outcome != drawn(given, out, drawn_outcome))))


def drawn(given: RunInput, out: RunOutput, of_workload: Drawn) -> IntArray:
    """Return what was drawn for each attempt (int64[attempts])."""
    attempts = out.attempts
    values = np.zeros(len(attempts.number), dtype=np.int64)
    for index, workload in enumerate(given.workloads):
        mine = out.workload[attempts.number] == index
        position, call = out.position[attempts.number[mine]], attempts.call[mine]
        values[mine] = of_workload(workload, position, call, attempts.attempt[mine])
    return values


def drawn_service_ns(
    workload: WorkloadInput, position: IntArray, call: IntArray, attempt: IntArray
) -> IntArray:
    """Return how long attempts hold their slots by the draws, their timeouts included."""
    faults = workload.faults
    if faults is None:
        return np.asarray(workload.service_ns[position, call])
    service_ns = faults.service_ns[position, call, attempt]
    timeout_ns = np.array([NEVER_NS if one is None else one for one in faults.timeout_ns])[call]
    hangs = faults.outcome[position, call, attempt] == TIMED_OUT
    service_ns = np.where(hangs, timeout_ns, np.minimum(service_ns, timeout_ns))
    return np.where(call < workload.branches, service_ns, workload.service_ns[position, call])


def drawn_outcome(workload: WorkloadInput, position: IntArray, call: IntArray, attempt: IntArray) -> IntArray:
    """Return how attempts end by the draws, where nothing cuts them short."""
    faults = workload.faults
    if faults is None:
        return np.full(len(call), OK)
    drawn = faults.outcome[position, call, attempt]
    timeout_ns = np.array([NEVER_NS if one is None else one for one in faults.timeout_ns])[call]
    late = faults.service_ns[position, call, attempt] > timeout_ns
    return np.where(call < workload.branches, np.where(late, TIMED_OUT, drawn), OK)


def double_booked(given: RunInput, out: RunOutput) -> BoolArray:
    """Return which attempts ran on a slot that another attempt still held."""
    attempts, slots = out.attempts, max(provider.most_slots for provider in given.providers)
    held = np.flatnonzero(attempts.slot != NO_SLOT)
    # Numbers as small as these are sorted in one pass.
    smallest = np.min_scalar_type(slots * len(given.providers))
    place = (given.providers_of_attempts(out) * slots + attempts.slot).astype(smallest)
    order = held[np.lexsort((attempts.finish_ns[held], attempts.start_ns[held], place[held]))]
    later, earlier = order[1:], order[:-1]
    same = place[later] == place[earlier]
    broken = np.zeros(len(attempts.number), dtype=np.bool_)
    broken[later] = same & (attempts.start_ns[later] < attempts.finish_ns[earlier])
    return broken


def check_workload(given: RunInput, out: RunOutput, line: Timeline, index: int) -> int:
    """Hold one workload's latencies against its attempts; return how many were exact."""
    workload, mine = given.workloads[index], np.flatnonzero(out.workload == index)
    calls = successful_calls(given, out, index)
    check_bound(workload, out, mine, calls)
    simple = mine[is_simple(given, out, index)[mine]]
    if len(simple) == 0:
        return 0
    provider = workload.provider_of(0)
    alone = PlainInput(
        slots=given.providers[provider].most_slots,
        allocation=FIFO,
        service_ns=workload.service_ns[out.position[simple]],
        join_ns=workload.join_ns[out.position[simple]],
        dependencies=workload.dependencies,
        serial_order=workload.serial_order,
        runs_parallel_at=workload.runs_parallel_at,
        load=OpenArrivals(out.arrival_ns[simple]),
    )
    view = view_of(out, simple, calls)
    exact, expected_ns = known_latencies(alone, view, line, line.cap(index, provider))
    wrong = np.where(exact, view.latency_ns != expected_ns, view.latency_ns < expected_ns)
    if wrong.any():
        row = int(np.argmax(wrong))
        must = f"must be {'exactly' if exact[row] else 'at least'} {expected_ns[row]} ns"
        raise violation(
            out, int(simple[row]), f"took {view.latency_ns[row]} ns, by the list scheduler it {must}"
        )
    return int(exact.sum())


def check_integrals(given: RunInput, out: RunOutput) -> None:
    """Hold what the engine summed of each workload as it went against the latencies of its requests."""
    for index in range(len(given.workloads)):
        total_ns, summed_ns = sum_exact(out.latency_ns[out.workload == index]), out.active_integral_ns[index]
        if total_ns != summed_ns:
            what = f"active x time is {summed_ns} ns, the latencies sum to {total_ns} ns"
            raise CheckError(f"Little's law of workload {index}: {what}")


Calls = tuple[IntArray, IntArray, IntArray, IntArray]
"""ready, start, finish and slot of the attempt that succeeded, int64[requests of the run, calls]."""


def successful_calls(given: RunInput, out: RunOutput, index: int) -> Calls:
    """Return the successful attempt (of two the first made) at each call of a workload, else `NO_CALL`."""
    attempts = out.attempts
    rows = np.flatnonzero((out.workload[attempts.number] == index) & (attempts.outcome == OK))[::-1]
    shape = (len(out.arrival_ns), given.workloads[index].calls_per_request)
    columns = (attempts.ready_ns, attempts.start_ns, attempts.finish_ns, attempts.slot)
    tables = []
    for column in columns:
        table = np.full(shape, NO_CALL, dtype=np.int64)
        table[attempts.number[rows], attempts.call[rows]] = column[rows]
        tables.append(table)
    return tables[0], tables[1], tables[2], tables[3]


def view_of(out: RunOutput, requests: IntArray, calls: Calls) -> PlainOutput:
    """Return some requests of one workload as a plain run's tables."""
    ready_ns, start_ns, finish_ns, slot = (table[requests] for table in calls)
    return PlainOutput(
        user=out.user[requests],
        ran_parallel=out.ran_parallel[requests],
        arrival_ns=out.arrival_ns[requests],
        completion_ns=out.completion_ns[requests],
        ready_ns=ready_ns,
        start_ns=start_ns,
        finish_ns=finish_ns,
        slot=slot,
        active_integral_ns=0,
        engine=out.engine,
    )


def is_simple(given: RunInput, out: RunOutput, index: int) -> BoolArray:
    """Return which requests the list scheduler can know exactly (bool[requests of the run]).

    Those whose calls all succeeded at their first attempt, beside no other, on one provider, without waiting
    at a limited one, and whose branches did not wait for a first token.
    """
    workload, attempts = given.workloads[index], out.attempts
    simple = (out.workload == index) & (out.outcome == SUCCEEDED)
    uses = {workload.provider_of(call) for call in range(workload.calls_per_request)}
    if len(uses) > 1:
        return np.zeros_like(simple)
    if workload.warm_first:
        simple &= ~out.ran_parallel
    troubled = (attempts.outcome != OK) | (attempts.attempt > 0)
    provider = given.providers[uses.pop()]
    if provider.limits.rates or len(provider.slots) > 1 or any(provider.reserved):
        troubled |= attempts.start_ns > attempts.ready_ns
    return np.asarray(simple & ~per_request(out, troubled))


def check_bound(workload: WorkloadInput, out: RunOutput, mine: IntArray, calls: Calls) -> None:
    """Hold each delivered request to the realised times of the calls that its join needed."""
    _, start_ns, finish_ns, slot = calls
    service_ns = np.where(slot[mine] == NO_CALL, 0, finish_ns[mine] - start_ns[mine])
    join_ns = np.where(out.ran_parallel[mine], workload.join_ns[out.position[mine]], 0)
    least_ns = np.where(
        out.ran_parallel[mine],
        critical_paths_ns(service_ns, workload.dependencies) + join_ns,
        service_ns.sum(axis=1),
    )
    # With k of n, a straggler that runs on after the join is not among the calls that the join needed.
    late = (finish_ns[mine] > out.join_start_ns[mine][:, None]).any(axis=1)
    broken = (out.outcome[mine] <= DEGRADED) & ~late & (out.latency_ns[mine] < least_ns)
    if broken.any() and not workload.join_holds_slot:
        raise violation(out, int(mine[np.argmax(broken)]), "was answered before its calls could end")
