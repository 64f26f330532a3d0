"""How a request runs its branches: the plans that there are."""

from dataclasses import dataclass

SERIAL, PARALLEL, ADAPTIVE, WARM_FIRST = "serial", "parallel", "adaptive", "warm_first"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a plan does.

    Parameters
    ----------
    is_parallel
        Whether requests run in parallel; None where that is decided request by request.
    warms
        Whether one branch leads and the others start at its first token.
    """

    is_parallel: bool | None = None
    warms: bool = False


PLANS = {
    SERIAL: Plan(is_parallel=False),
    PARALLEL: Plan(is_parallel=True),
    ADAPTIVE: Plan(),
    WARM_FIRST: Plan(is_parallel=True, warms=True),
}
FIXED_PLANS = (SERIAL, PARALLEL)
"""The two that a decision is between."""
USUAL_PLANS = (*FIXED_PLANS, ADAPTIVE)
"""Those that are compared unless others are asked for."""
