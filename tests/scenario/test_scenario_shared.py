"""Scenario keys of shared providers: their defaults, and what a file with several workloads yields."""

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sim.errors import InputError
from sim.scenario import Scenario, json_schema, load_scenario
from sim.scenario.base import Model
from sim.scenario.failures import Failures, Retry
from sim.scenario.limits import Burst, RateLimits
from sim.scenario.model import Experiment
from sim.scenario.provider import ConcurrencyStep, PrefixCacheRules, PriceWindow, Provider
from sim.scenario.workflow import FollowUp, Workflow, WorkflowBranch
from sim.scenario.workloads import Share, Workload

SCENARIOS = Path(__file__).parents[2] / "scenarios"
PLAIN = (
    "chain-a", "chain-b", "chain-c", "day", "gains", "moderation", "off-peak", "off-peak-random",
    "open", "open-light", "peak", "peak-random", "profile", "trace",
)  # fmt: skip
SHARED = sorted({path.stem for path in SCENARIOS.glob("*.yaml")} - set(PLAIN))
PRESETS = sorted((SCENARIOS / "presets").glob("*.yaml"))

# Where the keys beyond those of a plain scenario stand; all keys of the models below are such keys.
NEW_MODELS: dict[str, type[Model]] = {
    "provider.concurrency_steps": ConcurrencyStep,
    "provider.limits": RateLimits,
    "provider.limits.burst": Burst,
    "provider.prices": PriceWindow,
    "provider.prefix_cache": PrefixCacheRules,
    "workflow.failures": Failures,
    "workflow.retry": Retry,
    "workflow.follow_up": FollowUp,
    "workloads": Workload,
    "workloads.share": Share,
}
OLD_MODELS: dict[str, type[Model]] = {
    "provider": Provider,
    "workflow": Workflow,
    "workflow.branches": WorkflowBranch,
    "experiment": Experiment,
}
TWO = """
schema_version: 1
name: two
provider: {concurrency: 4, allocation: weighted}
workloads:
  - name: chat
    workflow:
      name: reply
      branches:
        - {id: draft, duration_ms: {distribution: empirical, file: took.csv, column: took_ms}}
    load: {kind: open, rate_per_s: 2, requests: 20}
    share: {weight: 3, reserved_slots: 1}
    slo: {rules: ['latency_ms_p50 <= 400']}
  - name: batch
    workflow: {name: reply, branches: [{id: draft, duration_ms: 100}]}
    load: {kind: closed, active_requests: 2, requests: 10}
    plan: serial
plans: [serial, parallel]
"""


def new_keys() -> list[tuple[str, type[Model], str]]:
    """Return every key that a plain scenario does without: where it stands, its model, its name."""
    models = NEW_MODELS | OLD_MODELS
    return [
        (at, model, key)
        for at, model in models.items()
        for key, field in model.model_fields.items()
        if at in NEW_MODELS or field.exclude_if
    ]


def expected_paths() -> set[str]:
    """Return the key paths that invalid scenarios are about, without places in lists and providers' names."""
    paths = set()
    for file in (SCENARIOS / "invalid").glob("*.yaml"):
        match = re.match(r"# expect: \d+: ([\w.\[\]]+)", file.read_text())
        if match:
            path = re.sub(r"\[\d+\]", "", match[1])
            paths.add(re.sub(r"^providers\.\w+", "provider", path))
    return paths


def written(folder: Path, content: str) -> Scenario:
    (folder / "took.csv").write_text("took_ms\n100\n300\n")
    path = folder / "scenario.yaml"
    path.write_text(content)
    return load_scenario(path)


def test_every_new_key_is_in_the_schema_with_a_description() -> None:
    definitions = json_schema()["$defs"]
    for at, model, key in new_keys():
        assert definitions[model.__name__]["properties"][key]["description"], f"{at}.{key}"
    assert {"providers", "workloads"} <= set(definitions["Scenario"]["properties"])


def test_every_new_key_has_an_invalid_scenario() -> None:
    told = expected_paths()
    wanted = {f"{at}.{key}" for at, _, key in new_keys()} | {"provider", "providers", "workloads"}
    lacking = {path for path in wanted if not any(f"{one}.".startswith(f"{path}.") for one in told)}
    assert len(wanted) > 60
    assert lacking == set()


