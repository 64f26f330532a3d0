"""Which slots decide a plan: those that the branches can use at the arrival, in any order of names."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.answers.policy_table import policy_table
from sim.answers.sensitivity_inputs import arithmetic_inputs, setting_of
from sim.answers.size_search import slots_of
from sim.check.plans import wrong_plans
from sim.check.run import check_run
from sim.check.timeline import timeline
from sim.cli.shares import every_share
from sim.contract.output import RunOutput
from sim.contract.run import RunInput
from sim.draws.run_input import run_input_of
from sim.engine.choice import Run as EngineRun
from sim.engine.shared.compiled import run_shared as run_compiled
from sim.engine.shared.model import run_shared
from sim.errors import CheckError
from sim.plan.share import CalledProvider, share_spans, usable_slots
from sim.result.experiment import simulate
from sim.run.simulation import Run, simulate_once
from sim.scenario import Scenario, load_scenario
from sim.scenario.model import PlanChoice
from tests.engine_inputs import arriving
from tests.engines import general_only
from tests.shared_inputs import limits, provider, rate, workload
from tests.small_scenarios import CONTEXT, POLICY, WORDS, closed_load, sample

ADAPTIVE = PlanChoice(plan="adaptive")
ENGINES = pytest.mark.parametrize("engine", [run_shared, run_compiled], ids=["simpy", "compiled"])
ONE, TWENTY = {"concurrency": 1}, {"concurrency": 20}
CALLS_WIDE = [{**branch, "provider": "wide"} for branch in (POLICY, WORDS)]


def on(providers: dict[str, Any], branches: list[dict[str, Any]] | None = None, **more: Any) -> Scenario:
    """Return the sample workflow on several providers, both branches on `wide` unless said otherwise."""
    more = {"load": closed_load(1, 20), "plans": ["serial", "parallel", "adaptive"], **more}
    return sample(branches=branches or CALLS_WIDE, provider=None, providers=providers, **more)


def latencies_ms(run: Run) -> list[float]:
    return [ns / 1_000_000 for ns in run.out.latency_ns.tolist()]


@ENGINES
def test_a_step_makes_requests_parallel_from_the_first_one_after_it(engine: EngineRun) -> None:
    steps = [{"at_s": 1, "concurrency": 20}]
    scenario = sample(closed_load(1, 6), provider={"concurrency": 1, "concurrency_steps": steps})
    found = simulate_once(scenario, ADAPTIVE, 0, engine=general_only(engine))
    # The third request begins at 840 ms with one slot, the fourth at 1,260.
    assert latencies_ms(found) == [420, 420, 420, 295, 295, 295]
    assert found.out.ran_parallel.tolist() == [False] * 3 + [True] * 3


@ENGINES
def test_a_step_down_makes_requests_serial(engine: EngineRun) -> None:
    steps = [{"at_s": 0.5, "concurrency": 1}, {"at_s": 1.2, "concurrency": 2}]
    scenario = sample(closed_load(1, 5), provider={"concurrency": 20, "concurrency_steps": steps})
    assert latencies_ms(simulate_once(scenario, ADAPTIVE, 0, engine=general_only(engine))) == [
        295,
        295,
        420,
        420,
        295,
    ]


@ENGINES
@pytest.mark.parametrize(
    "providers",
    [{"narrow": ONE, "wide": TWENTY}, {"wide": TWENTY, "narrow": ONE}, {"wide": TWENTY}],
    ids=["first", "last", "absent"],
)
def test_a_provider_that_nobody_calls_changes_nothing(providers: dict[str, Any], engine: EngineRun) -> None:
    assert latencies_ms(simulate_once(on(providers), ADAPTIVE, 0, engine=general_only(engine))) == [295] * 20
    result = simulate(on(providers))
    assert [plan.estimates["latency_ms_mean"].mean for plan in result.plans] == [420, 295, 295]
    assert result.decision.reason == (
        "merge: saves 125 ms; costs 368 micros extra (2.94 <= 4 micros per saved ms); "
        "prefix reuse 60 % reaches the break-even 41.67 %; 2 slots earn their keep (measured)"
    )
    assert [at.evaluation.concurrency for at in result.decision.arithmetic] == [20]


@ENGINES
def test_the_join_s_slot_is_not_one_that_branches_use(engine: EngineRun) -> None:
    scenario = on({"narrow": ONE, "wide": TWENTY}, workflow={"join_holds_slot": True})
    assert latencies_ms(simulate_once(scenario, ADAPTIVE, 0, engine=general_only(engine))) == [295] * 20


@ENGINES
@pytest.mark.parametrize("first", ["narrow", "wide"])
@pytest.mark.parametrize("other", [ONE, TWENTY], ids=["one slot", "twenty slots"])
def test_branches_on_two_providers_have_a_slot_each(
    first: str, other: dict[str, Any], engine: EngineRun
) -> None:
    branches = [{**POLICY, "provider": "wide"}, {**WORDS, "provider": "narrow"}]
    providers = {"narrow": ONE, "wide": other}
    ordered = {first: providers[first], **providers}
    assert (
        latencies_ms(simulate_once(on(ordered, branches), ADAPTIVE, 0, engine=general_only(engine)))
        == [295] * 20
    )
    decision = simulate(on(ordered, branches, plans=["serial", "parallel"])).decision
    assert (decision.decision, decision.basis) == ("merge", "measured")
    assert [at.evaluation.concurrency for at in decision.arithmetic] == [2]


@ENGINES
def test_of_several_providers_each_counts_with_the_branches_that_call_it(engine: EngineRun) -> None:
    # Two branches on one slot, a third elsewhere: 2 slots, on which 3 x 100 + 0 ms take 200 by arithmetic.
    branches = [
        {"id": name, "duration_ms": 100, "provider": to}
        for name, to in (("a", "narrow"), ("b", "narrow"), ("c", "wide"))
    ]
    workflow = {"join_overhead_ms": 0}
    few = on({"narrow": ONE, "wide": TWENTY}, branches, workflow=workflow)
    assert [usable_slots(few.called_providers, active) for active in (1, 20, 21)] == [2, 2, 2]
    assert latencies_ms(simulate_once(few, ADAPTIVE, 0, engine=general_only(engine))) == [200] * 20
    many = on({"narrow": {"concurrency": 6}, "wide": TWENTY}, branches, workflow=workflow)
    spans = [(3, 1, 3), (2, 4, None)]
    assert list(share_spans(many.called_providers)) == spans
    shares = [(one.evaluation.concurrency, one.active_from, one.active_to) for one in every_share(many)]
    assert shares == spans
    levels = policy_table(many).hours[0].levels
    assert [(one.max_degree, one.active_from, one.active_to) for one in levels] == spans


@ENGINES
def test_the_share_of_many_branches_is_looked_up_beyond_the_first_provider(engine: EngineRun) -> None:
    names = ["a", "b", "c", "d"]
    branches = [{"id": name, "duration_ms": 100, "provider": "wide"} for name in names]
    load = {"kind": "steps", "steps": [{"at_s": 0, "active_requests": 10}], "end_s": 1}
    for providers in ({"narrow": {"concurrency": 2}, "wide": TWENTY}, {"wide": TWENTY}):
        few = on(providers, branches, load=closed_load(5, 20), workflow={"join_overhead_ms": 0})
        assert latencies_ms(simulate_once(few, ADAPTIVE, 0, engine=general_only(engine))) == [100] * 20
        many = on(providers, branches, load=load, workflow={"join_overhead_ms": 0})
        assert set(latencies_ms(simulate_once(many, ADAPTIVE, 0, engine=general_only(engine)))) == {200}


def test_the_cache_s_price_is_that_of_the_providers_that_are_called() -> None:
    cache = {"concurrency": 20, "prefix_cache": {"read_price_ratio": 0.25}}
    branches = [{**branch, "first_token_ms": 10} for branch in CALLS_WIDE]
    context = {key: CONTEXT[key] for key in ("tokens", "input_micros_per_ktok")}
    found = [
        simulate(on(providers, branches, workflow={"shared_context": context})).decision.measured
        for providers in ({"narrow": ONE, "wide": cache}, {"wide": cache, "narrow": ONE})
    ]
    assert found[0] == found[1]
    assert found[0] is not None
    assert found[0].verdict is not None
    reuse = found[0].verdict.criteria[2]
    # Both copies of the first request are written; at a quarter of the price half of them have to be read.
    assert (reuse.value, reuse.bound) == (0.95, 0.5)


def test_arithmetic_goes_by_the_providers_that_are_called() -> None:
    other = {"narrow": ONE, "wide": TWENTY, "middle": {"concurrency": 3}}
    apart = on(other, [{**POLICY, "provider": "wide"}, {**WORDS, "provider": "middle"}])
    assert apart.called_providers == (CalledProvider(20, 1), CalledProvider(3, 1))
    assert (apart.slots_at_hand, apart.most_slots) == (2, 24)
    assert slots_of(apart) == ("providers.middle.concurrency", 3)
    evaluation = setting_of(apart, 10).evaluation()
    assert (evaluation.concurrency, evaluation.decision) == (2, "merge")
    slots = next(one for one in arithmetic_inputs(apart, 2) if one.name == "slots")
    assert (slots.path, int(slots.value)) == ("providers.middle.concurrency", 3)
    assert [slots.changed(slots.value + more).called for more in (1, 30)] == [
        (CalledProvider(20, 1), CalledProvider(most, 1)) for most in (4, 33)
    ]


def test_a_policy_goes_by_the_providers_that_are_called() -> None:
    allocated = {"narrow": {"concurrency": 1, "allocation": "fifo"}, "wide": TWENTY}
    for providers in (allocated, dict(reversed(allocated.items()))):
        table = policy_table(on(providers))
        assert (table.slots, table.to_dict()["allocation"]) == (20, "fair_share")
        levels = [(one.active_from, one.active_to, one.plan, one.max_degree) for one in table.hours[0].levels]
        assert levels == [(1, 10, "parallel", 2), (11, None, "serial", 1)]
        found = simulate_once(on(providers), table.choice, 0, engine=general_only())
        assert latencies_ms(found) == [295] * 20


def test_a_scenario_says_what_all_of_its_providers_are() -> None:
    assert on({"narrow": ONE, "wide": TWENTY}).slots_words == (
        "narrow: 1 slots fair_share + wide: 20 slots fair_share"
    )


def checked(one: RunInput, out: RunOutput) -> list[bool]:
    return [bool(broken) for broken in wrong_plans(one, out, timeline(one, out))]


def test_a_plan_that_was_not_due_is_found() -> None:
    scenario = sample(closed_load(2, 6), slots=4, provider={"concurrency": 4, "concurrency_steps": []})
    one = run_input_of(scenario, ADAPTIVE, 0)
    out = run_shared(one)
    assert checked(one, out) == [False] * 6
    other = out.ran_parallel.copy()
    other[3] = ~other[3]
    assert checked(one, replace(out, ran_parallel=other)) == [False, False, False, True, False, False]


def test_a_run_of_another_plan_ends_in_the_request_s_story() -> None:
    one = run_input_of(sample(closed_load(1, 2)), ADAPTIVE, 0)
    serial = run_shared(run_input_of(sample(closed_load(1, 2)), PlanChoice(plan="serial"), 0))
    with pytest.raises(CheckError, match="request 0 did not run the plan of its fair share"):
        check_run(one, serial, run_shared)


def test_an_instant_with_a_rejection_does_not_tell() -> None:
    adaptive = np.arange(65) >= 2
    one = replace(workload(arriving(0, 0), [10, 10]), runs_parallel_at=adaptive)
    other = RunInput((one,), (provider(2, limits=limits(rate(1, 60_000), rejects=True)),))
    out = run_shared(other)
    assert checked(other, replace(out, ran_parallel=~out.ran_parallel)) == [False, False]


PROVIDERS = ("a", "b", "c")


@st.composite
def adaptive_files(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a file with one or two adaptive workloads on three providers, some with steps."""
    slots = st.integers(1, 6)
    providers = {}
    for name in PROVIDERS:
        changes = draw(st.sampled_from([[], [0.05], [0.02, 0.1]]))
        steps = [{"at_s": at_s, "concurrency": draw(slots)} for at_s in changes]
        providers[name] = {"concurrency": draw(slots), "concurrency_steps": steps}
    workloads = []
    for number in range(draw(st.integers(1, 2))):
        branches = [
            {"id": f"call_{place}", "duration_ms": duration_ms, "provider": draw(st.sampled_from(PROVIDERS))}
            for place, duration_ms in enumerate(draw(st.lists(st.integers(1, 30), min_size=1, max_size=4)))
        ]
        flow = {"name": "flow", "branches": branches, "join_overhead_ms": draw(st.integers(0, 3))}
        load = {"kind": "closed", "active_requests": draw(st.integers(1, 4)), "requests": 12}
        workloads.append({"name": f"workload {number}", "workflow": flow, "load": load})
    return {"schema_version": 1, "name": "drawn", "providers": providers, "workloads": workloads}


