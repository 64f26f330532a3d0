"""The rule to put into production: serial or parallel, and on how many slots, by load and by the hour."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from importlib.metadata import version
from typing import Any

from sim.choose_plan import HOURS_PER_DAY, KIND, VERSION
from sim.contract.allocation import allocation_named
from sim.contract.plan import PARALLEL, SERIAL
from sim.errors import ArgumentError
from sim.plan.criteria import MERGE, Evaluation, evaluate_parallel
from sim.plan.share import share_spans
from sim.scenario import Scenario
from sim.scenario.model import TabledChoice
from sim.scenario.provider import PriceWindow
from sim.units import exact


@dataclass(frozen=True, slots=True)
class PolicyLevel:
    """Active requests from and to (None: no end), and what a request runs that arrives meanwhile."""

    active_from: int
    active_to: int | None
    plan: str
    max_degree: int
    reason: str


@dataclass(frozen=True, slots=True)
class PolicyHours:
    """Hours of the day with prices of their own; `merges` is for each fair share from 1 on."""

    from_hour: float
    to_hour: float
    price_ratio: float
    merges: tuple[bool, ...]
    levels: tuple[PolicyLevel, ...]


@dataclass(frozen=True)
class PolicyTable:
    """A policy: `max_degree` is the most slots that it ever lets a request hold, None where all may help."""

    scenario: Scenario
    slots: int
    max_degree: int | None
    hours: tuple[PolicyHours, ...]

    @property
    def choice(self) -> TabledChoice:
        """The plan that the simulation runs: the same decisions at the same shares and hours."""
        hours = tuple((one.from_hour, one.merges) for one in self.hours)
        return TabledChoice(max_degree=self.max_degree, hours=hours)

    def to_dict(self) -> dict[str, Any]:
        """Return what a service loads; see `sim.choose_plan`."""
        return {
            "kind": KIND,
            "version": VERSION,
            "scenario": self.scenario.name,
            "scenario_sha256": self.scenario.digest,
            "slotsim_version": version("slotsim"),
            "workflow": self.scenario.workflow.name,
            "slots": self.slots,
            "allocation": ", ".join(allocations(self.scenario)),
            "hours": [hours_summary(one) for one in self.hours],
        }


def hours_summary(hours: PolicyHours) -> dict[str, Any]:
    """Return the hours of one price as plain data."""
    stated = asdict(replace(hours, merges=()))
    del stated["merges"]
    return {**stated, "levels": list(stated["levels"])}


def policy_table(scenario: Scenario) -> PolicyTable:
    """Return the policy of a scenario, by the four criteria at each fair share and at each hour's prices.

    Raises
    ------
    ArgumentError
        The scenario has several workloads, slots that change, or providers with prices that differ.
    """
    slots, windows = checked(scenario)
    edges = sorted({0.0, *(edge for one in windows for edge in (one.from_hour, one.to_hour % HOURS_PER_DAY))})
    ends = [*edges[1:], float(HOURS_PER_DAY)]
    ratios = [ratio_at(windows, edge) for edge in edges]
    most = scenario.slots_at_hand
    degree = most_degree(scenario, ratios, most)
    hours = tuple(
        hours_of(scenario, from_hour, to_hour, ratio, degree)
        for from_hour, to_hour, ratio in zip(edges, ends, ratios, strict=True)
    )
    return PolicyTable(scenario, slots, None if degree == most else degree, hours)


def checked(scenario: Scenario) -> tuple[int, Sequence[PriceWindow]]:
    """Return the slots of the providers that the branches call, added up, and the price windows."""
    if len(scenario.parts) > 1:
        raise ArgumentError("workloads", "must be one for a policy", len(scenario.parts))
    providers = list(scenario.used_providers.values())
    for provider in providers:
        if provider.concurrency_steps:
            raise ArgumentError(
                "concurrency_steps", "must be left out for a policy", len(provider.concurrency_steps)
            )
        if provider.prices != providers[0].prices:
            raise ArgumentError(
                "prices", "must be the same at every provider for a policy", len(provider.prices)
            )
    return sum(one.slots for one in scenario.called_providers), providers[0].prices


def allocations(scenario: Scenario) -> list[str]:
    """Return who gets a free slot at the providers that the branches call, each rule once."""
    return sorted({provider.allocation for provider in scenario.branch_providers.values()})


def holds_to_share(scenario: Scenario) -> bool:
    """Return whether no request may hold more than its fair share, by number, at any provider it calls."""
    rules = [allocation_named(name) for name in allocations(scenario)]
    return all(rule.by_share and not rule.by_weight for rule in rules)


def ratio_at(windows: Sequence[PriceWindow], hour: float) -> float:
    """Return the factor of every price at an hour of the day."""
    inside = (one.ratio for one in windows if any(start <= hour < end for start, end in one.spans))
    return next(inside, 1.0)


def evaluation_at(scenario: Scenario, share: int, price_ratio: float) -> Evaluation:
    """Return the four criteria at a fair share, with every price multiplied.

    Paying r times as much is as dear as allowing 1/r of the price; so no price has to be rounded.
    """
    plan, criteria = scenario.parallel_plan(share), scenario.criteria
    limit = exact(criteria.max_micros_per_saved_ms)
    if price_ratio == 0:
        plan = replace(plan, input_micros_per_ktok=0)
    else:
        limit /= exact(price_ratio)
    return evaluate_parallel(plan, Fraction(limit), criteria.min_marginal_gain_ratio)


def most_degree(scenario: Scenario, ratios: Sequence[float], most: int) -> int:
    """Return the highest recommended degree of any price, unless fewer slots than that change a decision."""
    shares = range(1, most + 1)
    found = [evaluation_at(scenario, share, ratio) for ratio in ratios for share in shares]
    degree = max(one.recommended_degree for one in found)
    limited = [evaluation_at(scenario, min(share, degree), ratio) for ratio in ratios for share in shares]
    same = [one.decision for one in found] == [one.decision for one in limited]
    return degree if same and degree > 1 else most


def hours_of(
    scenario: Scenario, from_hour: float, to_hour: float, price_ratio: float, degree: int
) -> PolicyHours:
    """Return the levels between two hours of the day."""
    shares = range(1, scenario.slots_at_hand + 1)
    found = [evaluation_at(scenario, min(share, degree), price_ratio) for share in shares]
    levels = tuple(joined(list(share_levels(scenario, found, degree))))
    merges = tuple(one.decision == MERGE for one in found)
    return PolicyHours(from_hour, to_hour, price_ratio, merges, levels)


def share_levels(scenario: Scenario, found: Sequence[Evaluation], degree: int) -> Iterator[PolicyLevel]:
    """Yield what each fair share runs, the largest share and so the fewest active requests first."""
    for share, active_from, active_to in share_spans(scenario.called_providers):
        one = found[share - 1]
        if one.decision != MERGE:
            yield PolicyLevel(active_from, active_to, SERIAL, 1, one.reason)
        else:
            capped = share if holds_to_share(scenario) else len(found)
            yield PolicyLevel(active_from, active_to, PARALLEL, min(capped, degree), one.reason)


def joined(levels: Sequence[PolicyLevel]) -> Iterator[PolicyLevel]:
    """Yield the levels, neighbours that run the same as one, with the reason of the first."""
    before: PolicyLevel | None = None
    for level in levels:
        if before is not None and (before.plan, before.max_degree) == (level.plan, level.max_degree):
            before = replace(before, active_to=level.active_to)
            continue
        if before is not None:
            yield before
        before = level
    if before is not None:
        yield before
