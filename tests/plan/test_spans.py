"""Spans worked out where they matter give what the plain definitions give, with few schedules."""

import random
from collections.abc import Iterator
from fractions import Fraction

import pytest

from sim.plan import spans as module
from sim.plan.criteria import evaluate_parallel, marginal_gains, merging_shares, recommend_degree
from sim.plan.parallel_plan import Branch, ParallelPlan
from sim.plan.schedule import critical_path_ns, list_schedule
from sim.plan.spans import Spans, Worth, by_halves

Dependencies = tuple[tuple[int, ...], ...]
RATIOS = (Fraction(0), Fraction(1, 20), Fraction(1, 3))
WORTHS = [Worth(join, ratio) for join in (0, 1, 3) for ratio in RATIOS]
GRAHAM_NS, GRAHAM = (3, 2, 2, 2, 4, 4, 4, 4, 9), {8: (0,), **dict.fromkeys(range(4, 8), (3,))}
"""Nine branches that take 12 on three slots and 15 on four (R. L. Graham, 1969)."""

Request = tuple[tuple[int, ...], Dependencies]


def requests(count: int, *, dependent: bool, longest: int = 12) -> Iterator[Request]:
    """Yield small random requests, the same ones every time; with dependencies half are close to Graham's."""
    rng = random.Random(count + dependent)
    for number in range(count):
        if dependent and number % 2:
            service = tuple(max(1, time + rng.choice([-1, 0, 0, 0, 1])) for time in GRAHAM_NS)
            yield service, tuple(GRAHAM.get(branch, ()) for branch in range(9))
            continue
        branches = rng.randint(1, 12)
        service = tuple(rng.choice([1, 2, 3, rng.randint(1, longest)]) for _ in range(branches))
        order = rng.sample(range(branches), branches)
        needed: list[tuple[int, ...]] = [()] * branches
        for place, branch in enumerate(order):
            if dependent and place and rng.random() < 0.7:
                needed[branch] = tuple(rng.sample(order[:place], rng.randint(1, min(3, place))))
        yield service, tuple(needed)


def spans_by_definition(service: tuple[int, ...], dependencies: Dependencies) -> list[int]:
    return [list_schedule(service, dependencies, slots).span_ns for slots in range(1, len(service) + 1)]


def degree_by_definition(spans: list[int], most: int, worth: Worth) -> int:
    """Return the recommended degree as the contract has it, every gain looked at."""
    degree = 1
    while degree < most:
        before = spans[degree - 1]
        gain, best = max(
            (Fraction(before - spans[k - 1], k - degree), -k) for k in range(degree + 1, most + 1)
        )
        if gain <= worth.join_ns or gain < worth.least_ratio * (before + worth.join_ns):
            break
        degree = -best
    return degree


def wide(branches: int, kind: str) -> tuple[tuple[int, ...], Dependencies]:
    rng = random.Random(branches)
    service = tuple(rng.randint(50, 300) * 1_000_000 for _ in range(branches))
    if kind == "independent":
        return service, ((),) * branches
    if kind == "chain":
        return service, tuple((call - 1,) if call else () for call in range(branches))
    return service, tuple(
        tuple(rng.sample(range(max(0, call - 200), call), min(call, rng.randint(0, 3))))
        for call in range(branches)
    )


def plan_of(service_ns: tuple[int, ...], dependencies: Dependencies, join_ms: float = 35) -> ParallelPlan:
    branches = [
        Branch(
            f"b{place}",
            time_ns // 1_000_000,
            carries_shared_context=place < 3,
            depends_on=[f"b{call}" for call in dependencies[place]],
        )
        for place, time_ns in enumerate(service_ns)
    ]
    return ParallelPlan(branches, 50, join_ms, 3200, 250, 0.6, 0.1)


