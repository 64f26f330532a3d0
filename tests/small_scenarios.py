"""Scenarios as plain data, for tests that simulate little."""

from pathlib import Path
from typing import Any

import yaml

from sim.scenario import Scenario, load_scenario

Plain = dict[str, Any]

ROOT = Path(__file__).parent.parent
POLICY = {"id": "policy", "duration_ms": 260, "carries_shared_context": True}
WORDS = {"id": "sensitive_words", "duration_ms": 160, "carries_shared_context": True}
CONTEXT = {
    "tokens": 3200,
    "input_micros_per_ktok": 250,
    "prefix_reuse_ratio": 0.6,
    "cached_input_price_ratio": 0.1,
}


def lognormal(mean_ms: float, cv: float = 0.5) -> Plain:
    """Return a log-normal duration."""
    return {"distribution": "lognormal", "mean_ms": mean_ms, "cv": cv}


def exponential(mean_ms: float) -> Plain:
    """Return an exponential duration."""
    return {"distribution": "exponential", "mean_ms": mean_ms}


def open_load(rate_per_s: float = 38, requests: int = 200, **more: Any) -> Plain:
    """Return Poisson arrivals, unless `more` says otherwise."""
    return {"kind": "open", "rate_per_s": rate_per_s, "requests": requests, **more}


def closed_load(users: int = 10, requests: int = 100, **more: Any) -> Plain:
    """Return users who wait for their answers."""
    return {"kind": "closed", "active_requests": users, "requests": requests, **more}


def sample(
    load: Plain | None = None,
    *,
    branches: list[Plain] | None = None,
    slots: int = 20,
    allocation: str = "fair_share",
    plans: list[Any] | None = None,
    experiment: Plain | None = None,
    workflow: Plain | None = None,
    **more: Any,
) -> Scenario:
    """Return the sample workflow under a load, by default 10 users, with other parts where they are given."""
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "small",
            "provider": {"concurrency": slots, "allocation": allocation},
            "workflow": {
                "name": "moderation.classify",
                "branches": branches or [POLICY, WORDS],
                "join_overhead_ms": 35,
                "shared_context": CONTEXT,
                **(workflow or {}),
            },
            "load": load or closed_load(),
            "plans": plans or ["serial", "parallel"],
            "experiment": experiment or {},
            **more,
        }
    )


def one_call(load: Plain, duration_ms: Any = 100, slots: int = 1, **more: Any) -> Scenario:
    """Return a workflow of one call and no join."""
    branches = [{"id": "call", "duration_ms": duration_ms}]
    workflow = {"join_overhead_ms": 0, **more.pop("workflow", {})}
    return sample(load, branches=branches, slots=slots, plans=["parallel"], workflow=workflow, **more)


def from_file(folder: Path, load: Plain, **tables: str) -> Scenario:
    """Return a scenario of one exponential call, read from a file beside its tables (name: content)."""
    for name, content in tables.items():
        (folder / f"{name}.csv").write_text(content)
    plain = {
        "schema_version": 1,
        "name": "from-file",
        "provider": {"concurrency": 20},
        "workflow": {"name": "one", "branches": [{"id": "call", "duration_ms": exponential(100)}]},
        "load": load,
        "plans": ["parallel"],
    }
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(plain))
    return load_scenario(file)
