"""No figure of a shipped scenario changes unseen: JSON and tables are those that were recorded."""

import json

import pytest

from tests.recorded import ENGINES, RECORDED, SCENARIOS, outputs_of

DIGESTS = json.loads(RECORDED.read_text(encoding="utf-8"))

# More than a second on SimPy: run by `make slow`.
LONG = {
    *("cache-off-peak", "cache-peak", "faulty", "limits", "limits-reject", "mix-peak", "mix-peak-priority"),
    *("mix-peak-weighted", "retry-budget", "retry-storm", "review"),
}


def runs() -> list[object]:
    return [
        pytest.param(
            scenario, engine, marks=[pytest.mark.slow] if engine == "simpy" and scenario in LONG else []
        )
        for scenario in SCENARIOS
        for engine in ENGINES
    ]


@pytest.mark.parametrize(("scenario", "engine"), runs())
def test_outputs_are_those_recorded(scenario: str, engine: str) -> None:
    assert outputs_of(scenario, engine) == DIGESTS[scenario][engine]