def test_every_key_with_a_unit_names_it() -> None:
    words = {"_ms": "ms", "_s": "seconds", "_hour": "hour", "_ratio": "share", "_tokens": "tokens"}
    for _, model, key in new_keys():
        for suffix, unit in words.items():
            if key.endswith(suffix):
                assert re.search(rf"\b{unit}\b", model.model_fields[key].description or "", re.I), key


@pytest.mark.parametrize("name", PLAIN)
def test_scenarios_without_the_new_keys_are_plain(name: str) -> None:
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    assert scenario.is_plain
    assert scenario.parts == (scenario,)
    assert scenario.part_name == scenario.workflow.name
    assert not any((scenario.has_faults, scenario.has_random_faults, scenario.uses_tokens))
    new = {key for _, model, key in new_keys() if model in OLD_MODELS.values()}
    assert not new & {key for part in ("provider", "experiment") for key in scenario.to_dict()[part]}
    assert not new & set(scenario.to_dict()["workflow"])


@pytest.mark.parametrize("name", SHARED)
def test_scenarios_with_one_of_them_are_not(name: str) -> None:
    assert not load_scenario(SCENARIOS / f"{name}.yaml").is_plain


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_presets_go_with_any_workflow(path: Path, tmp_path: Path) -> None:
    base = load_scenario(SCENARIOS / "moderation.yaml").to_dict()
    del base["provider"]
    base["workflow"]["shared_context"]["prefix_reuse_ratio"] = 0
    for branch in base["workflow"]["branches"]:
        branch["first_token_ms"] = 50
    file = tmp_path / "merged.yaml"
    file.write_text(yaml.safe_dump({**base, "extends": str(path)}))
    scenario = load_scenario(file)
    assert scenario.provider.limits is not None
    assert not scenario.is_plain
    assert "# Example of 20" in path.read_text()


def test_a_preset_alone_lacks_what_a_scenario_has() -> None:
    for path in PRESETS:
        with pytest.raises(InputError) as caught:
            load_scenario(path)
        lines = [f"{path}:4: {key} is missing" for key in ("name", "workflow", "load")]
        assert str(caught.value).split("\n") == lines


OVERRIDES: list[tuple[str, Any]] = [
    ("provider.concurrency_steps=[{at_s: 60, concurrency: 9}]", None),
    ("provider.allocation=priority", None),
    ("provider.limits={rpm: 60}", "uses_tokens"),
    ("provider.prices=[{from_hour: 8, to_hour: 20, ratio: 2}]", None),
    ("workflow.failures.server_error=0.1", "has_faults"),
    ("workflow.branches[0].failures={server_error: 0.1}", "has_faults"),
    ("workflow.retry.attempts=2", "has_faults"),
    ("workflow.branches[0].timeout_ms=500", "has_faults"),
    ("workflow.branches[0].optional=true", "has_faults"),
    ("workflow.deadline_ms=500", "has_faults"),
    ("workflow.join_needs=1", "has_faults"),
    ("workflow.follow_up={reviewers: 1, duration_ms: 1000}", None),
    ("workflow.branches[0].input_tokens=100", None),
]


@pytest.mark.parametrize(("override", "property_name"), OVERRIDES)
def test_each_key_takes_a_scenario_out_of_the_plain_ones(override: str, property_name: str | None) -> None:
    plain = load_scenario(SCENARIOS / "peak.yaml")
    scenario = load_scenario(SCENARIOS / "peak.yaml", [override])
    assert not scenario.is_plain
    assert scenario.digest != plain.digest
    for name in ("has_faults", "uses_tokens"):
        assert getattr(scenario, name) == (name == property_name)


def test_a_key_at_its_default_changes_nothing() -> None:
    defaults = (
        "provider.lend_reserved_slots=true",
        "provider.prices=[]",
        "workflow.failures={}",
        "workflow.retry={attempts: 1}",
        "workflow.siblings=cancel",
        "workflow.branches[0].optional=false",
        "experiment.start_hour=0",
    )
    scenario, plain = (load_scenario(SCENARIOS / "peak.yaml", given) for given in (defaults, ()))
    assert scenario.is_plain
    assert scenario.to_dict() == plain.to_dict()
    assert scenario == plain


