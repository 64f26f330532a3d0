"""All checks on one run, and what they counted."""

from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from sim.check.conservation import check_conservation, check_issued
from sim.check.history import violation
from sim.check.list_scheduler import ListSchedulerCounts, check_list_scheduler
from sim.check.little import check_little
from sim.check.replay import Run, check_isolated_replay
from sim.check.timeline import timeline
from sim.contract.plain import NO_CALL, EngineInput, EngineOutput

READABLE, COMPILED = "readable", "compiled"

MANY_CALLS = 100_000
"""From so many calls on a run on SimPy is worth the start of the compiled check, which is a second."""


def check_of(engine: str, calls: int) -> str:
    """Return which check a run gets: by its engine and its length alone, whatever was checked before.

    The compiled engine brings numba, and with it the compiled check; a run of `MANY_CALLS` calls is worth its
    start on SimPy too. Both checks find the same.
    """
    is_worth_it = engine == COMPILED or calls >= MANY_CALLS
    return COMPILED if is_worth_it and find_spec("numba") is not None else READABLE


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What the checks of one or more runs counted; a violation is never counted, it stops the run.

    `slot_numbers_left_out` counts the numbers of slots at which a wide request was not replayed. `run_by` is
    which checks walked the tables: `readable`, `compiled`, or of several runs both.
    """

    requests: int = 0
    requests_exact: int = 0
    requests_bounded: int = 0
    calls_conserved: int = 0
    isolated_replays: int = 0
    active_integral_ns: int = 0
    slot_numbers_left_out: int = 0
    run_by: tuple[str, ...] = ()

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

    @property
    def run_by_words(self) -> str:
        """Which checks walked the tables, in words."""
        return " and ".join(self.run_by)

    def summary(self) -> dict[str, Any]:
        """Return the counts as plain data; that of replays left out only where there are any."""
        counts = asdict(self)
        if not self.slot_numbers_left_out:
            del counts["slot_numbers_left_out"]
        return {**counts, "run_by": self.run_by_words, "requests_violated": self.requests_violated}

    def __add__(self, other: "CheckReport") -> "CheckReport":
        ours, theirs = asdict(self), asdict(other)
        run_by = tuple(sorted({*ours.pop("run_by"), *theirs.pop("run_by")}, reverse=True))
        return CheckReport(**{name: ours[name] + theirs[name] for name in ours}, run_by=run_by)


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
        return CheckReport(run_by=(READABLE,))
    run_by = check_of(out.engine, out.slot.size)
    counts = (check_large if run_by == COMPILED else check_tables)(given, out)
    replays = check_isolated_replay(given, run)
    return CheckReport(
        requests=out.requests,
        requests_exact=counts.exact,
        requests_bounded=counts.bounded,
        calls_conserved=int(np.count_nonzero(out.slot != NO_CALL)),
        isolated_replays=replays,
        active_integral_ns=out.active_integral_ns,
        slot_numbers_left_out=given.calls_per_request - replays,
        run_by=(run_by,),
    )


def check_tables(given: EngineInput, out: EngineOutput) -> ListSchedulerCounts:
    """Run every check of a run's tables; return how many requests were held to what."""
    line = timeline(given, out)
    check_conservation(given, out, line)
    counts = check_list_scheduler(given, out, line)
    check_little(given, out)
    return counts


def check_large(given: EngineInput, out: EngineOutput) -> ListSchedulerCounts:
    """Do the same in one compiled pass; where that finds a fault the readable checks explain it."""
    from sim.check.compiled import verdict  # noqa: PLC0415 (imports numba)

    found = verdict(given, out)
    if found.broken is not None:
        check_tables(given, out)
        raise violation(given, out, found.request, f"request {found.request}: {found.broken}")
    return ListSchedulerCounts(found.exact, out.requests - found.exact)
