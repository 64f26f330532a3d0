"""The checks of a long run on shared providers, compiled: a pass over its requests, a walk at each provider.

They return pass or fail; the readable checks of `sim.check.run` explain a fault. They need numba to be there.
"""

from collections.abc import Iterator
from math import gcd
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sim.check import shared_kernels as kernels
from sim.check.first_tokens import first_tokens_ns
from sim.check.plans import wrong_plans
from sim.check.request_compiled import Requests, tables_of
from sim.check.shared_kernels import Walk
from sim.check.timeline import distinct, uses_weight
from sim.contract.limit import UNITS
from sim.contract.output import NO_SLOT, REJECTED, Attempts, RunOutput
from sim.contract.provider import ProviderInput, RateLimit
from sim.contract.run import RunInput, WorkloadInput
from sim.units import IntArray

RULES = {
    int(kernels.NOT_STARTED): "has an attempt that waited beside a free slot, or was overtaken",
    int(kernels.OTHER_SLOT): "has an attempt that did not get the slot free longest",
    int(kernels.NOT_DUE): "has an attempt that took what was not its due",
    int(kernels.TAKEN_SLOT): "has an attempt that took a slot that was not free",
    int(kernels.OTHER_HIT): "has an attempt whose cache record is wrong",
    int(kernels.ADMITTED): "has an attempt that waited for a limit that admitted it",
}
NEVER = 1 << 61


class NoVerdict(Exception):  # noqa: N818  nothing is wrong
    """A bucket's level does not fit in 64 bits, or requests are not numbered in order of arrival."""


class Broken(NamedTuple):
    """A rule, in words, and the request that breaks it."""

    rule: str
    request: int


def verdict(given: RunInput, out: RunOutput) -> Broken | int:
    """Hold every request and every grant of a run against the rules; return a fault, or how many are exact.

    Raises
    ------
    NoVerdict
        There is none.
    """
    tables = tables_of(out)
    workloads = [Requests(given, out, index, tables) for index in range(len(given.workloads))]
    for one in workloads:
        wrong = one.first_wrong()
        if wrong is not None:
            return Broken("breaks a rule of its own", wrong)
    unplanned = wrong_plans(given, out)
    if unplanned.any():
        return Broken("did not run the plan of its fair share", int(np.argmax(unplanned)))
    exact = 0
    for provider, (walk, broken) in enumerate(walked(given, out)):
        if broken is not None:
            return broken
        caps = walk.requests[:, : len(out.arrival_ns) if len(walk.seen_ns) else 0]
        for one in workloads:
            if one.providers == {provider}:
                known = one.count_exact(caps[kernels.LEAST], caps[kernels.GREATEST])
                if known < 0:
                    return Broken("did not take as long as the list scheduler has it", -1 - known)
                exact += known
    return exact


def first_broken(given: RunInput, out: RunOutput) -> Broken | None:
    """Walk a run at each provider; return the first rule broken, or None.

    Raises
    ------
    NoVerdict
        There is none.
    """
    return next((broken for _, broken in walked(given, out) if broken is not None), None)


def walked(given: RunInput, out: RunOutput) -> Iterator[tuple[Walk, Broken | None]]:
    """Yield the walk at each provider when it has come to an end, and the rule that it found broken."""
    if not fits(given) or (out.arrival_ns[1:] < out.arrival_ns[:-1]).any():
        raise NoVerdict
    for provider in range(len(given.providers)):
        walk = walk_of(given, out, provider)
        rule = int(kernels.walk_through(walk))
        if rule == kernels.TOO_FAR:
            raise NoVerdict
        fine = rule == kernels.FINE
        yield walk, None if fine else Broken(RULES[rule], int(walk.number[walk.state[kernels.BROKEN_AT]]))


def fits(given: RunInput) -> bool:
    """Return whether full buckets, and whatever is taken of one at once, fit in 64 bits."""
    most_tokens = max(most_used(one) for one in given.workloads)
    rates = [rate for provider in given.providers for rate in provider.limits.rates]
    return all(
        max(rate.burst, most_tokens) * scale_of(rate) <= kernels.MOST_LEVEL
        for rate in rates
        if rate.burst is not None
    )


