"""A load that draws no arrival is a result without requests: figures are blank with a reason, never 0."""

from pathlib import Path

import pytest

import sim
from sim.draws.drawing import draw

BRANCHES = "[{id: a, duration_ms: 100}, {id: b, duration_ms: 80}]"
WORKFLOW = f"{{name: w, branches: {BRANCHES}, join_overhead_ms: 10}}"
SELDOM = "{kind: open, rate_per_s: 1, duration_s: 1}"
ALONE = f"""
schema_version: 1
name: seldom
provider: {{concurrency: 4}}
workflow: {WORKFLOW}
load: {SELDOM}
slo: {{rules: ['latency_ms_p50 <= 400', 'succeeded_share >= 0.5']}}
"""
LIMITED = ALONE.replace("concurrency: 4", "concurrency: 4, limits: {rpm: 600}")
BESIDE_USERS = f"""
schema_version: 1
name: seldom
provider: {{concurrency: 4}}
workloads:
  - {{name: seldom, workflow: {WORKFLOW}, load: {SELDOM}, slo: {{rules: ['latency_ms_p50 <= 400']}}}}
  - name: users
    workflow: {WORKFLOW.replace("name: w", "name: v")}
    load: {{kind: closed, active_requests: 2, requests: 20}}
"""
NO_OBSERVATIONS = "missing in 1 of 1 replications: no observations"


def arrivals(scenario: sim.Scenario, replication: int) -> int:
    drawn = draw(scenario.parts[0], replication).arrival_ns
    assert drawn is not None
    return len(drawn)


def empty(text: str, folder: Path) -> sim.Scenario:
    """Return a scenario with a seed at which its first workload draws no arrival."""
    file = folder / "seldom.yaml"
    file.write_text(text, encoding="utf-8")
    for seed in range(1, 60):
        scenario = sim.load_scenario(file, [f"experiment.seed={seed}"])
        if arrivals(scenario, 0) == 0:
            return scenario
    raise AssertionError("every seed draws an arrival")


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("text", [ALONE, LIMITED], ids=["plain", "limited"])
def test_a_run_without_requests_is_a_result(text: str, engine: str, tmp_path: Path) -> None:
    result = sim.simulate(empty(text, tmp_path), engine=engine)
    assert result.decision.reason == f"undecided: the saving is {NO_OBSERVATIONS}"
    assert [(one.verdict, one.reason) for one in result.slo] == [("undecided", NO_OBSERVATIONS)] * 2
    assert "parallel: no request arrived" in result.notes
    for plan in result.summary()["plans"].values():
        assert plan["requests"] == 0
        assert plan["latency_ms_mean"] is plan["utilisation"] is plan["succeeded_share"] is None
        assert plan["missing"]["latency_ms_mean"] == NO_OBSERVATIONS
        assert plan["checks"]["requests"] == 0
    assert len(result.requests) == len(result.calls) == 0
    assert repr(result).startswith("<Result of seldom: mean latency serial unknown, parallel unknown")


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_workload_without_requests_leaves_the_others_as_they_are(engine: str, tmp_path: Path) -> None:
    result = sim.simulate(empty(BESIDE_USERS, tmp_path), engine=engine)
    plan = result.summary()["plans"]["parallel"]
    assert plan["requests"] == 20
    assert plan["workloads"]["seldom"]["latency_ms_mean"] is None
    assert plan["workloads"]["users"]["latency_ms_mean"] == 110
    assert [(one.verdict, one.reason) for one in result.slo] == [("undecided", NO_OBSERVATIONS)]
    assert "parallel: no request of seldom arrived" in result.notes


def test_some_replications_without_requests_leave_no_mean(tmp_path: Path) -> None:
    scenario = empty(ALONE, tmp_path).replace({"experiment.replications": 12})
    result = sim.simulate(scenario, engine="simpy")
    without = sum(arrivals(scenario, number) == 0 for number in range(12))
    assert 0 < without < 12
    assert f"parallel: no request arrived in {without} of 12 replications" in result.notes
    figure = result.plan("parallel").estimates["latency_ms_mean"]
    assert figure.reason == f"missing in {without} of 12 replications: no observations"


def test_questions_about_a_load_without_requests_have_an_answer(tmp_path: Path) -> None:
    scenario = empty(ALONE, tmp_path)
    assert sim.policy_for(scenario).sentence.endswith(f"mean latency {NO_OBSERVATIONS}")
    assert sim.size(scenario, "provider.concurrency", [1, 2], most_replications=5).answer is None
    assert sim.compare([scenario, scenario]).summary()["between_plans"][0]["mean"] is None
    assert sim.sensitivities(scenario).scenario is scenario
