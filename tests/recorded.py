"""What every shipped scenario gives on both engines, as digests: JSON, requests.csv and calls.csv.

The recorded ones were made before the modules moved into rooms. A change that leaves every figure alone
leaves the digests alone; `python -m tests.recorded` records a change that is meant.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import sim

SCENARIOS = sorted(path.stem for path in Path("scenarios").glob("*.yaml"))
ENGINES = ("simpy", "compiled")
RECORDED = Path("tests/data/recorded.json")

# What may differ: the version, the digest of the scenario's content, which check was run, and what is said of
# steady states beside the figures.
LEFT_OUT = {"slotsim_version", "scenario_sha256", "run_by", "capacity", "stability"}


def outputs_of(scenario: str, engine: str) -> dict[str, str]:
    """Return the digests of a scenario's outputs on an engine, by name."""
    result = sim.simulate(sim.load_scenario(f"scenarios/{scenario}.yaml"), engine=engine)
    summary = comparable(result.summary())
    return {
        "summary.json": digest(json.dumps(summary)),
        "requests.csv": digest(result.requests.to_csv(index=False)),
        "calls.csv": digest(result.calls.to_csv(index=False)),
    }


def comparable(value: Any) -> Any:
    """Return plain data without what may differ, floats to ten digits: sums may end otherwise elsewhere."""
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items() if key not in LEFT_OUT}
    if isinstance(value, list | tuple):
        return [comparable(each) for each in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def record() -> None:
    """Write the digests of every scenario on every engine."""
    recorded = {
        scenario: {engine: outputs_of(scenario, engine) for engine in ENGINES} for scenario in SCENARIOS
    }
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
