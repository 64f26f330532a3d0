"""Figures of one run: what happened, in milliseconds, shares and micros, after warm-up."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim.check import CheckReport
from sim.contract import figure as named
from sim.contract.figure import share_within
from sim.contract.output import NO_SLOT, REJECTED, RunOutput
from sim.draws.drawing import is_deterministic
from sim.run.costs import costs_micros
from sim.run.follow_up import follow_up_figures
from sim.run.simulation import Run
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, OpenLoad
from sim.scenario.model import WarmupCut
from sim.scenario.profile import Period
from sim.scenario.slo import latency_bounds
from sim.statistics.figures import Figures, Value, ratio, time_figures
from sim.statistics.proportion import outline
from sim.statistics.stability import Backlog, backlog
from sim.statistics.warmup import mser5, mser5_limit
from sim.units import NS_PER_MS, NS_PER_S, BoolArray, FloatArray, IntArray, s_to_ns, stretches, sum_exact

WarmupRule = Literal["none", "auto"] | WarmupCut


@dataclass(frozen=True, repr=False)
class Measured:
    """One run in figures.

    Parameters
    ----------
    figures
        By name, unit last; `Missing` where a figure cannot be shown.
    latency_ns
        int64[delivered]: the latencies after warm-up, in order of arrival.
    outline_ns
        The latencies of issued requests after warm-up, in short; see `sim.statistics.proportion.outline`.
    requests, dropped
        How many requests there were, and how many of them the warm-up left out.
    note
        What the warm-up has to say, if anything.
    backlog
        How the number of active requests went through the arrivals.
    work_ns, arrival_span_ns
        All service time, and the time from the start of the run to its last arrival.
    active_mean
        The time-average of active requests from the start of the run to its last completion.
    periods
        Figures of each period of a load that changes.
    checks
        What the checks of the run counted.
    workloads
        Figures of each workload, where there are several.
    """

    figures: Figures
    latency_ns: IntArray
    outline_ns: IntArray
    requests: int
    dropped: int
    note: str | None
    backlog: Backlog
    work_ns: int
    arrival_span_ns: int
    active_mean: Value
    periods: tuple["MeasuredPeriod", ...]
    checks: CheckReport
    workloads: tuple["MeasuredWorkload", ...]


@dataclass(frozen=True, repr=False)
class MeasuredWorkload:
    """Figures of one of several workloads: `latency_ns` is int64[delivered], in order of arrival.

    `outline_ns` is as for a run; `requests` is how many it had, those that the warm-up left out too.
    """

    name: str
    figures: Figures
    latency_ns: IntArray
    outline_ns: IntArray
    requests: int


@dataclass(frozen=True, repr=False)
class MeasuredPeriod:
    """Figures of the requests that arrived within a period, and of its slots and backlog."""

    period: Period
    figures: Figures
    outline_ns: IntArray
    backlog: Backlog


def measure(scenario: Scenario, run: Run) -> Measured:
    """Return the figures of a run, those after the warm-up; requests are left out by arrival."""
    out = run.out
    dropped, note = warm_up(scenario, out)
    kept = np.arange(out.requests) >= dropped
    micros = costs_micros(scenario, out)
    work_ns = run.busy_ns(0, out.horizon_ns)
    return Measured(
        figures={
            **request_figures(out, micros, kept),
            **(attainment(scenario, out, kept) if len(scenario.parts) == 1 else {}),
            **window_figures(run, dropped),
            **attempt_figures(scenario, run, kept),
            **(follow_up_figures(scenario, run, 0) if len(scenario.parts) == 1 else {}),
        },
        latency_ns=out.latency_ns[kept & out.delivered],
        outline_ns=outline_of(out, kept),
        requests=out.requests,
        dropped=dropped,
        note=note,
        backlog=backlog(out.arrival_ns, out.completion_ns),
        work_ns=work_ns,
        arrival_span_ns=int(out.arrival_ns.max(initial=0)),
        active_mean=ratio(sum(out.active_integral_ns), out.horizon_ns),
        periods=tuple(measure_period(scenario, run, micros, period) for period in scenario.periods),
        workloads=measure_workloads(scenario, run, micros, kept),
        checks=run.checks,
    )


def warmup_rule(scenario: Scenario) -> WarmupRule:
    """Return what the statistics leave out: what the scenario states, else what suits its load.

    A closed load starts with all its users asking at once, an open load with an empty provider; neither is
    the steady state that their means stand for, so that with random times or arrivals MSER-5 (`auto`) finds
    where the start ends. Where nothing is random every request counts: the path repeats itself, and there is
    no noise for MSER-5 to tell a start from. Traces, steps and profiles change as they go, and their start is
    part of what they show.
    """
    stated = scenario.experiment.warmup
    if stated is not None:
        return stated
    steady = isinstance(scenario.load, ClosedLoad | OpenLoad)
    return "auto" if steady and not is_deterministic(scenario) else "none"


def warm_up(scenario: Scenario, out: RunOutput) -> tuple[int, str | None]:
    """Return how many requests to leave out at the start, and a note where that is in doubt."""
    warmup = warmup_rule(scenario)
    if warmup == "none" or out.requests == 0:
        return 0, None
    if isinstance(warmup, WarmupCut):
        if warmup.time_s is not None:
            dropped = int(np.searchsorted(out.arrival_ns, s_to_ns(warmup.time_s)))
        else:
            dropped = min(out.requests, warmup.count or 0)
        return dropped, "the warm-up leaves no request" if dropped == out.requests else None
    dropped = mser5(out.latency_ns.astype(np.float64))
    too_short = 0 < mser5_limit(out.requests) <= dropped
    return dropped, "the run is too short to tell where its start-up ends" if too_short else None


def request_figures(out: RunOutput, micros: FloatArray, kept: BoolArray) -> Figures:
    """Return what the kept requests experienced and cost.

    A request that was not delivered is later than any other. Waits are those of delivered requests; what a
    request cost is paid whether or not it was.
    """
    requests, delivered = int(kept.sum()), kept & out.delivered
    of_delivered = time_figures(named.DELIVERED_LATENCY, out.latency_ns[delivered])
    paid_micros = float(micros[kept].sum())
    return {
        named.REQUESTS: float(requests),
        **latency_figures(out.latency_ns[delivered], requests - int(delivered.sum()), of_delivered),
        **of_delivered,
        **time_figures(named.WAITING, waiting_ns(out, delivered)),
        named.COST_PER_REQUEST: ratio(paid_micros, requests),
        named.COST_PER_SUCCESS: ratio(paid_micros, int(delivered.sum())),
        named.PARALLEL_SHARE: ratio(int(out.ran_parallel[kept].sum()), requests),
        **{
            name: ratio(int((kept & (out.outcome == outcome)).sum()), requests)
            for outcome, name in enumerate(named.OUTCOME_SHARES)
        },
    }


def latency_figures(delivered_ns: IntArray, undelivered: int, of_delivered: Figures) -> Figures:
    """Return the latencies of issued requests, which are those of the delivered ones where all are."""
    if undelivered:
        return time_figures(named.LATENCY, delivered_ns, undelivered)
    return dict(zip(named.levels_of(named.LATENCY), of_delivered.values(), strict=True))


def outline_of(out: RunOutput, kept: BoolArray) -> IntArray:
    """Return the latencies of the kept requests in short, those not delivered as later than any."""
    delivered_ns = out.latency_ns[kept & out.delivered]
    return outline(delivered_ns, int(kept.sum()) - len(delivered_ns))


def waiting_ns(out: RunOutput, of_request: BoolArray) -> IntArray:
    """Return how long the attempts that counted waited, of the requests asked for (int64[attempts])."""
    attempts, found = out.attempts, 0
    waits_ns = np.empty(len(attempts.number), dtype=np.int64)
    for rows in stretches(len(waits_ns)):
        wanted = out.counted[rows] & of_request[attempts.number[rows]]
        some_ns = (attempts.start_ns[rows] - attempts.ready_ns[rows])[wanted]
        waits_ns[found : found + len(some_ns)] = some_ns
        found += len(some_ns)
    return waits_ns[:found]


def attainment(scenario: Scenario, out: RunOutput, kept: BoolArray) -> Figures:
    """Return the share of the kept requests delivered within each latency that a workload's SLO names."""
    latency_ns = out.latency_ns[kept & out.delivered]
    return {
        share_within(bound): ratio(int((latency_ns <= bound * NS_PER_MS).sum()), int(kept.sum()))
        for bound in latency_bounds(scenario.slo)
    }


