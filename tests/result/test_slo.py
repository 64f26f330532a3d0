"""Rules about a workload or a period: read, refused, and held against the figures that they name."""

import pytest

import sim
from sim.errors import InputError
from sim.result.objective import MET, MISSED
from sim.scenario.slo import METRICS, parse_rule
from tests.small_scenarios import ROOT, sample

STEPS = {
    "kind": "steps",
    "steps": [
        {"at_s": 0, "active_requests": 10, "name": "off-peak"},
        {"at_s": 2, "active_requests": 20, "name": "very busy"},
    ],
    "end_s": 4,
}


def test_a_rule_may_name_a_period_or_the_workload() -> None:
    rules = ["very busy : latency_ms_mean <= 430", "off-peak:utilisation<0.4", "succeeded_share >= 1"]
    scenario = sample(STEPS, plans=["serial"], slo={"rules": rules})
    result = sim.simulate(scenario)
    assert [str(one.rule) for one in result.slo] == [
        "very busy:latency_ms_mean <= 430",
        "off-peak:utilisation < 0.4",
        "succeeded_share >= 1",
    ]
    assert [one.verdict for one in result.slo] == [MET, MISSED, MET]
    assert [one.value.mean for one in result.slo] == [420, 0.5, 1]


def test_a_rule_about_another_workload_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        sim.load_scenario(
            ROOT / "scenarios/day.yaml",
            ["slo.rules=['pea:latency_ms_mean <= 1', 'moderation.classify:utilisation <= 1']"],
        )
    assert str(caught.value) == (
        "--set: slo.rules[0] must name a workload or a period; did you mean 'peak'? "
        "(got 'pea:latency_ms_mean <= 1')\n"
        "--set: slo.rules[1] must be about a figure that a workload has "
        "(got 'moderation.classify:utilisation <= 1')"
    )


def test_a_period_has_no_mean_of_active_requests() -> None:
    with pytest.raises(InputError, match="must be about a figure that a period has"):
        sim.load_scenario(ROOT / "scenarios/day.yaml", ["slo.rules=['peak:active_requests_mean <= 1']"])


@pytest.mark.parametrize("name", ["peak", "faulty"])
def test_every_metric_is_a_figure_of_every_run(name: str) -> None:
    short = ["load.requests=30", "plans=[parallel]", "experiment.replications=1", "experiment.warmup=none"]
    result = sim.simulate(sim.load_scenario(ROOT / f"scenarios/{name}.yaml", short))
    assert set(METRICS) <= set(result.plans[0].estimates)


def test_a_scope_is_kept_when_a_rule_is_written() -> None:
    assert parse_rule("a b: latency_ms_p95 <= 4") == {
        "scope": "a b",
        "metric": "latency_ms_p95",
        "operator": "<=",
        "bound": 4.0,
    }
