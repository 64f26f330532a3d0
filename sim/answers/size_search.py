"""The search for the first candidate that keeps an SLO, most wanted first, without trust in monotonicity.

All candidates meet the same draws. A coarse grid over the whole range shows where the verdict changes,
bisection finds the candidate, and its neighbours on both sides are looked at one by one: list scheduling has
anomalies, so that more slots can be slower, and a candidate before the one that bisection finds may do.
Replications are added where a verdict is in doubt and matters, and only there.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sim.answers.candidate import Asked, Candidate, HeldRule, Runner
from sim.answers.size_theory import bound_of, ruled_out
from sim.contract.figure import MEAN_DELIVERED_LATENCY, MEAN_LATENCY, THROUGHPUT
from sim.result.measured_decision import UNDECIDED
from sim.result.objective import MET, MISSED, subject_of
from sim.result.summary import difference_summary, plain
from sim.scenario import Scenario
from sim.scenario.slo import SloRule
from sim.statistics.interval import Difference, Estimate, paired_difference

FOUND, NONE = "found", "none"
GRID = 9
NEIGHBOURS = 8
SECONDS_PER_HOUR = 3600
WORSE_SHARE = 0.01
"""A figure that gets worse by less than this share, where it should get better, is no anomaly."""

Number = int | float


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A neighbour that should do better and does worse."""

    rule: SloRule
    value: Number
    figure: float
    worse_value: Number
    worse_figure: float

    @property
    def words(self) -> str:
        metric = self.rule.subject
        return (
            f"anomaly: {metric} is {self.figure:.1f} at {self.value:g} and {self.worse_figure:.1f} "
            f"at {self.worse_value:g}"
        )

    def summary(self) -> dict[str, Any]:
        """Return both neighbours as plain data."""
        return {
            "rule": str(self.rule),
            "value": self.value,
            "figure": self.figure,
            "worse_value": self.worse_value,
            "worse_figure": self.worse_figure,
        }


@dataclass(frozen=True, slots=True)
class SizePoint:
    """One candidate as far as it was simulated; `bounds` is what theory says of each rule's figure."""

    value: Number
    verdict: str
    rules: tuple[HeldRule, ...]
    bounds: tuple[tuple[str, float] | None, ...]
    latency_ms_mean: Estimate
    stability: str
    replications: int

    @property
    def reason(self) -> str:
        """Why rules are not met, each reason once; empty where the figures alone say it."""
        reasons = (held.reason for held in self.rules if held.verdict != MET)
        return "; ".join(dict.fromkeys(reason for reason in reasons if reason))

    def summary(self) -> dict[str, Any]:
        """Return the candidate as plain data."""
        bounds = (bound or (None, None) for bound in self.bounds)
        return {
            "value": self.value,
            "verdict": self.verdict,
            "reason": self.reason,
            "replications": self.replications,
            "stability": self.stability,
            MEAN_LATENCY: plain(self.latency_ms_mean.mean),
            "rules": [
                held.summary() | {"theory": kind, "theory_value": plain(value)}
                for held, (kind, value) in zip(self.rules, bounds, strict=True)
            ],
        }


@dataclass(frozen=True, slots=True)
class NextSlot:
    """What one more slot than at the answer is worth.

    `difference` is that of the mean latencies, with it minus without, in ms, paired by replication.
    `worth_micros_per_hour` is the time that all requests of an hour save, at the scenario's
    `criteria.max_micros_per_saved_ms`; `price_micros_per_hour` is None where slots have no price.
    """

    slots: int
    difference: Difference
    worth_micros_per_hour: float
    price_micros_per_hour: float | None

    @property
    def saved_ms(self) -> float:
        """How much sooner a request is answered; negative where it takes longer."""
        return -self.difference.mean

    @property
    def pays(self) -> bool | None:
        """Whether it is worth its price; None where it has none."""
        price = self.price_micros_per_hour
        return None if price is None else self.worth_micros_per_hour > price

    def summary(self) -> dict[str, Any]:
        """Return what the slot is worth as plain data."""
        return {
            "slots": self.slots,
            "saved_ms": plain(self.saved_ms),
            "difference_ms": difference_summary(self.difference),
            "worth_micros_per_hour": plain(self.worth_micros_per_hour),
            "price_micros_per_hour": self.price_micros_per_hour,
            "pays": self.pays,
        }


