"""A kept run goes to another process whole where it is small, and is made again there where it is not."""

import pickle
from pathlib import Path

import pytest

from sim.result.experiment import run_one
from sim.run import kept_run
from sim.run.kept_run import KeptRun
from sim.scenario import load_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def kept(name: str) -> KeptRun:
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    _, found = run_one(scenario, scenario.plans[-1], 1, keep=True)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["peak-random", "faulty"])
def test_a_large_run_is_made_again_as_it_was(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = kept(name)
    monkeypatch.setattr(kept_run, "MOST_SENT", 0)
    sent = pickle.dumps(one)
    assert len(sent) < len(pickle.dumps(one.run)) / 2
    other = pickle.loads(sent)
    assert "run" not in vars(other)
    assert other.time_spent.requests == one.time_spent.requests
    for name_of_part in ("covered", "slowest"):
        again, before = (getattr(each.time_spent, name_of_part) for each in (other, one))
        assert again.request.tolist() == before.request.tolist()
        assert again.parts_ns.tolist() == before.parts_ns.tolist()
    assert "run" not in vars(other)
    assert other.run.out.latency_ns.tolist() == one.run.out.latency_ns.tolist()
    assert other.run.out.attempts.slot.tolist() == one.run.out.attempts.slot.tolist()
    assert other.run.replication == 1


def test_a_small_run_is_sent_whole() -> None:
    other = pickle.loads(pickle.dumps(kept("off-peak")))
    assert other.run.out.requests == 2_000
    assert "run" in vars(other)
