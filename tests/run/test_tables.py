"""The tables of requests and calls: the columns that are documented, every attempt, every cost."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sim
from sim.result.result import Result
from sim.run.tables import CALL_COLUMNS, REQUEST_COLUMNS
from sim.scenario import Scenario
from sim.scenario.keys import ONLY_PROVIDER
from tests.small_scenarios import CONTEXT, POLICY, ROOT, WORDS, closed_load, sample

FAILING: dict[str, Any] = {
    "failures": {"server_error": 0.5},
    "retry": {"attempts": 3, "backoff_ms": 10, "jitter": 0},
}


def result_of(scenario: Scenario) -> Result:
    return sim.simulate(scenario, workers=1)


def cached() -> Scenario:
    """Return two providers: one remembers the prefix of the first branch, one is asked for the second."""
    branches = [{**POLICY, "first_token_ms": 80}, {**WORDS, "provider": "other"}]
    shared_context = {**CONTEXT, "prefix_reuse_ratio": 0}
    plain = sample(closed_load(2, 6), branches=[POLICY, WORDS], plans=["parallel"]).to_dict()
    plain.pop("provider")
    providers = {"first": {"concurrency": 4, "prefix_cache": {}}, "other": {"concurrency": 4}}
    workflow = {**plain["workflow"], "branches": branches, "shared_context": shared_context}
    return Scenario.model_validate({**plain, "providers": providers, "workflow": workflow})


@pytest.mark.parametrize("scenario", [sample(), sample(workflow=FAILING), cached()])
def test_tables_have_the_documented_columns(scenario: Scenario) -> None:
    result = result_of(scenario)
    assert list(result.requests.columns) == list(REQUEST_COLUMNS)
    assert list(result.calls.columns) == list(CALL_COLUMNS)


def test_a_plain_run_says_the_same_on_every_row() -> None:
    result = result_of(sample(closed_load(1, 2), plans=["parallel", "serial"]))
    requests, calls = result.requests, result.calls
    assert set(requests["workload"]) == {"moderation.classify"}
    assert set(requests["outcome"]) == {"succeeded"}
    assert requests["cost_micros"].tolist() == [736, 736, 368, 368]
    assert calls["branch"].tolist() == ["policy", "sensitive_words"] * 4
    same = {"attempt": 0, "provider": ONLY_PROVIDER, "outcome": "ok", "prefix_cache": "none"}
    for column, value in same.items():
        assert set(calls[column]) == {value}


def test_every_attempt_is_a_row() -> None:
    result = result_of(sample(closed_load(4, 200), plans=["parallel"], workflow=FAILING))
    calls = result.calls
    rows = calls.groupby(["request", "branch"], observed=True)
    assert (rows["attempt"].apply(list).map(lambda found: found == list(range(len(found))))).all()
    assert set(calls["outcome"]) == {"ok", "server_error", "cancelled"}
    last = rows["outcome"].last()
    succeeded = result.requests.loc[result.requests["outcome"] == "succeeded", "request"]
    assert (last[succeeded] == "ok").all()
    assert set(result.requests["outcome"]) == {"succeeded", "failed"}
    assert calls["attempt"].max() == 2


def test_a_call_that_never_got_a_slot_has_none() -> None:
    limited = {"limits": {"rpm": 60, "burst": {"rpm": 1}, "on_limit": "reject"}}
    branches = [{"id": "call", "duration_ms": 10}]
    scenario = sample(closed_load(2, 2), branches=branches, plans=["parallel"])
    plain = scenario.to_dict()
    calls = result_of(Scenario.model_validate({**plain, "provider": plain["provider"] | limited})).calls
    assert calls["outcome"].tolist() == ["ok", "rejected"]
    assert calls["slot"].tolist() == [0, -1]
    assert calls["service_ms"].tolist() == [10, 0]


def test_calls_name_their_provider_and_what_its_cache_did() -> None:
    calls = result_of(cached()).calls
    by_branch = dict(iter(calls.groupby("branch", observed=True)))
    assert set(by_branch["policy"]["provider"]) == {"first"}
    assert by_branch["policy"]["prefix_cache"].tolist() == ["miss", "miss", "hit", "hit", "hit", "hit"]
    assert set(by_branch["sensitive_words"]["provider"]) == {"other"}
    assert set(by_branch["sensitive_words"]["prefix_cache"]) == {"none"}


def test_costs_by_request_add_up_to_the_figures() -> None:
    result = result_of(sample(closed_load(4, 60), workflow=FAILING))
    for plan in result.plans:
        rows = result.requests[result.requests["plan"] == plan.label]
        dropped = plan.dropped[0]
        assert np.isclose(
            rows["cost_micros"][dropped:].mean(), plan.estimates["cost_micros_per_request"].mean
        )


def test_workloads_have_branches_of_their_own() -> None:
    scenario = sim.load_scenario(ROOT / "scenarios" / "mix-peak.yaml", ["workloads[0].load.duration_s=2"])
    scenario = scenario.replace(
        {"workloads[1].load.duration_s": 2, "workloads[2].load.duration_s": 2, "plans": ["parallel"]}
    )
    result = result_of(scenario)
    merged: pd.DataFrame = result.calls.merge(result.requests, on="request")
    found = {name: set(rows["branch"]) for name, rows in merged.groupby("workload", observed=True)}
    assert found == {
        "chain-a": {"policy", "sensitive_words"},
        "chain-b": {"reply_draft", "order_snapshot"},
        "chain-c": {"search.rerank", "chat.reply"},
    }
