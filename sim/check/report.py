"""All checks on one run, and what they counted."""

from dataclasses import asdict, dataclass

from sim.check.conservation import check_conservation
from sim.check.list_scheduler import check_list_scheduler
from sim.check.little import check_little
from sim.check.replay import Run, check_isolated_replay
from sim.check.timeline import timeline
from sim.engine import EngineInput, EngineOutput


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
        return CheckReport()
    line = timeline(given, out)
    calls = check_conservation(given, out, line)
    counts = check_list_scheduler(given, out, line)
    return CheckReport(
        requests=out.requests,
        requests_exact=counts.exact,
        requests_bounded=counts.bounded,
        calls_conserved=calls,
        isolated_replays=check_isolated_replay(given, run),
        active_integral_ns=check_little(given, out),
    )
