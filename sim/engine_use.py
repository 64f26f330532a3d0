"""Which engine a scenario runs on: what it needs beyond a plain run, and how large it is."""

from collections.abc import Iterator

from sim.engine import select_engine
from sim.errors import EngineError
from sim.scenario import Scenario


def engine_for(scenario: Scenario, name: str, requests: int) -> str:
    """Return the name of the engine that runs so many requests of a scenario.

    Parameters
    ----------
    name
        `simpy`, `compiled`, or `auto`: the compiled one where it is there, can run the scenario, and the run
        is large enough to pay for its start.

    Raises
    ------
    EngineError
        The compiled engine is asked for by name and lacks what the scenario needs, or numba is not there.
    """
    lacking = ", ".join(beyond_plain(scenario))
    if lacking and name == "compiled":
        raise EngineError(f"the compiled engine has no {lacking}; the engine simpy has")
    return "simpy" if lacking else select_engine(name, requests).name


def beyond_plain(scenario: Scenario) -> Iterator[str]:
    """Yield what a scenario has that only the engine for shared providers runs."""
    if scenario.is_plain:
        return
    providers = scenario.providers.values()
    parts = scenario.parts
    features = {
        "several workloads": len(parts) > 1,
        "several providers": len(providers) > 1,
        "concurrency steps": any(one.concurrency_steps for one in providers),
        "allocation by priority or weight": any(
            one.allocation in {"priority", "weighted"} for one in providers
        ),
        "rate limits": any(one.limits for one in providers),
        "prefix cache": any(one.prefix_cache for one in providers),
        "prices by the hour": any(one.prices for one in providers),
        "warm_first": any(part.has_warm_first for part in parts),
        "failures, retries or deadlines": any(part.has_faults for part in parts),
        "human review": any(part.workflow.follow_up for part in parts),
    }
    found = [feature for feature, there in features.items() if there]
    yield from found or ["shared providers"]