class Search:
    """The candidates in order, the most wanted first, and what is known of each."""

    def __init__(  # noqa: PLR0917  what a search is made of
        self,
        scenario: Scenario,
        path: str,
        values: Sequence[Number],
        asked: Asked,
        looks: tuple[int, ...],
        runner: Runner,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.scenario, self.path, self.values = scenario, path, values
        self.asked, self.looks, self.runner, self.progress = asked, looks, runner, progress
        self.known: dict[int, Candidate] = {}
        self.runs = 0

    def find(self) -> int | None:
        """Return the first candidate that is shown to meet every rule."""
        grid = self.grid()
        self.look(grid)
        first = next((place for place in grid if self.decided(place) == MET), None)
        if first is None:
            # The last should have done best; an anomaly may be beside it.
            last = len(self.values) - 1
            found = self.around(last)
            return found if self.decided(found) == MET else None
        before = [place for place in grid if place < first]
        found = self.bisect(before[-1], first) if before else first
        return self.around(found)

    def grid(self) -> list[int]:
        """Return places over the whole range, the first and the last included."""
        last = len(self.values) - 1
        return sorted({round(last * step / (GRID - 1)) for step in range(GRID)})

    def bisect(self, low: int, high: int) -> int:
        """Return a place that meets every rule, with one before it that does not."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.decided(middle) == MET else (middle, high)
        return high

    def around(self, found: int) -> int:
        """Return the first place that meets every rule after a look at the neighbours on both sides."""
        last = len(self.values) - 1
        while True:
            before = list(range(max(0, found - NEIGHBOURS), found))
            after = list(range(found + 1, min(last, found + NEIGHBOURS) + 1))
            self.look([*before, *after])
            for place in after:
                if not self.known[place].seems_met:
                    self.decided(place)
            better = [place for place in before if self.known[place].seems_met and self.decided(place) == MET]
            if not better:
                return found
            found = better[0]

    def look(self, places: Sequence[int]) -> None:
        """Give every candidate the replications of a first look, all runs together."""
        fresh = [place for place in places if place not in self.known]
        for place in fresh:
            self.known[place] = self.candidate(self.values[place])
        self.add([self.known[place] for place in fresh], self.looks[0])

    def candidate(self, value: Number, **more: Any) -> Candidate:
        """Return a value that nothing is known of."""
        scenario = self.scenario.replace({self.path: value, **more})
        return Candidate(value, scenario, self.asked, self.runner.choices)

    def add(self, candidates: Sequence[Candidate], replications: int) -> None:
        """Simulate what the candidates lack."""
        tasks = [one.tasks(replications) for one in candidates]
        measured = iter(self.runner.run([task for each in tasks for task in each]))
        for candidate, each in zip(candidates, tasks, strict=True):
            if each:
                candidate.add([next(measured) for _ in each])
        self.runs += sum(len(each) for each in tasks)
        if self.progress is not None:
            self.progress(self.runs)

    def decided(self, place: int) -> str:
        """Return the verdict of a candidate, with more replications as long as it is in doubt."""
        self.look([place])
        candidate = self.known[place]
        for look in self.looks[1:]:
            if candidate.verdict != UNDECIDED or candidate.is_deterministic:
                break
            if look > candidate.replications:
                self.add([candidate], look)
        return candidate.verdict

    def status(self, answer: int | None) -> str:
        """Return whether there is an answer, none, or none that could be shown."""
        if answer is not None:
            return FOUND
        return UNDECIDED if any(one.verdict == UNDECIDED for one in self.known.values()) else NONE

    def in_doubt(self, answer: int | None) -> tuple[Number, ...]:
        """Return the values before the answer whose verdict is open and whose mean keeps every rule."""
        before = (place for place in sorted(self.known) if answer is None or place < answer)
        return tuple(self.values[place] for place in before if self.known[place].verdict == UNDECIDED)

    def points(self) -> tuple[SizePoint, ...]:
        """Return what is known of each candidate, in ascending order of value."""
        return tuple(point(one) for one in sorted(self.known.values(), key=lambda one: one.value))

    def anomalies(self) -> Iterator[Anomaly]:
        """Yield the candidates that do worse than the one before them, rule by rule."""
        for (_, one), (_, other) in pairwise(sorted(self.known.items())):
            for mine, others in zip(one.rules, other.rules, strict=True):
                if is_worse(one, other, mine, others):
                    figures = mine.figure.mean, others.figure.mean
                    yield Anomaly(mine.rule, one.value, figures[0], other.value, figures[1])

    def by_theory(self) -> Number | None:
        """Return the first value that bounds do not rule out; they get looser from each value to the next."""
        low, high = -1, len(self.values) - 1
        if self.impossible(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.impossible(middle) else (low, middle)
        return self.values[high]

    def impossible(self, place: int) -> bool:
        """Return whether theory rules out that a candidate keeps a rule."""
        scenario = self.scenario.replace({self.path: self.values[place]})
        rules = [rule for _, rule in self.asked.rules]
        return all(any(ruled_out(scenario, choice, rule) for rule in rules) for choice in self.runner.choices)

    def next_slot(self, answer: int, price_micros: float | None) -> NextSlot:
        """Return what one more slot changes at the answer, on the same draws."""
        here = self.known[answer]
        path, slots = slots_of(here.scenario)
        there = self.candidate(here.value, **{path: slots + 1})
        self.add([there], here.replications)
        label = here.plan.label
        mine, other = here.plan, next(one for one in there.results if one.label == label)
        difference = paired_difference(
            mine.values[MEAN_DELIVERED_LATENCY],
            other.values[MEAN_DELIVERED_LATENCY],
            deterministic=here.is_deterministic,
        )
        requests_per_hour = mine.estimates[THROUGHPUT].mean * SECONDS_PER_HOUR
        worth = -difference.mean * self.scenario.criteria.max_micros_per_saved_ms * requests_per_hour
        return NextSlot(slots + 1, difference, worth, price_micros)


def slots_of(scenario: Scenario) -> tuple[str, int]:
    """Return the key path of the slots of the tightest provider, and how many it has."""
    name = scenario.tightest_provider
    return scenario.concurrency_path(name), scenario.providers[name].concurrency


def point(candidate: Candidate) -> SizePoint:
    """Return what is known of a candidate."""
    plan = candidate.plan
    return SizePoint(
        value=candidate.value,
        verdict=candidate.verdict,
        rules=candidate.rules,
        bounds=tuple(bound_of(one.rule, plan) for one in candidate.rules),
        latency_ms_mean=plan.estimates[MEAN_LATENCY],
        stability=plan.stability.label,
        replications=candidate.replications,
    )


def is_worse(one: Candidate, other: Candidate, mine: HeldRule, others: HeldRule) -> bool:
    """Return whether the other candidate, which should do better, is shown to do worse at a rule.

    Missing where the first is met counts whatever the size; else the difference has to be worth a mention.
    """
    if mine.verdict == MET and others.verdict == MISSED:
        return True
    subjects = [
        subject_of(mine.rule, next(plan for plan in each.results if plan.label == rule.plan), rule.workload)
        for each, rule in ((one, mine), (other, others))
    ]
    if subjects[0] is None or subjects[1] is None:
        return False
    values = [subject.values[mine.rule.metric] for subject in subjects if subject is not None]
    count = min(len(values[0]), len(values[1]))
    if count == 1 and not one.is_deterministic:
        return False
    difference = paired_difference(
        values[0][:count], values[1][:count], deterministic=one.is_deterministic and other.is_deterministic
    )
    grows = difference.mean if mine.rule.at_most else -difference.mean
    if math.isnan(grows) or grows <= WORSE_SHARE * abs(mine.figure.mean):
        return False
    return difference.half_width is None or grows > difference.half_width