def renamed(content: dict[str, Any], order: list[str], names: dict[str, str]) -> dict[str, Any]:
    """Return the same file with its providers in another order, by other names."""
    workloads = []
    for one in content["workloads"]:
        branches = [
            {**branch, "provider": names[branch["provider"]]} for branch in one["workflow"]["branches"]
        ]
        workloads.append({**one, "workflow": {**one["workflow"], "branches": branches}})
    providers = {names[name]: content["providers"][name] for name in order}
    return {**content, "providers": providers, "workloads": workloads}


def loaded(content: dict[str, Any]) -> Scenario:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "drawn.yaml"
        file.write_text(yaml.safe_dump(content, sort_keys=False))
        return load_scenario(file)


@settings(max_examples=60, deadline=None)
@given(adaptive_files(), st.permutations(PROVIDERS), st.permutations(["x", "y", "z"]))
def test_names_and_order_of_providers_change_nothing(
    content: dict[str, Any], order: list[str], names: list[str]
) -> None:
    scenarios = [loaded(content), loaded(renamed(content, order, dict(zip(PROVIDERS, names, strict=True))))]
    engines = (run_shared, run_compiled)
    runs = [
        simulate_once(each, ADAPTIVE, 0, engine=general_only(engine))
        for each in scenarios
        for engine in engines
    ]
    for run in runs[1:]:
        assert run.out.ran_parallel.tolist() == runs[0].out.ran_parallel.tolist()
        assert run.out.latency_ns.tolist() == runs[0].out.latency_ns.tolist()
    one, other = (
        [[usable_slots(part.called_providers, active) for active in (1, 2, 4)] for part in each.parts]
        for each in scenarios
    )
    assert one == other
