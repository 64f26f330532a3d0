"""A case: a scenario of which theory knows the answer."""

from dataclasses import dataclass
from typing import Any

from sim.draws.drawing import expected_requests
from sim.scenario import Scenario
from sim.verification.claim import Claim

SEED = 1
SERVICE_MS = 1000

Plain = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A scenario with one plan, how often it is run, and what theory claims about it."""

    scenario: Scenario
    replications: int
    claims: tuple[Claim, ...]

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.scenario.name

    @property
    def calls(self) -> int:
        """Calls simulated in all; what the case costs."""
        return self.replications * expected_requests(self.scenario) * len(self.scenario.workflow.branches)


def exponential(mean_ms: float = SERVICE_MS) -> Plain:
    """Return an exponential duration."""
    return {"distribution": "exponential", "mean_ms": mean_ms}


def lognormal(cv: float, mean_ms: float = SERVICE_MS) -> Plain:
    """Return a log-normal duration."""
    return {"distribution": "lognormal", "mean_ms": mean_ms, "cv": cv}


def gamma(cv: float, mean_ms: float = SERVICE_MS) -> Plain:
    """Return a gamma duration."""
    return {"distribution": "gamma", "mean_ms": mean_ms, "cv": cv}


def built(
    name: str,
    load: Plain,
    durations: tuple[Plain | float, ...],
    slots: int,
    *,
    allocation: str = "fifo",
    plan: str = "parallel",
    warmup: int = 0,
    join_ms: float = 0,
) -> Scenario:
    """Return the scenario of these calls under a load, the first `warmup` requests left out.

    The name keys the draws, so that no case shares its luck with another.
    """
    branches = [{"id": f"call_{number}", "duration_ms": each} for number, each in enumerate(durations, 1)]
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": name,
            "provider": {"concurrency": slots, "allocation": allocation},
            "workflow": {"name": name, "branches": branches, "join_overhead_ms": join_ms},
            "load": load,
            "plans": [plan],
            "experiment": {"seed": SEED, "warmup": {"count": warmup}},
        }
    )


def open_load(rate_per_s: float, requests: int, **arrivals: Any) -> Plain:
    """Return an open load, Poisson unless `arrivals` say otherwise."""
    return {"kind": "open", "rate_per_s": rate_per_s, "requests": requests, **arrivals}


def closed_load(users: int, requests: int, think_time_ms: Plain | float = 0) -> Plain:
    """Return a closed load."""
    return {"kind": "closed", "active_requests": users, "requests": requests, "think_time_ms": think_time_ms}
