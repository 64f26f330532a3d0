"""Scenario files that are right: what is read, merged, overridden, replaced and handed on."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import yaml

from sim.errors import InputError
from sim.plan.criteria import evaluate_parallel
from sim.scenario import Scenario, load_scenario
from sim.scenario.load import ClosedLoad, StepsLoad
from sim.scenario.profile import Period
from sim.scenario.slo import METRICS, SloRule

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SHIPPED = sorted(SCENARIOS.glob("*.yaml"))
MINIMAL = """
schema_version: 1
name: minimal
provider: {concurrency: 4}
workflow:
  name: single
  branches: [{id: only, duration_ms: 100}]
load: {kind: closed, active_requests: 2, requests: 10}
"""


def shipped(name: str, *overrides: str) -> Scenario:
    return load_scenario(SCENARIOS / f"{name}.yaml", overrides)


def written(folder: Path, content: str, name: str = "scenario.yaml") -> Scenario:
    path = folder / name
    path.write_text(content)
    return load_scenario(path)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_load_explain_themselves_and_survive_pickling(path: Path) -> None:
    scenario = load_scenario(path)
    assert scenario.name == path.stem
    assert path.read_text().startswith("# ")
    copy = pickle.loads(pickle.dumps(scenario))
    assert copy == scenario
    assert copy.digest == scenario.digest
    assert copy.replace({"provider.concurrency": 3}).provider.concurrency == 3


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    assert written(tmp_path, MINIMAL).to_dict() == {
        "schema_version": 1,
        "name": "minimal",
        "provider": {"concurrency": 4, "allocation": "fair_share"},
        "workflow": {
            "name": "single",
            "branches": [
                {
                    "id": "only",
                    "duration_ms": 100.0,
                    "cost_micros": 0,
                    "carries_shared_context": False,
                    "depends_on": [],
                }
            ],
            "join_overhead_ms": 0.0,
            "join_growth_ms_per_branch": 0.0,
            "join_holds_slot": False,
            "shared_context": {
                "tokens": 0,
                "input_micros_per_ktok": 0,
                "prefix_reuse_ratio": 0.0,
                "cached_input_price_ratio": 1.0,
            },
            "baseline": {},
        },
        "load": {"kind": "closed", "active_requests": 2, "think_time_ms": 0.0, "requests": 10},
        "plans": ["serial", "parallel", "adaptive"],
        "criteria": {"max_micros_per_saved_ms": 4.0, "min_marginal_gain_ratio": 0.05},
        "experiment": {"seed": 1, "replications": 1},
    }


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_is_written_out_reads_back_the_same(path: Path, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(SCENARIOS / "data")
    scenario = load_scenario(path)
    again = written(tmp_path, yaml.safe_dump(scenario.to_dict()))
    assert again.to_dict() == scenario.to_dict()
    assert again.digest == scenario.digest


def test_a_child_merges_mappings_and_replaces_lists() -> None:
    base, child = shipped("moderation"), shipped("peak-random")
    assert isinstance(child.load, ClosedLoad)
    assert child.load.active_requests == 20
    assert child.load.requests == 2000
    assert child.workflow.shared_context == base.workflow.shared_context
    assert [branch.duration_ms.cv for branch in child.workflow.branches] == [0.5, 0.5]


def test_a_load_of_another_kind_replaces_the_parents() -> None:
    load = shipped("day").load
    assert isinstance(load, StepsLoad)
    assert [step.active_requests for step in load.steps] == [10, 20, 10]


def test_null_takes_a_parents_key_away() -> None:
    assert shipped("chain-b").workflow.baseline.latency_ms is None
    assert shipped("chain-a").workflow.baseline.latency_ms == 1269


def test_null_is_as_good_as_left_out(tmp_path: Path) -> None:
    assert written(tmp_path, MINIMAL + "slo: null\nexperiment: null\n") == written(tmp_path, MINIMAL)


def test_files_are_looked_for_beside_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "parent").mkdir()
    (tmp_path / "parent/values.csv").write_text("took_ms\n100\n300\n")
    parent = MINIMAL.replace("100}", "{distribution: empirical, file: values.csv, column: took_ms}}")
    (tmp_path / "parent/base.yaml").write_text(parent)
    child = written(tmp_path, "schema_version: 1\nname: child\nextends: parent/base.yaml\n")
    assert child.branch_means_ms == (200,)


def test_scalars_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    scenario = written(
        tmp_path, MINIMAL.replace("minimal", "no").replace("100}", "1e3}").replace("10}", "1_000}")
    )
    assert scenario.name == "no"
    assert scenario.branch_means_ms == (1000,)
    assert scenario.to_dict()["load"]["requests"] == 1000


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert load_scenario(path) == written(tmp_path, MINIMAL)


def test_overrides_win_and_are_recorded() -> None:
    scenario = shipped("peak", "load.active_requests=12", "workflow.branches[1].duration_ms=200", "name='12'")
    assert isinstance(scenario.load, ClosedLoad)
    assert scenario.load.active_requests == 12
    assert scenario.branch_means_ms == (260, 200)
    assert scenario.name == "12"
    expected = ("load.active_requests=12", "workflow.branches[1].duration_ms=200", "name='12'")
    assert scenario.overrides == expected


def test_an_override_may_state_a_key_that_the_file_leaves_out_or_take_one_away() -> None:
    assert shipped("peak", "slo.rules=['utilisation <= 0.9']").slo is not None
    assert shipped("trace", "slo=null").slo is None
    assert shipped("peak", "workflow.baseline=null").workflow.baseline.cost_micros is None


def test_replace_validates_and_keeps_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    path.write_bytes((SCENARIOS / "data/requests.csv").read_bytes())
    scenario = shipped("trace", f"load.file={path}")
    path.unlink()
    faster = scenario.replace({"provider.concurrency": np.int64(8), "load.time_scale": 0.5})
    assert faster.provider.concurrency == 8
    assert faster.trace.arrival_ns[-1] == round(scenario.trace.arrival_ns[-1] / 2)
    assert scenario.provider.concurrency == 4
    assert faster.overrides[-2:] == ("provider.concurrency=8", "load.time_scale=0.5")
    with pytest.raises(InputError, match=r"^replace: load\.first must be >= 0 \(got -1\)$"):
        scenario.replace({"load.first": -1})


def test_the_digest_is_of_the_content_alone(tmp_path: Path) -> None:
    plain = written(tmp_path, MINIMAL)
    (tmp_path / "elsewhere").mkdir()
    reordered = "\n".join(["# comment", *reversed(MINIMAL.strip().split("\nworkflow:"))])
    reordered = reordered.replace("name: single", "workflow:\n  name: single", 1).replace(
        "  workflow", "workflow"
    )
    other = written(tmp_path / "elsewhere", reordered, "other.yaml")
    assert other.digest == plain.digest
    assert plain.replace({"experiment.seed": 2}).digest != plain.digest
    assert plain.replace({"experiment.seed": 1}).digest == plain.digest
    assert hash(plain) == hash(other)


def test_the_digest_covers_the_tables(tmp_path: Path) -> None:
    content = MINIMAL.replace("100}", "{distribution: empirical, file: values.csv, column: took_ms}}")
    (tmp_path / "values.csv").write_text("took_ms\n100\n300\n")
    before = written(tmp_path, content).digest
    (tmp_path / "values.csv").write_text("took_ms\r\n100.0\r\n300\r\n\r\n")
    assert written(tmp_path, content).digest == before
    (tmp_path / "values.csv").write_text("took_ms\n100\n301\n")
    assert written(tmp_path, content).digest != before


@pytest.mark.parametrize(
    ("chain", "decision", "micros_per_saved_ms"),
    [("chain-a", "merge", 2.94), ("chain-b", "keep-serial", 4.09), ("chain-c", "keep-serial", None)],
)
def test_the_chains_decide_as_documented(
    chain: str, decision: str, micros_per_saved_ms: float | None
) -> None:
    evaluation = evaluate_parallel(shipped(chain).parallel_plan(2))
    assert evaluation.decision == decision
    if micros_per_saved_ms is None:
        assert evaluation.reason == "keep-serial: no independent branches"
    else:
        assert f"{micros_per_saved_ms} " in evaluation.reason


def test_the_plan_arithmetic_gets_means_growth_and_prices() -> None:
    changes = {
        "workflow.join_overhead_ms": {"distribution": "exponential", "mean_ms": 30},
        "workflow.join_growth_ms_per_branch": 5,
    }
    plan = shipped("gains").replace(changes).parallel_plan(3)
    assert plan.concurrency == 3
    assert plan.join_overhead_ms == 40
    priced = shipped("open").parallel_plan(2)
    assert [branch.duration_ms for branch in priced.branches] == [260, 160]
    assert (priced.shared_context_tokens, priced.cached_input_price_ratio) == (3200, 0.1)
    assert (priced.baseline_ms, priced.baseline_cost_micros) == (1269, 3786)


def test_plans_have_labels() -> None:
    scenario = shipped("peak", "plans=[serial, {plan: parallel, max_degree: 2}, {plan: adaptive}]")
    assert [choice.label for choice in scenario.plans] == ["serial", "parallel_max_2", "adaptive"]
    assert scenario.to_dict()["plans"] == ["serial", {"plan": "parallel", "max_degree": 2}, "adaptive"]


def test_the_repr_can_be_read() -> None:
    expected = "Scenario('peak': 20 slots fair_share, 2 branches, closed load, serial, parallel, adaptive)"
    assert repr(shipped("peak")) == expected


def test_warm_up_in_all_its_forms() -> None:
    assert shipped("peak", "experiment.warmup=auto").experiment.warmup == "auto"
    assert shipped("peak", "experiment.warmup={count: 5}").to_dict()["experiment"]["warmup"] == {"count": 5}
    assert shipped("peak", "experiment.warmup={time_s: 2}").to_dict()["experiment"]["warmup"] == {"time_s": 2}


@pytest.mark.parametrize("metric", METRICS)
def test_objectives_are_read_and_written_the_same(metric: str) -> None:
    slo = shipped("peak", f"slo.rules=['{metric}<= 4.5e2']").slo
    assert slo is not None
    assert str(slo.rules[0]) == f"{metric} <= 450"


def test_objectives_hold_or_not() -> None:
    at_most = SloRule(metric="utilisation", operator="<=", bound=0.8)
    assert [at_most.holds(value) for value in (0.7, 0.8, 0.9, float("nan"))] == [True, True, False, False]
    above = SloRule(metric="throughput_per_s", operator=">", bound=10.0)
    assert [above.holds(value) for value in (10.0, 10.1, float("nan"))] == [False, True, False]


def test_steps_give_periods() -> None:
    assert shipped("day").periods == (
        Period("off-peak", 0, 60),
        Period("peak", 60, 120),
        Period("recovery", 120, 180),
    )
    unnamed = "load.steps=[{at_s: 0, rate_per_s: 1}, {at_s: 5, rate_per_s: 2}]"
    rates = shipped("day", unnamed)
    assert [period.name for period in rates.periods] == ["step 1", "step 2"]
    assert rates.rates is not None
    assert rates.rates.edge_s.tolist() == [0, 5, 180]
    assert rates.rates.start_rate_per_s.tolist() == rates.rates.end_rate_per_s.tolist() == [1, 2]
    assert shipped("peak").periods == ()
    assert shipped("peak").rates is None
    assert shipped("day").rates is None


def test_a_profile_is_cut_scaled_and_put_on_the_runs_clock(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("window_start_s,requests_per_s\n0,10\n600,20\n1200,40\n")
    load = (
        "{kind: profile, file: day.csv, rate_scale: 0.5, first_s: 300, end_s: 1500, interpolation: constant}"
    )
    content = MINIMAL.replace("{kind: closed, active_requests: 2, requests: 10}", load)
    held = written(tmp_path, content).rates
    assert held is not None
    assert held.edge_s.tolist() == [0, 300, 900, 1200]
    assert held.start_rate_per_s.tolist() == held.end_rate_per_s.tolist() == [5, 10, 20]
    assert held.expected_count == 300 * 5 + 600 * 10 + 300 * 20
    straight = written(tmp_path, content.replace("constant", "linear")).rates
    assert straight is not None
    assert straight.edge_s.tolist() == [0, 300, 900, 1200]
    assert straight.start_rate_per_s.tolist() == [7.5, 10, 20]
    assert straight.end_rate_per_s.tolist() == [10, 20, 20]
    assert straight.end_s == 1200


def test_profile_periods_are_on_the_runs_clock_too() -> None:
    assert shipped("profile").periods == (Period("off-peak", 0, 5400), Period("peak", 5400, 14400))


def test_a_profile_out_of_order_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("window_start_s,requests_per_s\n0,10\n600,20\n600,40\n")
    load = "{kind: profile, file: day.csv, end_s: 600}"
    with pytest.raises(InputError) as caught:
        written(tmp_path, MINIMAL.replace("{kind: closed, active_requests: 2, requests: 10}", load))
    expected = f"{tmp_path}/day.csv:4: window_start_s must be > the time before it (got 600.0)"
    assert str(caught.value) == expected


def test_a_load_without_a_trace_says_so() -> None:
    with pytest.raises(LookupError, match="a closed load has no trace"):
        _ = shipped("peak").trace