def window_figures(run: Run, dropped: int) -> Figures:
    """Return what the run did with the provider after the warm-up, while requests arrived."""
    start_ns, end_ns = window_of(run.out, dropped)
    return {
        named.UTILISATION: utilisation(run, start_ns, end_ns),
        named.THROUGHPUT: ratio(ended_within(run.out, start_ns, end_ns) * NS_PER_S, end_ns - start_ns),
        named.ACTIVE_REQUESTS: ratio(active_ns(run.out, start_ns, end_ns), end_ns - start_ns),
    }


def window_of(out: RunOutput, dropped: int) -> tuple[int, int]:
    """Return the arrivals of the first request kept and of the last one, ns.

    The time before is a start, and the time after an end, during which fewer and fewer requests are left.
    Requests that all arrive at one instant leave nothing between: theirs is the time until the last one ends.
    """
    arrival_ns = out.arrival_ns[dropped:]
    if len(arrival_ns) == 0:
        return 0, 0
    start_ns, end_ns = int(arrival_ns[0]), int(arrival_ns[-1])
    return start_ns, end_ns if end_ns > start_ns else out.horizon_ns


def utilisation(run: Run, start_ns: int, end_ns: int) -> Value:
    """Return the share of slot-time in use between two instants."""
    return ratio(run.busy_ns(start_ns, end_ns), run.available_ns(start_ns, end_ns))


