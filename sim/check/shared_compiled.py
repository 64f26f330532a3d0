"""The walk through a run at one shared provider, compiled, for large runs.

The checks to read are in `sim.check.grants`. This one only says whether a run passes; it never tells a
fault's story. It needs numba to be there.
"""

from math import gcd
from typing import NamedTuple

import numpy as np

from sim.check import shared_kernels as kernels
from sim.check.first_tokens import first_tokens_ns
from sim.check.shared_kernels import Walk
from sim.check.timeline import Timeline, uses_weight
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
    """A bucket's level does not fit in 64 bits."""


class Broken(NamedTuple):
    """A rule, in words, and the request that breaks it."""

    rule: str
    request: int


def first_broken(given: RunInput, out: RunOutput, line: Timeline) -> Broken | None:
    """Walk a run at each provider; return the first rule broken, or None.

    Raises
    ------
    NoVerdict
        It cannot be told within 64 bits.
    """
    if not fits(given):
        raise NoVerdict
    for provider in range(len(given.providers)):
        walk = walk_of(given, out, line, provider)
        rule = int(kernels.walk_through(walk))
        if rule == kernels.TOO_FAR:
            raise NoVerdict
        if rule != kernels.FINE:
            return Broken(RULES[rule], int(walk.number[walk.state[kernels.BROKEN_AT]]))
    return None


def fits(given: RunInput) -> bool:
    """Return whether full buckets, and whatever is taken of one at once, fit in 64 bits."""
    most_tokens = max(most_used(one) for one in given.workloads)
    rates = [rate for provider in given.providers for rate in provider.limits.rates]
    return all(
        max(rate.burst, most_tokens) * scale_of(rate) <= kernels.MOST_LEVEL
        for rate in rates
        if rate.burst is not None
    )


def walk_of(given: RunInput, out: RunOutput, line: Timeline, provider: int) -> Walk:
    """Return everything that the kernel works on, at the start of a run."""
    rules, attempts = given.providers[provider], attempts_at(given, out, provider)
    by_ready = np.argsort(attempts.ready_ns, kind="stable")
    rank = np.empty_like(by_ready)
    rank[by_ready] = np.arange(len(by_ready))
    got_slot = np.flatnonzero(attempts.slot != NO_SLOT)
    levels = held_levels(given, rules, attempts)
    height_from = tree_heights(len(rank))
    slots = rules.most_slots
    unsettled = np.zeros(len(line.instant_ns), dtype=np.bool_)
    unsettled[line.at(out.attempts.finish_ns[out.attempts.outcome == REJECTED])] = True
    requests = np.zeros((kernels.REQUEST_ROWS, len(out.arrival_ns)), dtype=np.int32)
    requests[kernels.FIRST_WAITING] = kernels.NOBODY
    ring = np.zeros((kernels.SLOT_ROWS, slots + 1), dtype=np.int64)
    ring[[kernels.NEXT, kernels.BEFORE], slots] = slots
    return Walk(
        state=initial_state(rules, levels),
        workloads=workload_table(given, provider),
        calls=call_table(given),
        meters=meter_table(rules.limits.rates),
        instant_ns=plain(line.instant_ns),
        active=plain(line.active),
        slots_at=plain(line.slots[provider]),
        unsettled=unsettled,
        workload=plain(out.workload),
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
        by_start=got_slot[np.argsort(attempts.start_ns[got_slot], kind="stable")],
        by_finish=np.argsort(attempts.finish_ns, kind="stable"),
        extras=row_extras(given, out, rules, attempts),
        granted=np.zeros(len(rank) if len(rules.limits.rates) else 0, dtype=np.int32),
        requests=requests,
        next_waiting=np.full(len(rank), kernels.NOBODY, dtype=np.int32),
        slots=ring,
        bits=np.zeros((len(given.workloads) * levels, height_from[-1]), dtype=np.int64),
        height_from=height_from[:-1],
    )


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
    for index, (row, one) in enumerate(zip(table, given.workloads, strict=True)):
        row[kernels.WEIGHT] = one.weight if rules.allocation.by_weight else 1
        row[kernels.COUNTS_FOR] = uses_weight(given, index, provider)
        row[kernels.MAX_DEGREE] = NEVER if one.max_degree is None else one.max_degree
        row[kernels.HAS_TOKENS] = one.tokens is not None
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


def row_extras(given: RunInput, out: RunOutput, rules: ProviderInput, attempts: Attempts) -> IntArray:
    """Return what limits and the cache look at, for each attempt; nothing where there are neither."""
    if not (rules.cache or rules.limits.rates) or all(one.tokens is None for one in given.workloads):
        return np.zeros((kernels.ROW_EXTRAS, 0), dtype=np.int64)
    extras = np.zeros((kernels.ROW_EXTRAS, len(attempts.number)), dtype=np.int64)
    extras[kernels.NEXT_WRITE] = kernels.NOBODY
    workload = out.workload[attempts.number]
    for index, one in enumerate(given.workloads):
        if one.tokens is not None:
            mine = np.flatnonzero(workload == index)
            position, call = out.position[attempts.number[mine]], attempts.call[mine]
            extras[kernels.TOKENS_IN, mine] = one.tokens.input[position, call]
            extras[kernels.TOKENS_OUT, mine] = one.tokens.output[position, call]
            if rules.cache:
                first_ns = first_tokens_ns(one, position, call, attempts.attempt[mine])
                extras[kernels.READABLE_AFTER, mine] = np.minimum(first_ns, NEVER)
    return extras
