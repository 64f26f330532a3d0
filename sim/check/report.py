"""All checks on one run, and what they counted."""

from dataclasses import asdict, dataclass
from importlib.util import find_spec

import numpy as np

from sim.check.conservation import check_conservation, check_issued
from sim.check.history import violation
from sim.check.list_scheduler import ListSchedulerCounts, check_list_scheduler
from sim.check.little import check_little
from sim.check.replay import Run, check_isolated_replay
from sim.check.timeline import timeline
from sim.engine import NO_CALL, EngineInput, EngineOutput

MANY_CALLS = 100_000
"""From so many calls on that a process has checked, the compiled check is worth its start."""


class Tally:
    """How many calls this process has checked: what is chosen by it takes less time, and finds the same."""

    calls = 0

    @classmethod
    def is_many(cls, more: int, many: int | None = None) -> bool:
        """Count some more; return whether a compiled check is worth it by now."""
        cls.calls += more
        return cls.calls >= (MANY_CALLS if many is None else many) and find_spec("numba") is not None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What the checks of one or more runs counted; a violation is never counted, it stops the run."""

    requests: int = 0
    requests_exact: int = 0
    requests_bounded: int = 0
    calls_conserved: int = 0
    isolated_replays: int = 0
    active_integral_ns: int = 0

    @property
    def requests_violated(self) -> int:
        """Requests held to neither an exact latency nor a bound: 0, or the run had been stopped."""
        return self.requests - self.requests_exact - self.requests_bounded

    def __add__(self, other: "CheckReport") -> "CheckReport":
        ours, theirs = asdict(self), asdict(other)
        return CheckReport(**{name: ours[name] + theirs[name] for name in ours})


def check_run(given: EngineInput, out: EngineOutput, run: Run) -> CheckReport:
    """Run every check on a run; `run` is the engine that made it, for the isolated replay.

    Raises
    ------
    CheckError
        The first rule broken, with the history of the request it was broken for.
    """
    if out.requests == 0:
        check_issued(given, out)
        check_little(given, out)
        return CheckReport()
    counts = (check_large if Tally.is_many(out.slot.size) else check_tables)(given, out)
    return CheckReport(
        requests=out.requests,
        requests_exact=counts.exact,
        requests_bounded=counts.bounded,
        calls_conserved=int(np.count_nonzero(out.slot != NO_CALL)),
        isolated_replays=check_isolated_replay(given, run),
        active_integral_ns=out.active_integral_ns,
    )


def check_tables(given: EngineInput, out: EngineOutput) -> ListSchedulerCounts:
    """Run every check of a run's tables; return how many requests were held to what."""
    line = timeline(given, out)
    check_conservation(given, out, line)
    counts = check_list_scheduler(given, out, line)
    check_little(given, out)
    return counts


def check_large(given: EngineInput, out: EngineOutput) -> ListSchedulerCounts:
    """Do the same in one compiled pass; the story of a fault is told by the checks that are not."""
    from sim.check.compiled import verdict  # noqa: PLC0415 (imports numba)

    found = verdict(given, out)
    if found.broken is not None:
        check_tables(given, out)
        raise violation(given, out, found.request, f"request {found.request}: {found.broken}")
    return ListSchedulerCounts(found.exact, out.requests - found.exact)
