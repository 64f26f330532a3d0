"""The JSON Schema accepts what the loader accepts and refuses unknown keys."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from sim.scenario import json_schema, load_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SHIPPED = sorted(SCENARIOS.glob("*.yaml"))
VALIDATOR = Draft202012Validator(json_schema())

SHORT_FORMS = [
    "workflow.branches[0].duration_ms=260",
    "workflow.branches[0].duration_ms={distribution: exponential, mean_ms: 260}",
    "workflow.branches[0].duration_ms={distribution: lognormal, mean_ms: 260, cv: 0.5}",
    "workflow.branches[0].duration_ms={distribution: lognormal, p50_ms: 240, p95_ms: 460}",
    "workflow.branches[0].duration_ms={distribution: gamma, mean_ms: 260, cv: 2}",
    "workflow.branches[0].duration_ms={distribution: uniform, low_ms: 100, high_ms: 420}",
    "workflow.branches[0].duration_ms={distribution: triangular, low_ms: 100, mode_ms: 200, high_ms: 420}",
    "workflow.branches[0].duration_ms={distribution: empirical, values_ms: [200, 300]}",
    "workflow.branches[0].duration_ms={distribution: tokens, overhead_ms: 9, output_tokens: 20}",
    "workflow.join_overhead_ms={distribution: uniform, low_ms: 10, high_ms: 50}",
    "load.think_time_ms={distribution: exponential, mean_ms: 500}",
    "plans=[serial, {plan: parallel, max_degree: 2}]",
    "experiment.warmup=auto",
    "experiment.warmup={time_s: 10}",
    "slo={plan: adaptive, rules: ['latency_ms_p95 <= 400']}",
    "load={kind: open, arrivals: gamma, cv: 2, rate_per_s: 5, duration_s: 60}",
]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_are_valid_as_written_and_as_resolved(path: Path) -> None:
    VALIDATOR.validate(yaml.safe_load(path.read_text()))
    VALIDATOR.validate(load_scenario(path).to_dict())


@pytest.mark.parametrize("override", SHORT_FORMS)
def test_short_forms_are_valid(override: str) -> None:
    VALIDATOR.validate(load_scenario(SCENARIOS / "peak.yaml", [override]).to_dict())


def unknown_key(content: dict[str, Any]) -> None:
    content["workflow"]["join_ms"] = 35


def missing_load(content: dict[str, Any]) -> None:
    del content["load"]


def unknown_distribution(content: dict[str, Any]) -> None:
    content["workflow"]["branches"][0]["duration_ms"] = {"distribution": "normal", "mean_ms": 260}


def text_for_a_number(content: dict[str, Any]) -> None:
    content["provider"]["concurrency"] = "20"


def unknown_figure(content: dict[str, Any]) -> None:
    content["slo"] = {"rules": ["latency_p95 <= 400"]}


@pytest.mark.parametrize(
    "spoil", [unknown_key, missing_load, unknown_distribution, text_for_a_number, unknown_figure]
)
def test_what_the_loader_refuses_is_not_valid(spoil: Any) -> None:
    content = load_scenario(SCENARIOS / "peak.yaml").to_dict()
    VALIDATOR.validate(content)
    spoil(content)
    assert not VALIDATOR.is_valid(content)


def test_a_child_may_leave_keys_out_but_not_invent_any() -> None:
    child = {"schema_version": 1, "name": "child", "extends": "peak.yaml", "load": {"active_requests": 5}}
    assert VALIDATOR.is_valid(child)
    assert VALIDATOR.is_valid({**child, "workflow": {"baseline": None}})
    assert not VALIDATOR.is_valid({**child, "load": {"active": 5}})


def test_every_key_is_described() -> None:
    undescribed = [
        (name, key)
        for name, schema in json_schema()["$defs"].items()
        for key, item in schema.get("properties", {}).items()
        if not name.endswith("Part") and "description" not in item
    ]
    assert undescribed == []
    mean = json_schema()["$defs"]["LognormalInMs"]["properties"]["mean_ms"]
    assert mean["description"] == "Mean of the variable itself. Milliseconds."
