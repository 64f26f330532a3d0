"""From a scenario's draws to what an engine needs: the graph, the plan at each fair share, the load."""

from collections.abc import Sequence

import numpy as np

from sim.contract.allocation import allocation_named
from sim.contract.plain import BoolArray, ClosedUsers, EngineInput, OpenArrivals
from sim.contract.plan import PLANS
from sim.draws.drawing import Draws
from sim.plan.criteria import Evaluation, evaluate_parallel, merging_shares
from sim.plan.schedule import serial_order
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, StepsLoad
from sim.scenario.model import PlanChoice, TabledChoice
from sim.units import s_to_ns


def engine_input(scenario: Scenario, plan: PlanChoice, draws: Draws) -> EngineInput:
    """Return what an engine needs to run `plan` on these draws."""
    workflow = scenario.workflow
    dependencies = scenario.parallel_plan(1).dependencies
    service_ns, join_ns = draws.service_ns, draws.join_ns
    order = serial_order(dependencies)
    if workflow.join_holds_slot:
        # A join that holds a slot is one more call, after all branches, and like every call it takes a while.
        service_ns = np.column_stack([service_ns, np.maximum(1, join_ns)])
        join_ns = np.zeros_like(join_ns)
        dependencies = (*dependencies, tuple(range(len(dependencies))))
    return EngineInput(
        slots=scenario.provider.concurrency,
        allocation=allocation_named(scenario.provider.allocation),
        service_ns=service_ns,
        join_ns=join_ns,
        dependencies=dependencies,
        serial_order=order,
        runs_parallel_at=runs_parallel_at(scenario, plan),
        load=engine_load(scenario, draws),
        max_degree=plan.max_degree,
    )


def engine_load(scenario: Scenario, draws: Draws) -> OpenArrivals | ClosedUsers:
    """Return the arrivals, or the users and when their number changes."""
    load = scenario.load
    if draws.arrival_ns is not None:
        return OpenArrivals(draws.arrival_ns)
    if isinstance(load, StepsLoad):
        steps = tuple((s_to_ns(step.at_s), step.active_requests or 0) for step in load.steps)
        return ClosedUsers(steps, draws.think_ns, s_to_ns(load.end_s))
    assert isinstance(load, ClosedLoad)
    return ClosedUsers(((0, load.active_requests),), draws.think_ns)


def runs_parallel_at(scenario: Scenario, plan: PlanChoice) -> BoolArray:
    """Return, for each fair share k that there can be, whether the plan runs a request in parallel.

    bool[slots + 1], with the most slots of all providers, added up.
    """
    slots = scenario.most_slots
    if isinstance(plan, TabledChoice):
        return share_table(plan.hours[0][1], slots)
    is_parallel = PLANS[plan.plan].is_parallel
    if is_parallel is not None:
        return np.full(slots + 1, is_parallel, dtype=np.bool_)
    # More slots than branches change nothing, so a thousand slots cost no more than a few.
    most = min(scenario.slots_at_hand, plan.max_degree or slots)
    criteria = scenario.criteria
    merges = merging_shares(
        scenario.parallel_plan(1), most, criteria.max_micros_per_saved_ms, criteria.min_marginal_gain_ratio
    )
    return share_table(merges, slots)


def share_table(merges: Sequence[bool], slots: int) -> BoolArray:
    """Return, for each fair share k (bool[slots + 1]), what is said of it; the last holds for all above."""
    table = np.array([False, *merges[:slots]], dtype=np.bool_)
    return np.pad(table, (0, slots + 1 - len(table)), mode="edge")


def evaluate(scenario: Scenario, concurrency: int) -> Evaluation:
    """Return the four criteria of the scenario's workflow, at its mean times, on `concurrency` slots."""
    return evaluate_parallel(
        scenario.parallel_plan(concurrency),
        scenario.criteria.max_micros_per_saved_ms,
        scenario.criteria.min_marginal_gain_ratio,
    )