def test_rejections_are_faults_and_limits_have_defaults() -> None:
    limits = "provider.limits={rpm: 90, tpm: 5000, burst: {tpm: 700}}"
    scenario = load_scenario(SCENARIOS / "peak.yaml", [limits, "provider.limits.on_limit=reject"])
    assert scenario.has_faults
    assert not scenario.has_random_faults
    found = scenario.provider.limits
    assert found is not None
    assert found.stated == {"rpm": 90, "tpm": 5000}
    assert (found.capacity("rpm"), found.capacity("tpm"), found.window_s) == (90, 700, 60)
    parts = load_scenario(
        SCENARIOS / "peak.yaml", ["provider.limits={rpm: 100, enforcement: sub_window, sub_window_s: 1.5}"]
    ).provider.limits
    assert parts is not None
    assert (parts.per_window("rpm"), parts.window_s) == (2, 1.5)


@pytest.mark.parametrize(
    ("window", "spans"),
    [((8, 20), ((8, 20),)), ((22, 6), ((0, 6), (22, 24))), ((22, 0), ((22, 24),)), ((0, 24), ((0, 24),))],
)
def test_price_windows_may_run_past_midnight(
    window: tuple[float, float], spans: tuple[tuple[float, float], ...]
) -> None:
    assert PriceWindow(from_hour=float(window[0]), to_hour=float(window[1]), ratio=2.0).spans == spans


def test_branches_fail_as_the_workflow_does_unless_they_say_otherwise() -> None:
    scenario = load_scenario(
        SCENARIOS / "peak.yaml",
        ["workflow.failures={server_error: 0.1}", "workflow.branches[1].failures={rate_limited: 0.2}"],
    )
    first, second = (scenario.branch_failures(branch) for branch in scenario.workflow.branches)
    assert (first.server_error, first.rate_limited) == (0.1, 0)
    assert (second.server_error, second.rate_limited, second.rejection_ms) == (0, 0.2, 50)


def test_a_cache_keeps_prefixes_that_are_long_enough() -> None:
    changes = ("workflow.shared_context.prefix_reuse_ratio=0", "plans=[serial, warm_first]")
    branches = [f"workflow.branches[{index}].first_token_ms=50" for index in range(2)]
    for least, kept in ((3200, 3200), (3201, 0)):
        cache = f"provider.prefix_cache={{min_tokens: {least}}}"
        scenario = load_scenario(SCENARIOS / "peak.yaml", [cache, *changes, *branches])
        assert scenario.uses_tokens
        assert [scenario.cached_prefix_tokens(branch) for branch in scenario.workflow.branches] == [
            kept,
            kept,
        ]


def test_providers_have_names_and_an_order(tmp_path: Path) -> None:
    content = TWO.replace(
        "provider: {concurrency: 4, allocation: weighted}",
        "providers: {slow: {concurrency: 4}, fast: {concurrency: 2, limits: {rpm: 60}}}",
    ).replace("duration_ms: 100}", "duration_ms: 100, provider: fast}")
    chat, batch = written(tmp_path, content).parts
    assert list(chat.providers) == ["slow", "fast"]
    assert chat.provider is chat.providers["slow"]
    assert (list(chat.used_providers), list(batch.used_providers)) == (["slow"], ["fast"])
    assert (chat.uses_tokens, batch.uses_tokens) == (False, True)
    assert batch.provider_of(batch.workflow.branches[0]).concurrency == 2
    assert list(load_scenario(SCENARIOS / "peak.yaml").providers) == ["provider"]