class Counter:
    """Counts schedules."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.schedules = 0
        scheduled = Spans._scheduled
        module.spans_of.cache_clear()

        def counted(spans: Spans, slots: int) -> int:
            self.schedules += 1
            return scheduled(spans, slots)

        monkeypatch.setattr(Spans, "_scheduled", counted)


@pytest.mark.parametrize("dependent", [False, True])
def test_spans_are_the_list_schedulers(dependent: bool) -> None:
    for service, dependencies in requests(2000, dependent=dependent):
        wanted = spans_by_definition(service, dependencies)
        found = Spans(service, dependencies)
        assert found.critical_ns == critical_path_ns(service, dependencies)
        assert list(found.all()) == wanted
        for slots, span_ns in enumerate(wanted, start=1):
            assert found.least(slots) <= span_ns <= found.most(slots)
            assert Spans(service, dependencies).at(slots) == span_ns
        assert found.at(len(service) + 5) == wanted[-1]


@pytest.mark.parametrize("dependent", [False, True])
def test_the_recommended_degree_is_that_of_the_definition(dependent: bool) -> None:
    anomalies = 0
    for number, (service, dependencies) in enumerate(requests(3000, dependent=dependent)):
        wanted = spans_by_definition(service, dependencies)
        anomalies += wanted != sorted(wanted, reverse=True)
        worth = WORTHS[number % len(WORTHS)]
        for most in range(1, len(service) + 1):
            found = Spans(service, dependencies)
            degree = degree_by_definition(wanted, most, worth)
            assert found.recommended(most, worth) == degree
            first = found.first_worth(most, worth)
            assert (degree >= 2) == (first is not None)
            assert first is None or degree_by_definition(wanted, first - 1, worth) == 1
    # More slots are now and then slower, but only with dependencies.
    assert (anomalies > 100) == dependent


@pytest.mark.parametrize("limit", [Fraction(0), Fraction(1, 2), 4, 1000])
def test_merging_shares_are_those_of_the_evaluations(limit: Fraction) -> None:
    different = set()
    for dependent in (False, True):
        for service, dependencies in requests(150, dependent=dependent, longest=200):
            plan = plan_of(tuple(20_000_000 * time for time in service), dependencies)
            most = len(service) + 2
            alone = [
                ParallelPlan(plan.branches, slots, 35, 3200, 250, 0.6, 0.1) for slots in range(1, most + 1)
            ]
            wanted = tuple(evaluate_parallel(one, limit).decision == "merge" for one in alone)
            assert merging_shares(plan, most, limit) == wanted
            different |= set(wanted)
    assert different == ({False} if limit == 0 else {False, True})


@pytest.mark.parametrize(("kind", "most"), [("independent", 40), ("chain", 0), ("random", 40)])
def test_a_decision_takes_few_schedules(kind: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter(monkeypatch)
    plan = plan_of(*wide(1000, kind))
    evaluation = evaluate_parallel(plan)
    assert merging_shares(plan, 50)[-1] == (evaluation.decision == "merge")
    assert recommend_degree(plan) == evaluation.recommended_degree
    assert counter.schedules <= most
    assert (evaluation.recommended_degree > 10) == (kind != "chain")


@pytest.mark.parametrize("kind", ["independent", "chain", "random"])
def test_every_gain_takes_one_schedule_for_each_number_of_slots_that_matters(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = Counter(monkeypatch)
    service, dependencies = wide(300, kind)
    gains = marginal_gains(plan_of(service, dependencies, join_ms=0))
    spans = spans_by_definition(service, dependencies)
    assert [gain.make_span_ms for gain in gains] == [span_ns / 1_000_000 for span_ns in spans]
    assert counter.schedules < {"independent": 300, "chain": 1, "random": 150}[kind]


def test_numbers_by_halves() -> None:
    assert list(by_halves(1, 1)) == [1]
    assert list(by_halves(3, 4)) == [3, 4]
    assert list(by_halves(1, 9)) == [1, 9, 5, 3, 7, 2, 4, 6, 8]
