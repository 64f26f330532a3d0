"""Which plan a policy says a request should run: for a service, without anything beyond the standard library.

The file can be copied into a service as it is; `slotsim policy SCENARIO --write policy.json` writes what it
reads.
"""

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

KIND, VERSION = "slotsim-policy", 1
HOURS_PER_DAY = 24


class Choice(NamedTuple):
    """What a request should run: `serial` or `parallel`, and how many slots it may hold at once."""

    plan: str
    max_degree: int


def load_policy(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the policy of a JSON file.

    Raises
    ------
    ValueError
        It is no policy, or one of a version that this module does not know.
    """
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  one import less for a service
        policy = json.load(file)
    known = isinstance(policy, dict) and policy.get("kind") == KIND and policy.get("version") == VERSION
    if not known:
        raise ValueError(f"{path} must be a {KIND} of version {VERSION}")
    return dict(policy)


def choose_plan(policy: Mapping[str, Any], active_requests: int, hour: float = 0.0) -> Choice:
    """Return what a request that arrives now should run.

    Parameters
    ----------
    policy
        From `load_policy`.
    active_requests
        Requests that have arrived and are not answered yet, this one and all that arrive with it included.
    hour
        The hour of the day, 0 to 24, with its fraction.

    Raises
    ------
    ValueError
        There are no active requests, or it is no hour of a day.
    """
    if active_requests < 1:
        raise ValueError(f"active_requests must be >= 1 (got {active_requests!r})")
    if not 0 <= hour < HOURS_PER_DAY:
        raise ValueError(f"hour must be >= 0 and < {HOURS_PER_DAY} (got {hour!r})")
    window = [each for each in policy["hours"] if each["from_hour"] <= hour][-1]
    level = [each for each in window["levels"] if each["active_from"] <= active_requests][-1]
    return Choice(level["plan"], level["max_degree"])
