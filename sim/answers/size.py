"""The smallest value that keeps an SLO, such as slots, or the largest, such as active requests.

Each verdict holds with 95 % confidence: a candidate is looked at after each doubling of its replications, and
the two-sided intervals of one look are as wide as it takes for all looks together to be wrong about it in 5 %
of cases at most (Bonferroni). How candidates are chosen is told in `sim.answers.size_search`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from sim.answers.candidate import Asked, choices_for, runner_for
from sim.answers.size_search import FOUND, GRID, NONE, Anomaly, NextSlot, Number, Search, SizePoint
from sim.errors import ArgumentError
from sim.result.binding import binding_lines
from sim.result.capacity import capacity_of
from sim.result.objective import MET
from sim.result.summary import provenance
from sim.run.backend import Workers
from sim.scenario import Scenario
from sim.scenario.rules import scope_fault
from sim.scenario.slo import SloRule, rule_from

CONFIDENCE = 0.95
LEAST_REPLICATIONS = 5
MOST_REPLICATIONS = 160


@dataclass(frozen=True)
class Sizing:
    """The answer, and everything that it rests on.

    Parameters
    ----------
    status
        `found`, `none` (every candidate looked at misses), or `undecided`.
    answer
        The smallest (or largest) value that was shown to keep all rules; None where there is none.
    by_theory
        The first value that bounds and theory do not rule out; None where they rule out all.
    in_doubt
        Values before the answer that the replications could not decide.
    """

    scenario: Scenario
    path: str
    values: tuple[Number, ...]
    largest: bool
    asked: Asked
    status: str
    answer: Number | None
    points: tuple[SizePoint, ...]
    anomalies: tuple[Anomaly, ...]
    in_doubt: tuple[Number, ...]
    by_theory: Number | None
    next_slot: NextSlot | None
    runs: int
    most_replications: int

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        rules = " and ".join(str(rule) for _, rule in self.asked.rules)
        low, high = min(self.values), max(self.values)
        which = "largest" if self.largest else "smallest"
        if self.status == FOUND:
            doubt = ", ".join(f"{value:g}" for value in self.in_doubt)
            ending = f"; {doubt} could not be decided" if doubt else ""
            return f"{self.answer:g} is the {which} {self.path} that meets {rules}{ending}"
        if self.status == NONE:
            looked = f"{len(self.points)} of {len(self.values)} values simulated"
            return f"none in the range {low:g} to {high:g} of {self.path} meets {rules} ({looked})"
        doubt = ", ".join(f"{value:g}" for value in self.in_doubt)
        return (
            f"cannot decide within {self.most_replications} replications whether {rules} holds at "
            f"{self.path} {doubt}"
        )

    @property
    def binding(self) -> list[str]:
        """What binds at the answer; without one, at the value that should do best."""
        value = self.values[-1] if self.answer is None else self.answer
        there = self.scenario.replace({self.path: value})
        found = [capacity_of(there, choice) for choice in choices_for(there, self.asked.plan)]
        return [f"at {self.path} {value:g}: {line}" for line in binding_lines(there, found)]

    @property
    def safe_from(self) -> Number | None:
        """The first value, as wanted, from which on every one that was simulated meets every rule."""
        least_wanted_first = self.points if self.largest else self.points[::-1]
        meeting = [point.value for point in takewhile(lambda point: point.verdict == MET, least_wanted_first)]
        return meeting[-1] if meeting else None

    def summary(self) -> dict[str, Any]:
        """Return the answer, the curve, and what they took as plain data."""
        return {
            **provenance(self.scenario),
            "vary": self.path,
            "from": min(self.values),
            "to": max(self.values),
            "candidates": len(self.values),
            "wanted": "largest" if self.largest else "smallest",
            "rules": [str(rule) for _, rule in self.asked.rules],
            "plan": self.asked.plan,
            "status": self.status,
            "answer": self.answer,
            "safe_from": self.safe_from,
            "sentence": self.sentence,
            "by_theory": self.by_theory,
            "in_doubt": list(self.in_doubt),
            "anomalies": [anomaly.summary() for anomaly in self.anomalies],
            "next_slot": self.next_slot.summary() if self.next_slot else None,
            "curve": [point.summary() for point in self.points],
            "confidence": CONFIDENCE,
            "confidence_of_one_look": self.asked.confidence,
            "most_replications": self.most_replications,
            "runs": self.runs,
        }

    def __repr__(self) -> str:
        return f"<Sizing of {self.scenario.name}: {self.sentence}>"


def size(
    scenario: Scenario,
    vary: str,
    values: Sequence[Number],
    *,
    slo: Sequence[str] = (),
    plan: str | None = None,
    largest: bool = False,
    slot_price_micros: float | None = None,
    most_replications: int = MOST_REPLICATIONS,
    workers: Workers = None,
    engine: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> Sizing:
    """Find the smallest or largest value that keeps every rule with 95 % confidence.

    Parameters
    ----------
    vary, values
        A key path such as `provider.concurrency`, and the values that it may take.
    slo
        Rules such as `latency_ms_p95 <= 400` or `peak:succeeded_share >= 0.99`; the scenario's unless given.
    plan
        The plan that has to keep them; the SLO's unless given, else the recommended one at each value.
    largest
        Look for the largest value: the most load, not the fewest slots.
    slot_price_micros
        What one slot costs for an hour.
    most_replications
        How many a candidate may take before its verdict is left open.
    workers, engine, progress
        As for `simulate`; progress counts runs.

    A rule is met when the whole two-sided interval keeps it, and missed when the whole interval breaks it.
    Deterministic scenarios take one run for each candidate.

    Raises
    ------
    ArgumentError, InputError
        No rule, a rule about nothing that the scenario has, or a value that it cannot have.
    """
    wanted = wanted_values(scenario, vary, values, largest)
    if most_replications < LEAST_REPLICATIONS:
        raise ArgumentError("most_replications", f"must be >= {LEAST_REPLICATIONS}", most_replications)
    looks = looks_of(scenario, most_replications)
    asked = Asked(rules_of(scenario, slo), plan, 1 - (1 - CONFIDENCE) / len(looks))
    runner = runner_for(scenario, asked, min(GRID, len(wanted)), looks[0], workers, engine)
    search = Search(scenario, vary, wanted, asked, looks, runner, progress)
    answer = search.find()
    next_slot = search.next_slot(answer, slot_price_micros) if answer is not None else None
    return Sizing(
        scenario=scenario,
        path=vary,
        values=wanted,
        largest=largest,
        asked=asked,
        status=search.status(answer),
        answer=None if answer is None else wanted[answer],
        points=search.points(),
        anomalies=tuple(search.anomalies()),
        in_doubt=search.in_doubt(answer),
        by_theory=search.by_theory(),
        next_slot=next_slot,
        runs=search.runs,
        most_replications=looks[-1],
    )


def wanted_values(
    scenario: Scenario, path: str, values: Sequence[Number], largest: bool
) -> tuple[Number, ...]:
    """Return the values in the order in which they are wanted; the scenario has to bear both ends."""
    wanted = tuple(sorted(set(values), reverse=largest))
    if not wanted:
        raise ArgumentError("values", "must have at least one value", list(values))
    for value in (wanted[0], wanted[-1]):
        scenario.replace({path: value})
    return wanted


def looks_of(scenario: Scenario, most: int) -> tuple[int, ...]:
    """Return after how many replications a candidate is looked at: doubling, up to the most."""
    looks = [min(most, max(LEAST_REPLICATIONS, scenario.experiment.replications))]
    while looks[-1] < most:
        looks.append(min(most, 2 * looks[-1]))
    return tuple(looks)


def rules_of(scenario: Scenario, slo: Sequence[str]) -> tuple[tuple[str, SloRule], ...]:
    """Return the rules asked for, else the scenario's, each with the workload that it is about."""
    if not slo:
        parts = (part for part in scenario.parts if part.slo is not None)
        rules = tuple((part.part_name, rule) for part in parts if part.slo for rule in part.slo.rules)
        if not rules:
            raise ArgumentError("slo", "must be given: the scenario has none", None)
        return rules
    periods = [period.name for period in scenario.periods]
    names = (*periods, *(part.part_name for part in scenario.parts))
    several = len(scenario.parts) > 1
    rules = tuple(("" if several else scenario.part_name, rule_from("slo", text)) for text in slo)
    for _, rule in rules:
        fault = scope_fault(rule, names, periods)
        if fault is not None:
            raise ArgumentError("slo", fault, str(rule))
    return rules
