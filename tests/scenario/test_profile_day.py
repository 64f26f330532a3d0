"""A whole day in one run: a row for each ten minutes, with counts that agree with the profile."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from sim.result.experiment import simulate
from sim.result.result import Result
from sim.scenario import load_scenario
from tests.draws.test_arrivals import DAY_S, REAL_PROFILE, TRACES, WINDOW_S, WINDOWS, joint_p_value
from tests.small_scenarios import ROOT


def day(folder: Path, file: Path, rate_scale: float) -> Result:
    """Simulate a day of the sample workflow in parallel, with a period for each window."""
    periods = [
        {"name": f"{at // 3600:02}:{at // 60 % 60:02}", "from_s": at, "to_s": at + WINDOW_S}
        for at in range(0, DAY_S, WINDOW_S)
    ]
    load: dict[str, Any] = {
        "kind": "profile",
        "file": str(file),
        "rate_scale": rate_scale,
        "end_s": DAY_S,
        "periods": periods,
    }
    scenario = folder / "day.yaml"
    plain = {
        "schema_version": 1,
        "name": "day",
        "extends": str(ROOT / "scenarios" / "moderation.yaml"),
        "load": load,
        "plans": ["parallel"],
    }
    scenario.write_text(yaml.safe_dump(plain))
    return simulate(load_scenario(scenario))


def held_against(file: Path, result: Result, rate_scale: float) -> None:
    """Assert a row for each window, all requests in them, and counts that agree with the profile."""
    (plan,) = result.plans
    rates = np.loadtxt(file, delimiter=",", skiprows=1)[:WINDOWS, 1]
    counts = np.array([int(period.estimates["requests"].mean) for period in plan.periods])
    assert len(plan.periods) == WINDOWS
    assert counts.sum() == plan.checks.requests
    assert joint_p_value(counts, rates * rate_scale * WINDOW_S) > 0.01
    # What is left over at the end of a row is there at the beginning of the next.
    ends, starts = (
        [period.estimates[f"active_at_{edge}"].mean for period in plan.periods] for edge in ("end", "start")
    )
    assert ends[:-1] == starts[1:]
    assert plan.checks.requests_violated == 0


def test_a_day_of_the_sample_profile(tmp_path: Path) -> None:
    file = ROOT / "scenarios" / "data" / "profile.csv"
    held_against(file, day(tmp_path, file, 0.01), 0.01)


@pytest.mark.slow
@pytest.mark.skipif(not REAL_PROFILE.exists(), reason=f"no {REAL_PROFILE.name} in {TRACES} (SLOTSIM_TRACES)")
def test_a_real_day_on_the_sample_provider(tmp_path: Path) -> None:
    # A fifteenth of the real rate: the peak of its first day then nears the 47.6 requests/s of 20 slots.
    held_against(REAL_PROFILE, day(tmp_path, REAL_PROFILE, 1 / 15), 1 / 15)
