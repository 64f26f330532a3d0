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
    """What the checks of one or more runs counted; a violation is never counted, it stops the run.

    `slot_numbers_left_out` counts the numbers of slots at which a wide request was not replayed.
    """

    requests: int = 0
    requests_exact: int = 0
    requests_bounded: int = 0
    calls_conserved: int = 0
    isolated_replays: int = 0
    active_integral_ns: int = 0
    slot_numbers_left_out: int = 0

    @property
    def requests_violated(self) -> int:
        """Requests held to neither an exact latency nor a bound: 0, or the run had been stopped."""
        return self.requests - self.requests_exact - self.requests_bounded

    @property
    def replays_words(self) -> str:
        """How many isolated replays were made, and of how many where that is not all of them."""
        made = f"{self.isolated_replays:,}"
        if not self.slot_numbers_left_out:
            return made
        return f"{made} of {self.isolated_replays + self.slot_numbers_left_out:,}"

    def summary(self) -> dict[str, int]:
        """Return the counts as plain data; that of replays left out only where there are any."""
        counts = asdict(self)
        if not self.slot_numbers_left_out:
            del counts["slot_numbers_left_out"]
        return {**counts, "requests_violated": self.requests_violated}

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
    replays = check_isolated_replay(given, run)
    return CheckReport(
        requests=out.requests,
        requests_exact=counts.exact,
        requests_bounded=counts.bounded,
        calls_conserved=int(np.count_nonzero(out.slot != NO_CALL)),
        isolated_replays=replays,
        active_integral_ns=out.active_integral_ns,
        slot_numbers_left_out=given.calls_per_request - replays,
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