def test_a_file_with_workloads_is_a_scenario_for_each(tmp_path: Path) -> None:
    chat, batch = written(tmp_path, TWO).parts
    assert chat.parts == batch.parts == (chat, batch)
    assert (chat.part_name, batch.part_name) == ("chat", "batch")
    assert (chat.share.weight, batch.share) == (3, Share())
    assert chat.fixed_plan is None
    assert batch.fixed_plan is not None
    assert batch.fixed_plan.label == "serial"
    assert (chat.slo is None, batch.slo is None) == (False, True)
    assert (chat.name, batch.name, chat.branch_means_ms, batch.branch_means_ms) == (
        "two",
        "two",
        (200,),
        (100,),
    )
    assert chat != batch
    assert chat.digest == batch.digest
    assert (
        repr(batch) == "Scenario('two', 'batch': 4 slots weighted, 1 branches, closed load, serial, parallel)"
    )


def test_what_is_written_out_is_the_whole_file(tmp_path: Path) -> None:
    chat, batch = written(tmp_path, TWO).parts
    content = chat.to_dict()
    assert content == batch.to_dict()
    assert [workload["name"] for workload in content["workloads"]] == ["chat", "batch"]
    assert not {"workflow", "load", "slo"} & set(content)
    again = written(tmp_path, yaml.safe_dump(content))
    assert again.to_dict() == content
    assert again.digest == chat.digest


def test_overrides_and_replacements_are_of_the_whole_file(tmp_path: Path) -> None:
    batch = written(tmp_path, TWO).parts[1]
    more = batch.replace({"workloads[1].load.requests": 99, "provider.concurrency": 8})
    assert (more.part_name, more.load.model_dump()["requests"], more.provider.concurrency) == ("batch", 99, 8)
    assert more.parts[0].load == batch.parts[0].load
    overridden = load_scenario(tmp_path / "scenario.yaml", ["workloads[0].load.rate_per_s=5"])
    assert overridden.load.model_dump()["rate_per_s"] == 5
    assert overridden.parts[1].overrides == ("workloads[0].load.rate_per_s=5",)
    with pytest.raises(InputError, match=r"^replace: workloads\[0\]\.load\.requests must be >= 1 \(got 0\)$"):
        batch.replace({"workloads[0].load.requests": 0})


def test_the_digest_is_of_all_workloads_and_their_tables(tmp_path: Path) -> None:
    before = written(tmp_path, TWO)
    (tmp_path / "took.csv").write_text("took_ms\n100\n301\n")
    assert load_scenario(tmp_path / "scenario.yaml").digest != before.digest
    assert before.replace({"workloads[1].share.priority": 1}).digest != before.digest


def test_parts_survive_pickling_together(tmp_path: Path) -> None:
    batch = written(tmp_path, TWO).parts[1]
    copy = pickle.loads(pickle.dumps(batch))
    assert copy == batch
    assert copy.part_index == 1
    assert copy.parts[1] is copy


def test_all_faults_of_all_workloads_are_told_at_once(tmp_path: Path) -> None:
    content = (
        TWO.replace("concurrency: 4", "concurrency: 0")
        .replace("weight: 3", "weihgt: 3")
        .replace("took_ms}}", "took}}")
        .replace("duration_ms: 100", "duration_ms: 0.5")
        .replace("requests: 10", "requests: 10, think_time_ms: -1")
    )
    with pytest.raises(InputError) as caught:
        written(tmp_path, content)
    at = f"{tmp_path}/scenario.yaml"
    assert str(caught.value).split("\n") == [
        f"{at}:4: provider.concurrency must be >= 1 (got 0)",
        f"{at}:12: workloads[0].share.weihgt is not a known key; did you mean 'weight'?",
        f"{at}:15: workloads[1].workflow.branches[0].duration_ms must be >= 1 (got 0.5)",
        f"{at}:16: workloads[1].load.think_time_ms must be >= 0 (got -1)",
    ]


def test_faults_of_tables_and_rules_name_the_workload(tmp_path: Path) -> None:
    content = TWO.replace("took_ms}}", "took}}").replace(
        "duration_ms: 100}", "duration_ms: 100, provider: a}"
    )
    with pytest.raises(InputError) as caught:
        written(tmp_path, content)
    rule = "workloads[1].workflow.branches[0].provider must be left out without providers (got 'a')"
    assert str(caught.value).split("\n") == [
        f"{tmp_path}/scenario.yaml:15: {rule}",
        f"{tmp_path}/took.csv:1: must have a column 'took'; did you mean 'took_ms'?",
    ]
