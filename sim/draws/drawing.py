"""Draws: everything random about a run, as arrays, before an engine starts.

Each array comes from a stream of its own and is indexed by the request's position. So plans, allocations,
slot counts and engines meet the same requests (common random numbers), adding a branch changes no other
branch's times, and asking for more requests leaves the first ones as they were.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from sim.draws.arrivals import open_arrivals_ns, rate_arrivals_ns
from sim.draws.streams import Streams
from sim.errors import ArgumentError
from sim.plan.schedule import join_overhead_ms, schedule_plan
from sim.scenario import Scenario
from sim.scenario.distribution import Distribution, TokenDuration, TraceColumn, TraceTokens
from sim.scenario.load import ClosedLoad, OpenLoad, StepsLoad, TraceLoad
from sim.scenario.workflow import WorkflowBranch
from sim.units import FloatArray, IntArray, ms_array_to_ns, ms_to_ns

MORE_THAN_EXPECTED = 1.25


@dataclass(frozen=True, slots=True, repr=False)
class Draws:
    """The drawn times of n requests, int64 ns.

    Parameters
    ----------
    service_ns
        [n, branches], each >= 1.
    join_ns
        [n], growth included, each >= 0.
    think_ns
        [n], the think time after request i; zeros where nobody waits for the answer.
    arrival_ns
        [n], never decreasing; None for users, who arrive when their answer has come.
    """

    service_ns: IntArray
    join_ns: IntArray
    think_ns: IntArray
    arrival_ns: IntArray | None


def draw(scenario: Scenario, replication: int, requests: int | None = None) -> Draws:
    """Draw one replication (0-based) of a scenario.

    `requests` says how many where the load does not: the users of `steps` issue as many as their answers
    allow, so that a run may ask for more than were expected.

    Raises
    ------
    ArgumentError
        A number is given for a load that has its own.
    """
    if requests is not None and states_its_requests(scenario):
        raise ArgumentError("requests", f"must be left out for the load {scenario.load.kind}", requests)
    streams = Streams(scenario.experiment.seed, replication, scenario.part_name)
    arrival_ns = draw_arrivals(scenario, streams)
    count = requests or (expected_requests(scenario) if arrival_ns is None else len(arrival_ns))
    branches = scenario.workflow.branches
    return Draws(
        service_ns=np.column_stack([draw_service(scenario, branch, streams, count) for branch in branches]),
        join_ns=draw_join(scenario, streams, count),
        think_ns=draw_think(scenario, streams, count),
        arrival_ns=arrival_ns,
    )


def states_its_requests(scenario: Scenario) -> bool:
    """Return whether the load alone says how many requests there are, whatever the answers take."""
    return not (isinstance(scenario.load, StepsLoad) and scenario.load.is_closed)


def draw_arrivals(scenario: Scenario, streams: Streams) -> IntArray | None:
    """Return the arrivals of a load that does not wait (int64 ns), None for users who do."""
    load, stream = scenario.load, partial(streams.stream, "arrivals")
    if isinstance(load, TraceLoad):
        return scenario.trace.arrival_ns
    if isinstance(load, OpenLoad):
        return open_arrivals_ns(load, stream)
    return None if scenario.rates is None else rate_arrivals_ns(scenario.rates, stream)


def expected_requests(scenario: Scenario) -> int:
    """Return how many requests a run will have: what its load asks for, or a little more."""
    load = scenario.load
    if isinstance(load, TraceLoad):
        return len(scenario.trace.arrival_ns)
    if scenario.rates is not None:
        return math.ceil(scenario.rates.expected_count)
    if isinstance(load, ClosedLoad):
        return load.requests
    if isinstance(load, OpenLoad):
        return load.requests or math.ceil(load.rate_per_s * (load.duration_s or 0))
    assert isinstance(load, StepsLoad)
    ends_s = [step.at_s for step in load.steps[1:]] + [load.end_s]
    user_s = sum(
        (end - step.at_s) * (step.active_requests or 0) for step, end in zip(load.steps, ends_s, strict=True)
    )
    plan = scenario.parallel_plan(scenario.provider.concurrency)
    turn_ms = schedule_plan(plan).ideal_ms + load.think_time_ms.mean
    users = max(step.active_requests or 0 for step in load.steps)
    return users + math.ceil(MORE_THAN_EXPECTED * user_s * 1000 / turn_ms)


def draw_join(scenario: Scenario, streams: Streams, count: int) -> IntArray:
    """Return the join after each request's branches: its draw, and its growth per branch beyond two."""
    workflow = scenario.workflow
    growth_ms = join_overhead_ms(0, workflow.join_growth_ms_per_branch, len(workflow.branches))
    drawn_ms = draw_values(scenario, workflow.join_overhead_ms, streams, count, "join")
    return ms_array_to_ns(drawn_ms) + ms_to_ns(growth_ms)


def draw_think(scenario: Scenario, streams: Streams, count: int) -> IntArray:
    """Return the think time after each request; zeros where nobody waits for the answer."""
    load = scenario.load
    if not isinstance(load, ClosedLoad | StepsLoad):
        return np.zeros(count, dtype=np.int64)
    return ms_array_to_ns(draw_values(scenario, load.think_time_ms, streams, count, "think"))


def draw_service(scenario: Scenario, branch: WorkflowBranch, streams: Streams, count: int) -> IntArray:
    """Return the service times of a branch, at least 1 ns each."""
    drawn_ms = draw_values(scenario, branch.duration_ms, streams, count, "service", branch.id)
    return np.maximum(1, ms_array_to_ns(drawn_ms))


def draw_values(  # noqa: PLR0917  each is one part of the key of a stream
    scenario: Scenario,
    distribution: Distribution,
    streams: Streams,
    count: int,
    purpose: str,
    branch: str = "",
) -> FloatArray:
    """Return `count` values (float64, in the distribution's unit): drawn, or taken from the trace's rows."""
    if isinstance(distribution, TokenDuration):
        tokens = (
            draw_values(scenario, part, streams, count, f"{purpose}.{role}", branch)
            for role, part in (
                ("input_tokens", distribution.input_tokens),
                ("output_tokens", distribution.output_tokens),
            )
        )
        return distribution.service_ms(*tokens)
    if isinstance(distribution, TraceColumn):
        return scenario.trace.columns[distribution.column][:count]
    if isinstance(distribution, TraceTokens):
        return scenario.trace.columns[purpose.rpartition(".")[2]][:count]
    return distribution.draw(streams.stream(purpose, branch), count)


def is_deterministic(scenario: Scenario) -> bool:
    """Return whether nothing in any of its workloads is drawn at random."""
    return all(_part_is_deterministic(part) for part in scenario.parts)


def _part_is_deterministic(scenario: Scenario) -> bool:
    """Return whether nothing is drawn at random: fixed times, or times and arrivals from a trace's rows."""
    load = scenario.load
    random_arrivals = scenario.rates is not None or (isinstance(load, OpenLoad) and load.arrivals != "fixed")
    if random_arrivals or scenario.has_random_faults:
        return False
    return all(_is_given(part) for _, part in scenario.distributions())


def _is_given(distribution: Distribution) -> bool:
    # A duration made of tokens is as random as its token counts, which the scenario yields too.
    return isinstance(distribution, TokenDuration | TraceColumn | TraceTokens) or distribution.is_constant


def is_closed(scenario: Scenario) -> bool:
    """Return whether requests come from users who wait for their answers."""
    return isinstance(scenario.load, ClosedLoad) or (
        isinstance(scenario.load, StepsLoad) and scenario.load.is_closed
    )
