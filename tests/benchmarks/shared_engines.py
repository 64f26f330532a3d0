"""The two engines for shared providers side by side, on the scenarios that ship, made long."""

from functools import partial
from pathlib import Path
from typing import Any

from sim.check.run import check_run
from sim.contract.output import RunOutput
from sim.contract.run import RunInput
from sim.draws.run_input import run_input_of
from sim.engine.choice import Run as EngineRun
from sim.engine.shared.compiled import run_shared as run_compiled
from sim.engine.shared.model import run_shared as run_simpy
from sim.scenario import load_scenario
from tests.benchmarks.measuring import ROUNDS, cpu_s, say, spread

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAMES = ("mix-peak", "faulty", "retry-budget", "limits", "cache-peak")
REQUESTS = {run_simpy: 3_000, run_compiled: 200_000}


def shared_rates() -> dict[str, dict[str, Any]]:
    """Return for each scenario the requests per CPU second of both engines and of the checks."""
    found = {name: rates(name) for name in NAMES}
    say(f"shared providers: {found}")
    return found


def rates(name: str) -> dict[str, Any]:
    given = {engine: run_of(name, requests) for engine, requests in REQUESTS.items()}
    out = run_compiled(given[run_compiled])
    assert same(run_simpy(given[run_simpy]), run_compiled(given[run_simpy]))
    rounds = [{engine: rate(engine, given[engine]) for engine in REQUESTS} for _ in range(ROUNDS)]
    checked = [
        len(out.outcome) / cpu_s(partial(check_run, given[run_compiled], out, run_compiled)) for _ in range(2)
    ]
    return {
        "simpy": spread([one[run_simpy] for one in rounds])._asdict(),
        "compiled": spread([one[run_compiled] for one in rounds])._asdict(),
        "times_as_fast": spread([one[run_compiled] / one[run_simpy] for one in rounds])._asdict(),
        "checked": max(checked),  # the first may compile
    }


def run_of(name: str, requests: int) -> RunInput:
    """Return about so many requests of a scenario, under its first plan."""
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    loads = ["load"]
    if len(scenario.parts) > 1:
        loads = [f"workloads[{index}].load" for index in range(len(scenario.parts))]
    each: dict[str, int | None] = {f"{load}.requests": requests // len(loads) for load in loads}
    longer = scenario.replace(each | dict.fromkeys((f"{load}.duration_s" for load in loads), None))
    return run_input_of(longer, longer.plans[0], 0)


def rate(engine: EngineRun, given: RunInput) -> float:
    """Return requests per CPU second."""
    return sum(len(one.join_ns) for one in given.workloads) / cpu_s(partial(engine, given))


def same(one: RunOutput, other: RunOutput) -> bool:
    """Return whether all requests and all slots are the same."""
    pairs = [(one.completion_ns, other.completion_ns), (one.outcome, other.outcome)]
    pairs.append((one.attempts.slot, other.attempts.slot))
    return all((ours == theirs).all() for ours, theirs in pairs)