def walk_of(given: RunInput, out: RunOutput, provider: int) -> Walk:
    """Return everything that the kernel works on, at the start of a run."""
    rules, attempts = given.providers[provider], attempts_at(given, out, provider)
    by_ready, by_start = order_of(attempts.ready_ns), order_of(attempts.start_ns)
    rank = np.empty_like(by_ready)
    rank[by_ready] = np.arange(len(by_ready), dtype=np.int32)
    if (attempts.slot == NO_SLOT).any():
        by_start = by_start[attempts.slot[by_start] != NO_SLOT]
    levels = held_levels(given, rules, attempts)
    height_from = tree_heights(len(rank))
    slots = rules.most_slots
    caps_change = rules.allocation.caps or len(rules.slots) > 1
    caps = (len(given.workloads) if caps_change else 0, most_calls(given) + 1)
    requests = np.zeros((kernels.REQUEST_ROWS, len(out.arrival_ns)), dtype=np.int32)
    requests[kernels.FIRST_WAITING] = kernels.NOBODY
    tokens_in, tokens_out = token_tables(given)
    ring = np.zeros((kernels.SLOT_ROWS, slots + 1), dtype=np.int64)
    ring[[kernels.NEXT, kernels.BEFORE], slots] = slots
    return Walk(
        state=initial_state(rules, levels),
        workloads=workload_table(given, provider),
        calls=call_table(given),
        meters=meter_table(rules.limits.rates),
        steps=np.array(rules.slots, dtype=np.int64).T.copy(),
        turned_away_ns=distinct(out.attempts.finish_ns[out.attempts.outcome == REJECTED]),
        workload=plain(out.workload),
        position=plain(out.position),
        arrival_ns=plain(out.arrival_ns),
        completion_ns=plain(out.completion_ns),
        by_completion=order_of(out.completion_ns),
        seen_ns=np.full(caps, kernels.NONE, dtype=np.int64),
        number=plain(attempts.number),
        call=plain(attempts.call),
        ready_ns=plain(attempts.ready_ns),
        start_ns=plain(attempts.start_ns),
        finish_ns=plain(attempts.finish_ns),
        slot=plain(attempts.slot),
        outcome=plain(attempts.outcome),
        hit=plain(attempts.hit),
        by_ready=by_ready,
        rank=rank,
        by_start=by_start,
        by_finish=order_of(attempts.finish_ns),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        writes=cache_writes(given, out, rules, attempts),
        granted=np.zeros(len(rank) if len(rules.limits.rates) else 0, dtype=np.int32),
        requests=requests,
        next_waiting=np.full(len(rank), kernels.NOBODY, dtype=np.int32),
        slots=ring,
        bits=np.zeros((len(given.workloads) * levels, height_from[-1]), dtype=np.int64),
        height_from=height_from[:-1],
    )


def order_of(times_ns: IntArray) -> npt.NDArray[np.int32]:
    """Return the order of times, equal ones as they stand."""
    return np.argsort(times_ns, kind="stable").astype(np.int32)


def plain(values: IntArray) -> IntArray:
    """Return values as the kernel wants them, in memory one after another; a copy only if they are not."""
    return np.require(values, dtype=np.int64, requirements=["C", "W"])


def most_calls(given: RunInput) -> int:
    return max(one.calls_per_request for one in given.workloads)


def attempts_at(given: RunInput, out: RunOutput, provider: int) -> Attempts:
    """Return the attempts that were made to one provider."""
    attempts = out.attempts
    if len(given.providers) == 1:
        return attempts
    mine = np.flatnonzero(given.providers_of_attempts(out) == provider)
    return Attempts(**{name: getattr(attempts, name)[mine] for name in Attempts.__annotations__})


def held_levels(given: RunInput, rules: ProviderInput, attempts: Attempts) -> int:
    """Return how many numbers of slots held by a request must be told apart: one where no cap can bind."""
    degrees = [one.max_degree for one in given.workloads if one.max_degree is not None]
    if not rules.allocation.minds_held and not degrees:
        return 1
    return 1 + min(int(np.bincount(attempts.number).max(initial=0)), rules.most_slots)


