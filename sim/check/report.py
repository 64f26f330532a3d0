"""What the checks of a run counted, and which checks a run gets."""

from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

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
