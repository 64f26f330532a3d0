"""What binds, by hand, for every kind of constraint and of load; and what simulations use of it."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from sim.plan.constraint import Constraint
from sim.result.capacity import PlanCapacity, StretchCapacity, capacities, capacity_of
from sim.result.constraints import admitted_per_min
from sim.result.experiment import simulate
from sim.scenario import Scenario, load_scenario
from sim.scenario.model import TabledChoice
from tests.mixed_scenarios import mixed_case
from tests.small_scenarios import closed_load, from_file, open_load, sample

STEPS_DOWN = [{"at_s": 60, "concurrency": 16}]


def scenario(
    load: dict[str, Any],
    *,
    branches: Any = None,
    plans: Any = ("parallel",),
    workflow: Any = None,
    **provider: Any,
) -> Scenario:
    """Return a workflow of one call of a second and no join, unless told otherwise."""
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "small",
            "provider": {"concurrency": 20, **provider},
            "workflow": {
                "name": "one",
                "branches": branches or [{"id": "call", "duration_ms": 1000}],
                **(workflow or {}),
            },
            "load": load,
            "plans": list(plans),
        }
    )


def only(found: Scenario) -> StretchCapacity:
    (plan,) = capacities(found)
    (stretch,) = plan.stretches
    return stretch


def loads(stretch: StretchCapacity) -> dict[str, float]:
    return {one.name: one.load for one in stretch.constraints}


def bound(stretch: StretchCapacity) -> Constraint:
    assert stretch.binding is not None
    return stretch.binding


# One constraint of each kind


def test_slots_are_loaded_with_work() -> None:
    found = only(scenario(open_load(18, 100)))
    assert bound(found) == Constraint("slots", "provider", "slots", 18, 20)
    assert found.largest_rate_per_s(found.workloads[0]) == 20
    assert found.overloaded == found.to_buy(0.9) == ()


def test_a_limit_of_calls_binds_before_the_slots() -> None:
    """200 slots, 600 calls a minute, calls of a second, 11 per second: 10 can be sustained."""
    found = only(scenario(open_load(11, 300), concurrency=200, limits={"rpm": 600}))
    assert loads(found) == pytest.approx({"slots": 0.055, "rpm": 1.1})
    assert bound(found).name == "rpm"
    assert found.overloaded == (bound(found),)
    assert found.largest_rate_per_s(found.workloads[0]) == 10
    assert [(one.name, one.needed(0.9)) for one in found.to_buy(0.9)] == [("rpm", 734)]


def test_a_limit_of_tokens_binds_and_not_the_slots_that_it_lets_run() -> None:
    """2.3 million tokens a minute of 400,000: slots help nobody."""
    call = {
        "id": "call",
        "duration_ms": 400,
        "input_tokens": 1700,
        "output_tokens": 217,
        "max_output_tokens": 900,
    }
    found = only(scenario(open_load(20, 300), branches=[call], concurrency=10, limits={"tpm": 400_000}))
    assert bound(found).name == "tpm"
    assert bound(found).offered == pytest.approx(20 * 1917 * 60)
    assert bound(found).load == pytest.approx(5.751)
    assert [one.name for one in found.to_buy(0.9)] == ["tpm"]
    assert found.largest_rate_per_s(found.workloads[0]) == pytest.approx(400_000 / 60 / 1917)


def test_input_and_output_have_limits_of_their_own() -> None:
    call = {
        "id": "call",
        "duration_ms": 1000,
        "input_tokens": 300,
        "output_tokens": 50,
        "max_output_tokens": 500,
    }
    found = only(scenario(open_load(10, 300), branches=[call], limits={"itpm": 200_000, "otpm": 40_000}))
    assert [(one.name, one.unit, one.offered, one.capacity) for one in found.constraints[1:]] == [
        ("itpm", "tokens/min", 180_000, 200_000),
        ("otpm", "tokens/min", 30_000, 40_000),
    ]


@pytest.mark.parametrize(
    ("window_s", "counted", "reserved", "stated", "admitted"),
    [
        (60, 1, 1, 600, 600),
        (1, 1, 1, 90, 60),  # a call and a half in a second is one
        (1, 3000, 3000, 600_000, 540_000),  # three calls of 10,000 tokens
        (1, 2000, 5000, 600_000, 360_000),  # 2,000 + 2,000 leave room for one that reserves 5,000
        (1, 12_000, 12_000, 600_000, 720_000),  # an empty window admits any call
        (1, 1, 1, 59, 0),
        (60, 0, 0, 600, 600),
    ],
)
def test_windows_admit_whole_calls(
    window_s: float, counted: float, reserved: float, stated: int, admitted: float
) -> None:
    assert admitted_per_min(window_s, counted, reserved, stated) == admitted


def test_what_to_buy_of_a_window_is_counted_in_calls() -> None:
    window = {"rpm": 60, "enforcement": "sub_window", "sub_window_s": 1}
    found = only(scenario(open_load(1.5, 300), limits=window))
    assert bound(found).load == 1.5
    assert bound(found).needed(1.0) == 120


# Providers and workloads


def two_providers(rate_per_s: float) -> Scenario:
    branches = [
        {"id": "small", "duration_ms": 1000, "provider": "small"},
        {"id": "large", "duration_ms": 10, "provider": "large"},
    ]
    plain = scenario(open_load(rate_per_s, 300)).to_dict()
    del plain["provider"]
    plain["providers"] = {
        "small": {"concurrency": 5},
        "large": {"concurrency": 200},
        "idle": {"concurrency": 9},
    }
    plain["workflow"]["branches"] = branches
    return Scenario.model_validate(plain)


def test_providers_are_never_added_up() -> None:
    """5 slots at 130 %, 200 nearly idle: 205 slots would be at 3 %."""
    found = only(two_providers(6.5))
    assert [(one.provider, one.load) for one in found.constraints] == [
        ("small", 1.3),
        ("large", pytest.approx(0.000325)),
    ]
    assert bound(found).provider == "small"
    assert found.overloaded == (bound(found),)
    assert found.largest_rate_per_s(found.workloads[0]) == 5
    assert bound(found).needed(0.9) == 8


def test_workloads_add_up_at_each_provider_each_with_its_own_rate() -> None:
    serial, *_ = capacities(load_scenario("scenarios/mix-peak.yaml"))
    found = serial.stretches[0]
    assert bound(found).offered == pytest.approx(20 * 0.42 + 7 * 0.76 + 5 * 1.08)
    assert [found.largest_rate_per_s(one) for one in found.workloads] == pytest.approx(
        [rate / 0.956 for rate in (20, 7, 5)]
    )


def test_users_beside_arrivals_take_what_these_leave(tmp_path: Path) -> None:
    shipped = load_scenario("scenarios/mix-peak.yaml")
    plain = shipped.to_dict()
    plain["workloads"] = plain["workloads"][:2]
    plain["workloads"][1]["load"] = closed_load(10, 300)
    (tmp_path / "mixed.yaml").write_text(json.dumps(plain))
    mixed = load_scenario(tmp_path / "mixed.yaml")
    found = capacities(mixed)[0].stretches[0]
    users = 10 / 0.76  # requests per second of 10 users who never queue, 0.76 s each
    assert bound(found).offered == pytest.approx(8.4 + users * 0.76)
    assert bound(found).from_users == pytest.approx(10)
    chain_a, chain_b = found.workloads
    assert found.largest_rate_per_s(chain_a) == pytest.approx(20 / 0.42)
    assert found.knee_users(chain_b) == pytest.approx(11.6)
    assert (found.largest_rate_per_s(chain_b), found.knee_users(chain_a)) == (None, None)


# Loads


def test_users_meet_the_slots_at_the_knee() -> None:
    found = {one.label: one.stretches[0] for one in capacities(load_scenario("scenarios/peak.yaml"))}
    knees = {label: one.knee_users(one.workloads[0]) for label, one in found.items()}
    assert knees == pytest.approx({"serial": 20, "parallel": 20 / 0.42 * 0.295, "adaptive": 20})
    most = {label: one.throughput_per_s(one.workloads[0]) for label, one in found.items()}
    assert most == pytest.approx(dict.fromkeys(found, 20 / 0.42))
    assert all(one.overloaded == () for one in found.values())


def test_a_pause_moves_the_knee() -> None:
    found = only(sample(closed_load(20, 100, think_time_ms=705), plans=["parallel"]))
    (users,) = found.workloads
    assert users.rate_per_s == pytest.approx(20)
    assert found.knee_users(users) == pytest.approx(20 / 0.42)
    assert found.throughput_per_s(users) == pytest.approx(20)
    assert found.load == pytest.approx(0.42)


def test_users_may_be_held_by_a_limit() -> None:
    found = only(scenario(closed_load(30, 100), limits={"rpm": 600}))
    assert bound(found).name == "rpm"
    assert found.knee_users(found.workloads[0]) == 10
    assert found.throughput_per_s(found.workloads[0]) == 10


def test_slots_that_change_count_by_how_long_they_last_and_the_last_step_is_told() -> None:
    found = only(scenario(open_load(20, 2000), concurrency=40, concurrency_steps=STEPS_DOWN))
    slots = bound(found)
    assert slots.capacity == pytest.approx(0.6 * 40 + 0.4 * 16)
    assert slots.load == pytest.approx(20 / 30.4)
    assert slots.load_on(slots.steps[-1]) == 1.25
    up = only(
        scenario(open_load(15, 1500), concurrency=10, concurrency_steps=[{"at_s": 10, "concurrency": 20}])
    )
    assert bound(up).load == pytest.approx(15 / 19)
    assert bound(up).load_on(bound(up).steps[-1]) == 0.75
    assert up.overloaded == ()


def test_users_take_as_long_as_changing_slots_let_them() -> None:
    found = only(scenario(closed_load(100, 2800), concurrency=40, concurrency_steps=STEPS_DOWN))
    # 2,400 requests in the first minute, 400 more at 16 per second.
    assert found.stretch.to_s == pytest.approx(85)
    assert bound(found).capacity == pytest.approx(2800 / 85)


def test_periods_are_looked_at_one_by_one(tmp_path: Path) -> None:
    load = {
        "kind": "steps",
        "steps": [
            {"at_s": 0, "rate_per_s": 100, "name": "quiet"},
            {"at_s": 998, "rate_per_s": 400, "name": "burst"},
        ],
        "end_s": 1000,
    }
    (plan,) = capacities(from_file(tmp_path, load))
    assert [(one.stretch.name, one.load) for one in plan.stretches] == [("quiet", 0.5), ("burst", 2.0)]
    assert plan.worst.stretch.name == "burst"


def test_slots_are_those_of_the_period() -> None:
    day = load_scenario("scenarios/day.yaml", ["provider.concurrency_steps=[{at_s: 60, concurrency: 40}]"])
    serial = capacities(day)[0]
    assert [one.load for one in serial.stretches] == pytest.approx([0.5, 0.5, 0.25])


def test_a_trace_is_its_means_at_its_mean_rate() -> None:
    traced = load_scenario("scenarios/trace.yaml")
    found = capacities(traced)[0].stretches[0]
    span_s = float(traced.trace.arrival_ns[-1]) / 1e9
    work_s = sum(traced.branch_means_ms) / 1000
    assert bound(found).offered == pytest.approx(len(traced.trace.arrival_ns) / span_s * work_s)


# Plans


def test_serial_and_parallel_differ_by_the_join_that_holds_a_slot() -> None:
    both = sample(open_load(40, 100), workflow={"join_holds_slot": True})
    assert [bound(one.stretches[0]).offered for one in capacities(both)] == pytest.approx(
        [40 * 0.42, 40 * 0.455]
    )


def test_adaptive_is_looked_at_as_it_decides_when_requests_pile_up() -> None:
    adaptive = sample(open_load(40, 100), workflow={"join_holds_slot": True}, plans=["adaptive"])
    found = only(adaptive)
    assert found.workloads[0].runs == "serial"
    assert found.load_by_way == pytest.approx({"serial": 0.84, "parallel": 0.91})
    assert found.load == found.load_by_way["serial"]


@pytest.mark.parametrize(("users", "runs"), [(10, "parallel"), (11, "serial")])
def test_adaptive_of_users_is_looked_at_with_all_of_them(users: int, runs: str) -> None:
    assert only(sample(closed_load(users), plans=["adaptive"])).workloads[0].runs == runs


@pytest.mark.parametrize(("merges", "runs"), [((False, True), "serial"), ((True, True), "parallel")])
def test_a_policy_is_looked_at_at_the_smallest_share(merges: tuple[bool, ...], runs: str) -> None:
    policy = TabledChoice(hours=((0.0, merges),))
    assert capacity_of(sample(open_load()), policy).stretches[0].workloads[0].runs == runs


# Words and plain data


def test_the_summary_is_plain_data_without_infinities() -> None:
    (plan,) = capacities(scenario(open_load(11, 300), concurrency=200, limits={"rpm": 600}))
    summary = json.loads(json.dumps(plan.summary(), allow_nan=False))
    (period,) = summary["periods"]
    assert period["binding"] == {"provider": "provider", "name": "rpm"}
    assert period["constraints"][1] == {
        "provider": "provider",
        "name": "rpm",
        "unit": "calls/min",
        "offered": 660,
        "from_users": 0,
        "capacity": 600,
        "load": 1.1,
        "needed": 734,
        "steps": [],
    }
    assert period["workloads"]["one"] == {
        "runs": "parallel",
        "rate_per_s": 11,
        "largest_rate_per_s": 10,
        "users": None,
        "knee_users": None,
        "throughput_per_s_at_most": 10,
        "unloaded_ms": 1000,
        "think_ms": 0,
    }


ASSUMED = {
    "limits": ["tokens count as they are settled at the end of a call, not as they are reserved"],
    "retry-budget": [
        "a call takes 1.011 attempts on average: drawn failures, timeouts and hedges of the unloaded system, "
        "within the retry budget of 0.1 of first attempts",
        "attempts that a limit turns away come on top, and are not counted",
        "calls beside one that is lost count in full",
        "no request is given up at its deadline",
        "calls that are turned away count for rpm: beyond 100 % less gets through than the limit",
    ],
    "peak": [
        "users ask as often as they would if nobody waited: unloaded latency at mean times, of calls side by "
        "side the longest chain"
    ],
    "open": [],
}


@pytest.mark.parametrize("name", ASSUMED)
def test_what_is_assumed_is_said(name: str) -> None:
    assert list(capacities(load_scenario(f"scenarios/{name}.yaml"))[0].assumptions) == ASSUMED[name]


@pytest.mark.parametrize(
    ("limits", "cache", "words"),
    [
        (
            {"itpm": 9, "cached_tokens_count": False},
            None,
            "60 % of a shared context come from the cache and do not count",
        ),
        (
            {"itpm": 9, "cached_tokens_count": False},
            {"ttl_s": 300},
            "cached tokens do not count: a prefix is found if",
        ),
        ({"tpm": 9, "enforcement": "fixed_window"}, None, "windows of 60 s admit whole calls"),
    ],
)
def test_what_is_assumed_of_tokens_is_said(limits: Any, cache: Any, words: str) -> None:
    context = {"tokens": 3200, "prefix_reuse_ratio": 0 if cache else 0.6}
    found = scenario(
        open_load(),
        workflow={"shared_context": context},
        limits=limits,
        **({"prefix_cache": cache} if cache else {}),
    )
    (plan,) = capacities(found)
    assert any(one.startswith(words) for one in plan.assumptions), plan.assumptions


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_whatever_a_scenario_says_has_a_capacity(first: int, tmp_path: Path) -> None:
    for number in range(first, first + 30):
        case = mixed_case(number)
        mixed = case.scenario(tmp_path)
        plans: list[PlanCapacity] = list(capacities(mixed))
        if case.policy:
            plans.append(capacity_of(mixed, case.policy))
        for plan in plans:
            json.dumps(plan.summary(), allow_nan=False)
            for stretch in plan.stretches:
                assert all(
                    one.offered >= one.from_users >= 0 < one.capacity for one in stretch.constraints
                ), case.story
                assert all(
                    not math.isnan(one.unloaded_ms) and one.unloaded_ms > 0 for one in stretch.workloads
                )


# Simulations use what the arithmetic says


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("open-light", ["load.requests=2000"]),
        ("mix-off-peak", []),
        ("off-peak", []),
        ("limits", ["load.requests=1500", "load.rate_per_s=6", "experiment.replications=1"]),
    ],
)
def test_simulated_utilisation_is_the_load_on_the_slots(name: str, overrides: list[str]) -> None:
    given = load_scenario(f"scenarios/{name}.yaml", ["experiment.warmup=none", *overrides])
    found = {one.label: one.stretches[0] for one in capacities(given)}
    for plan in simulate(given, workers=1, engine="simpy").plans:
        expected = found[plan.label].constraints[0].load
        assert plan.estimates["utilisation"].mean == pytest.approx(expected, rel=0.04), plan.label


def test_a_window_admits_what_the_arithmetic_says() -> None:
    """Overloaded, so that each window takes all it can: two calls of 3,200 tokens that reserve 3,600."""
    call = {
        "id": "call",
        "duration_ms": 500,
        "input_tokens": 3200,
        "output_tokens": 200,
        "max_output_tokens": 400,
    }
    window = {"tpm": 600_000, "enforcement": "sub_window", "sub_window_s": 1}
    given = scenario(open_load(6, 240), branches=[call], limits=window, allocation="fifo")
    found = only(given)
    assert found.largest_rate_per_s(found.workloads[0]) == pytest.approx(2)
    (plan,) = simulate(given, workers=1, engine="simpy").plans
    assert plan.estimates["throughput_per_s"].mean == pytest.approx(2, rel=0.02)


def test_a_bucket_admits_what_the_arithmetic_says() -> None:
    call = {
        "id": "call",
        "duration_ms": 500,
        "input_tokens": 3200,
        "output_tokens": 200,
        "max_output_tokens": 400,
    }
    bucket = {"tpm": 408_000, "burst": {"tpm": 10_000}}
    given = scenario(open_load(6, 600), branches=[call], limits=bucket, allocation="fifo")
    found = only(given)
    assert found.largest_rate_per_s(found.workloads[0]) == pytest.approx(2)
    (plan,) = simulate(given, workers=1, engine="simpy").plans
    assert plan.estimates["throughput_per_s"].mean == pytest.approx(2, rel=0.02)
