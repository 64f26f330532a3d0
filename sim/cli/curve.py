"""Levels of load around those of a report's scenarios, for its curve of latency against load."""

from collections.abc import Sequence

from sim.answers.comparison import differ_in_active_requests_alone
from sim.cli.experiments import Levels
from sim.draws.drawing import is_closed
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, OpenLoad, StepsLoad

MOST_LEVELS = 16
BEYOND_SLOTS = 1.5
SHARES_OF_CAPACITY = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.05)
REQUESTS_PER_USER = 40
OPEN_REQUESTS = 2_000
MOST_USERS = 2_000
"""Users of all levels together; more would take longer than the scenarios themselves."""
MOST_CALLS = 1_000_000
"""Calls of a plan at all levels together, for the same reason."""


def curve_levels(scenarios: Sequence[Scenario]) -> Levels | None:
    """Return the levels to simulate; None where the scenarios are not points on one curve, or too large."""
    first, *others = scenarios
    several = len(first.parts) > 1 or len(first.providers) > 1
    if several or not all(differ_in_active_requests_alone(first, other) for other in others):
        return None
    branches = len(first.workflow.branches)
    if is_closed(first):
        users = user_levels(scenarios)
        few = sum(users) <= MOST_USERS and sum(users) * REQUESTS_PER_USER * branches <= MOST_CALLS
        return levels_of(first, active=users) if few else None
    if not isinstance(first.load, OpenLoad):
        return None
    rates = rate_levels(first)
    return levels_of(first, rates=rates) if len(rates) * OPEN_REQUESTS * branches <= MOST_CALLS else None


def levels_of(scenario: Scenario, active: Sequence[int] = (), rates: Sequence[float] = ()) -> Levels:
    """Return levels under the scenario's own allocation, in runs that are short enough to wait for."""
    return Levels(
        tuple(active), tuple(rates), (scenario.provider.allocation,), REQUESTS_PER_USER, OPEN_REQUESTS
    )


def user_levels(scenarios: Sequence[Scenario]) -> list[int]:
    """Return users: those of the scenarios, those where the fair share changes, some in between."""
    slots = scenarios[0].provider.concurrency
    branches = len(scenarios[0].workflow.branches)
    stated = {level for scenario in scenarios for level in users_of(scenario)}
    changes = {slots // share + more for share in range(1, min(slots, branches) + 1) for more in (0, 1)}
    most = max(round(BEYOND_SLOTS * slots), *stated)
    between = {max(1, round(most * part / MOST_LEVELS)) for part in range(1, MOST_LEVELS + 1)}
    few = sorted(changes)[-MOST_LEVELS:]
    return sorted(stated | set(few) | {level for level in between if level > 0})


def users_of(scenario: Scenario) -> set[int]:
    """Return the numbers of users of a closed load."""
    load = scenario.load
    if isinstance(load, ClosedLoad):
        return {load.active_requests}
    assert isinstance(load, StepsLoad)
    return {step.active_requests for step in load.steps if step.active_requests}


def rate_levels(scenario: Scenario) -> list[float]:
    """Return rates along the capacity of the slots, and the scenario's own."""
    assert isinstance(scenario.load, OpenLoad)
    capacity_per_s = scenario.provider.concurrency * 1000 / sum(scenario.branch_means_ms)
    around = {round(share * capacity_per_s, 6) for share in SHARES_OF_CAPACITY}
    return sorted(around | {scenario.load.rate_per_s})
