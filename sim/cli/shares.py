"""At which shares of the slots a scenario is decided by arithmetic alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sim.draws.run_input import evaluate
from sim.errors import ArgumentError
from sim.plan.criteria import Evaluation
from sim.plan.share import share_spans, usable_slots
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, StepsLoad


@dataclass(frozen=True, slots=True)
class Share:
    """The four criteria with as many slots as a request may hold.

    `active_from` and `active_to` (None: no end) are the active requests at which that is the fair share; both
    are None where the slots were given.
    """

    active_from: int | None
    active_to: int | None
    evaluation: Evaluation

    def summary(self, scenario: Scenario) -> dict[str, Any]:
        """Return the decision as plain data."""
        return {
            "scenario": scenario.name,
            "scenario_file": scenario.path,
            "workload": scenario.part_name,
            "active_requests_from": self.active_from,
            "active_requests_to": self.active_to,
            **self.evaluation.to_dict(),
        }


def shares(scenario: Scenario, active: int | None, slots: int | None) -> list[Share]:
    """Return the shares to decide at: those asked for, else those of the load's users.

    Where the load does not say how many requests are active, that is every share there can be.
    """
    if active is not None and slots is not None:
        raise ArgumentError("--slots", "must be left out where --active is given", slots)
    if slots is not None:
        return [Share(None, None, evaluate(scenario, slots))]
    levels = [active] if active is not None else users(scenario)
    if not levels:
        return list(every_share(scenario))
    called = scenario.called_providers
    return [Share(level, level, evaluate(scenario, usable_slots(called, level))) for level in levels]


def users(scenario: Scenario) -> list[int]:
    """Return the numbers of users of a closed load, ascending; none for other loads."""
    load = scenario.load
    if isinstance(load, ClosedLoad):
        return [load.active_requests]
    if isinstance(load, StepsLoad):
        return sorted({step.active_requests for step in load.steps if step.active_requests})
    return []


def every_share(scenario: Scenario) -> Iterator[Share]:
    """Yield each share from the greatest that makes a difference down to the least, and where it holds."""
    for slots, active_from, active_to in share_spans(scenario.called_providers):
        yield Share(active_from, active_to, evaluate(scenario, slots))