def ended_within(out: RunOutput, start_ns: int, end_ns: int) -> int:
    """Return how many requests ended in (from, to], answered or not: at an instant, ends come first."""
    return int(((out.completion_ns > start_ns) & (out.completion_ns <= end_ns)).sum())


def active_ns(out: RunOutput, start_ns: int, end_ns: int) -> int:
    """Return active requests x time between two instants."""
    lefts = np.clip(out.completion_ns, start_ns, end_ns)
    return sum_exact(lefts - np.clip(out.arrival_ns, start_ns, end_ns))


def attempt_figures(scenario: Scenario, run: Run, kept: BoolArray) -> Figures:
    """Return how many attempts the kept requests made, and what the cache served.

    A plain scenario makes one attempt at each call, and has no such figures.
    """
    if scenario.is_plain:
        return {}
    attempts = run.out.attempts
    of_kept = kept[attempts.number]
    made, calls = int(of_kept.sum()), int((of_kept & (attempts.attempt == 0)).sum())
    carried, read = (int((of_kept & (attempts.hit >= least)).sum()) for least in (0, 1))
    rejected = int((of_kept & (attempts.outcome == REJECTED)).sum())
    figures: Figures = {
        named.ATTEMPTS_PER_CALL: ratio(made, calls),
        named.REJECTED_SHARE: ratio(rejected, made),
    }
    return figures | ({named.PREFIX_REUSE: ratio(read, carried)} if carried else {})


def slot_share(run: Run, workload: int) -> Value:
    """Return a workload's share of all slot-time in use."""
    attempts = run.out.attempts
    held_ns = np.where(attempts.slot != NO_SLOT, attempts.finish_ns - attempts.start_ns, 0)
    mine = run.out.workload[attempts.number] == workload
    return ratio(sum_exact(held_ns[mine]), sum_exact(held_ns))


def measure_workloads(
    scenario: Scenario, run: Run, micros: FloatArray, kept: BoolArray
) -> tuple[MeasuredWorkload, ...]:
    """Return the figures of each of several workloads."""
    if len(scenario.parts) == 1:
        return ()
    measured = []
    for index, part in enumerate(scenario.parts):
        mine = kept & (run.out.workload == index)
        figures = {
            **request_figures(run.out, micros, mine),
            **attainment(part, run.out, mine),
            **attempt_figures(scenario, run, mine),
            **follow_up_figures(part, run, index),
            named.SLOT_SHARE: slot_share(run, index),
        }
        measured.append(
            MeasuredWorkload(
                part.part_name,
                figures,
                run.out.latency_ns[mine & run.out.delivered],
                outline_of(run.out, mine),
                int((run.out.workload == index).sum()),
            )
        )
    return tuple(measured)


def measure_period(scenario: Scenario, run: Run, micros: FloatArray, period: Period) -> MeasuredPeriod:
    """Return the figures of the requests that arrived in [from, to), and of slots and backlog meanwhile."""
    out, start_ns, end_ns = run.out, s_to_ns(period.from_s), s_to_ns(period.to_s)
    arrived = (out.arrival_ns >= start_ns) & (out.arrival_ns < end_ns)
    completed = (out.completion_ns >= start_ns) & (out.completion_ns < end_ns)
    return MeasuredPeriod(
        period,
        {
            **request_figures(out, micros, arrived),
            **(attainment(scenario, out, arrived) if len(scenario.parts) == 1 else {}),
            named.UTILISATION: utilisation(run, start_ns, end_ns),
            named.THROUGHPUT: ratio(int(completed.sum()) * NS_PER_S, end_ns - start_ns),
            named.ACTIVE_AT_START: float(left_over_at(out, start_ns)),
            named.ACTIVE_AT_END: float(left_over_at(out, end_ns)),
        },
        outline_of(out, arrived),
        backlog(out.arrival_ns, out.completion_ns, start_ns, end_ns),
    )


def left_over_at(out: RunOutput, time_ns: int) -> int:
    """Return how many requests that arrived before `time_ns` had not completed before it."""
    return int((out.arrival_ns < time_ns).sum() - (out.completion_ns < time_ns).sum())