def tree_heights(ranks: int) -> IntArray:
    """Return where each height of a tree of words of 64 bits begins, and the number of words in all."""
    heights, words = [0], max(2, ranks)
    while words > 1:
        words = -(-words // 64)
        heights.append(heights[-1] + words)
    return np.array(heights, dtype=np.int64)


def initial_state(rules: ProviderInput, levels: int) -> IntArray:
    state = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
    state[kernels.LEVELS] = levels
    state[kernels.REFUSED] = kernels.NOBODY
    state[kernels.FEWEST_FIRST] = rules.allocation.fewest_first
    state[kernels.SHARES] = rules.allocation.caps
    state[kernels.LENDS] = rules.lends
    state[kernels.REJECTIONS_COUNT] = rules.limits.rejections_count
    state[kernels.CACHED_TOKENS_COUNT] = rules.limits.cached_tokens_count
    if rules.cache:
        state[kernels.HAS_CACHE] = True
        state[kernels.CACHE_TTL] = min(rules.cache.ttl_ns, NEVER)
        state[kernels.CACHE_CAPACITY] = kernels.NONE if rules.cache.capacity is None else rules.cache.capacity
    return state


def workload_table(given: RunInput, provider: int) -> IntArray:
    rules = given.providers[provider]
    table = np.zeros((len(given.workloads), kernels.WORKLOAD_SIZE), dtype=np.int64)
    table[:, kernels.RESERVED] = rules.reserved or 0
    first_token = 0
    for index, (row, one) in enumerate(zip(table, given.workloads, strict=True)):
        row[kernels.WEIGHT] = one.weight if rules.allocation.by_weight else 1
        row[kernels.COUNTS_FOR] = uses_weight(given, index, provider)
        row[kernels.MAX_DEGREE] = NEVER if one.max_degree is None else one.max_degree
        row[kernels.HAS_TOKENS] = one.tokens is not None
        row[kernels.CALLS] = one.calls_per_request
        row[kernels.TOKENS_FROM] = first_token
        first_token += one.tokens.input.size if one.tokens is not None else 0
        if rules.allocation.by_priority:
            row[kernels.RANK] = sum(other.priority > one.priority for other in given.workloads)
    return table


def call_table(given: RunInput) -> IntArray:
    table = np.zeros((len(given.workloads), most_calls(given), kernels.CALL_SIZE), dtype=np.int64)
    for rows, one in zip(table, given.workloads, strict=True):
        if one.tokens is not None:
            rows[: one.calls_per_request, kernels.PREFIX] = one.tokens.prefix
            rows[: one.calls_per_request, kernels.RESERVED_OUTPUT] = one.tokens.reserved_output
    return table


def meter_table(rates: tuple[RateLimit, ...]) -> IntArray:
    """Return the limits; a bucket's level is in parts of which each nanosecond adds a whole number."""
    table = np.zeros((len(rates), kernels.METER_SIZE), dtype=np.int64)
    for row, rate in zip(table, rates, strict=True):
        row[kernels.UNIT], row[kernels.SCALE], row[kernels.CAPACITY] = (
            UNITS.index(rate.unit),
            rate.window_ns,
            rate.amount,
        )
        if rate.burst is not None:
            scale = scale_of(rate)
            row[kernels.IS_BUCKET], row[kernels.SCALE] = True, scale
            row[kernels.PER_NS] = rate.amount * scale // rate.window_ns
            row[[kernels.CAPACITY, kernels.LEVEL]] = rate.burst * scale
    return table


def scale_of(rate: RateLimit) -> int:
    return rate.window_ns // gcd(rate.window_ns, rate.amount)


def most_used(one: WorkloadInput) -> int:
    """Return the most that a call of a workload counts for."""
    if one.tokens is None:
        return 1
    received = max(int(one.tokens.output.max(initial=0)), *one.tokens.reserved_output)
    return 1 + int(one.tokens.input.max(initial=0)) + received


def token_tables(given: RunInput) -> tuple[IntArray, IntArray]:
    """Return the tokens sent and received, one workload's after another's."""
    tokens = [one.tokens for one in given.workloads if one.tokens is not None]
    sent, received = ([getattr(one, name).reshape(-1) for one in tokens] for name in ("input", "output"))
    if len(tokens) == 1:
        return plain(sent[0]), plain(received[0])
    nothing = np.zeros(0, dtype=np.int64)
    return np.concatenate([nothing, *sent]), np.concatenate([nothing, *received])


def cache_writes(given: RunInput, out: RunOutput, rules: ProviderInput, attempts: Attempts) -> IntArray:
    """Return when what each attempt writes can be read, and room for a list; nothing without a cache."""
    if not rules.cache or all(one.tokens is None for one in given.workloads):
        return np.zeros((kernels.WRITE_ROWS, 0), dtype=np.int64)
    writes = np.zeros((kernels.WRITE_ROWS, len(attempts.number)), dtype=np.int64)
    workload = out.workload[attempts.number]
    for index, one in enumerate(given.workloads):
        if one.tokens is not None:
            mine = np.flatnonzero(workload == index)
            position, call = out.position[attempts.number[mine]], attempts.call[mine]
            first_ns = first_tokens_ns(one, position, call, attempts.attempt[mine])
            writes[kernels.READABLE_AFTER, mine] = np.minimum(first_ns, NEVER)
    return writes
