"""Inputs that the plan arithmetic does not know: failures and arrival rates, judged on simulated savings."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sim.contract.plan import FIXED_PLANS
from sim.draws.drawing import is_deterministic
from sim.plan.criteria import KEEP_SERIAL, MERGE
from sim.result.experiment import simulate
from sim.run.backend import Crew, Workers
from sim.scenario import Scenario
from sim.scenario.failures import CAUSES, Failures
from sim.scenario.load import OpenLoad
from sim.statistics.stability import OVERLOADED

LEAST_REPLICATIONS = 5
FACTORS_UP = (1.25, 1.6, 2.0, 3.0, 5.0, 10.0)
SHARES_DOWN = (0.75, 0.5, 0.25, 0.0)
BISECTIONS = 5
LEAST_RATE_SHARE = 0.01
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Judged:
    """What a scenario measured: the decision on serial against parallel, and what it rests on.

    `active` is the mean number of active requests, at least 1.
    """

    decision: str
    saved_ms: float
    micros_per_saved_ms: float | None
    active: int


@dataclass(frozen=True)
class Simulated:
    """An input: what it is now, and how far it may go."""

    scenario: Scenario
    name: str
    path: str
    unit: str
    value: float
    low: float
    high: float

    def at(self, value: float) -> Scenario:
        """Return the scenario with another value."""
        return self.scenario.replace({self.path: value})

    def flips(self, here: Judged, judge: Callable[[Scenario], Judged]) -> list[tuple[float, float]]:
        """Return (a value that merges, a value that keeps serial) on either side, as close as can be told."""
        if here.decision not in (MERGE, KEEP_SERIAL):
            return []
        up = [min(self.high, self.value * factor) for factor in FACTORS_UP]
        down = [max(self.low, self.value * share) for share in SHARES_DOWN]
        sides = (self._flip(here.decision, list(dict.fromkeys(side)), judge) for side in (down, up))
        return [flip for flip in sides if flip is not None]

    def _flip(
        self, decision: str, way: list[float], judge: Callable[[Scenario], Judged]
    ) -> tuple[float, float] | None:
        before = self.value
        for after in way:
            found = judge(self.at(after)).decision
            if found == decision:
                before = after
            elif found == OVERLOADED:
                break  # nothing is decided beyond capacity
            elif found in (MERGE, KEEP_SERIAL):
                same, other = self._bisected(decision, before, after, judge)
                return (same, other) if decision == MERGE else (other, same)
        return None

    def _bisected(
        self, decision: str, same: float, other: float, judge: Callable[[Scenario], Judged]
    ) -> tuple[float, float]:
        for _ in range(BISECTIONS):
            middle = (same + other) / 2
            found = judge(self.at(middle)).decision
            if found not in (MERGE, KEEP_SERIAL):
                break
            same, other = (middle, other) if found == decision else (same, middle)
        return same, other


def judged_scenario(
    workers: Workers, engine: str, progress: Callable[[int], None] | None
) -> Callable[[Scenario], Judged]:
    """Return what simulates serial and parallel of a scenario and judges them."""
    crew = Crew(workers, engine, progress)

    def judge(scenario: Scenario) -> Judged:
        asked = scenario.replace({"plans": list(FIXED_PLANS)})
        count = 1 if is_deterministic(scenario) else max(LEAST_REPLICATIONS, scenario.experiment.replications)
        result = simulate(asked, replications=count, workers=workers, engine=engine)
        crew.count(1)
        decision, measured = result.decision, result.decision.measured
        saved_ms = math.nan if measured is None else measured.saved_ms
        extra = 0.0 if measured is None else measured.extra_cost_micros
        price = extra / saved_ms if saved_ms > 0 else None
        return Judged(decision.decision, saved_ms, price, result.plans[0].active_requests)

    return judge


def simulated_inputs(scenario: Scenario) -> list[Simulated]:
    """Return the inputs of a scenario that only simulation knows: failures that can happen, a rate."""
    return [*failure_inputs(scenario), *rate_inputs(scenario)]


def failure_inputs(scenario: Scenario) -> Iterator[Simulated]:
    """Yield each cause of failure that has a probability, of the workflow and of branches of their own."""
    workflow = scenario.workflow
    own = [(f"workflow.branches[{place}]", branch.failures) for place, branch in enumerate(workflow.branches)]
    for path, failures in [("workflow", workflow.failures), *own]:
        for cause in CAUSES if failures is not None else ():
            assert failures is not None
            now = getattr(failures, cause)
            if now > 0:
                where = scenario.key_path(f"{path}.failures.{cause}")
                name = f"failure rate, {cause.replace('_', ' ')}"
                yield Simulated(scenario, name, where, "%", now, 0.0, 1 - others(failures, cause))


def others(failures: Failures, cause: str) -> float:
    """Return how likely the other causes are together."""
    return float(sum(getattr(failures, other) for other in CAUSES if other != cause))


def rate_inputs(scenario: Scenario) -> Iterator[Simulated]:
    """Yield the arrival rate of an open load, as low as still lets one request be expected."""
    load = scenario.load
    if isinstance(load, OpenLoad):
        now, path = load.rate_per_s, scenario.key_path("load.rate_per_s")
        least = 0.0 if load.duration_s is None else (1 + ROUNDING) / load.duration_s
        low = min(now, max(LEAST_RATE_SHARE * now, least))
        yield Simulated(scenario, "arrival rate", path, "per s", now, low, 10 * now)
