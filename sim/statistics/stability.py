"""Whether a run has a steady state: what its label is made of, and the trend of a backlog.

An open load is `overloaded` where it asks for at least as much as a constraint has, or where the backlog
grows through the arrivals. A closed load limits itself: its users wait for their answers, so that it is never
overloaded, only `near saturation` when more users would merely wait, or `limited by` what they wait for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sim.errors import ArgumentError
from sim.units import FloatArray, IntArray

NEAR_SATURATION = 0.9
WINDOWS = 20
TREND_CONFIDENCE = 0.95

OVERLOADED: Final = "overloaded"
COLLAPSED, NEAR, STABLE = "collapsed", "near saturation", "stable"
DETERMINISTIC, LIMITED_BY = "deterministic", "limited by"


@dataclass(frozen=True, slots=True)
class Stability:
    """The label of a run and the reason for it, in words.

    Parameters
    ----------
    label
        `overloaded`, `collapsed`, `limited by` something, `near saturation`, `stable` or `deterministic`.
    constraint
        What is loaded most, such as `rpm of main`; None where nothing is asked for.
    is_finite
        Whether the load is one that ends by nature, such as a trace: its figures are what they are.
    """

    label: str
    reason: str
    constraint: str | None = None
    is_finite: bool = False

    @property
    def is_overloaded(self) -> bool:
        """Whether a constant load asks for more than there is."""
        return self.label == OVERLOADED and not self.is_finite

    @property
    def has_no_steady_state(self) -> bool:
        """Whether figures are those of a finite run, and nothing follows from them."""
        return self.label in (OVERLOADED, COLLAPSED) and not self.is_finite


@dataclass(frozen=True, slots=True)
class Backlog:
    """How the number of active requests went through one replication's arrivals.

    `increments` are its changes over equal windows of time, the first window (the filling of an empty system)
    left out; empty where the arrivals take no time. `lowest_in_last_third` is its lowest value in the last
    third of that time.
    """

    first: int
    last: int
    lowest_in_last_third: int
    increments: tuple[int, ...]


def backlog(
    arrivals_ns: IntArray, completions_ns: IntArray, start_ns: int | None = None, end_ns: int | None = None
) -> Backlog:
    """Return how active requests went from `start_ns` to `end_ns`, by default from first to last arrival.

    Without requests and without a period nothing went on, at no time.

    Parameters
    ----------
    arrivals_ns, completions_ns : int64 arrays, shape (n,), in any order
        Every request of the run, those from before the period too.
    start_ns, end_ns : the period, where the load changes during the run

    Raises
    ------
    ArgumentError
        The period ends before it starts.
    """
    last = int(arrivals_ns.max(initial=0))
    start = int(arrivals_ns.min(initial=last)) if start_ns is None else start_ns
    end = last if end_ns is None else end_ns
    if end < start:
        raise ArgumentError("end_ns", f"must be >= start_ns, {start}", end)

    def active(time_ns: int) -> int:
        return int(np.count_nonzero(arrivals_ns <= time_ns) - np.count_nonzero(completions_ns <= time_ns))

    marks = [active(start + (end - start) * k // WINDOWS) for k in range(WINDOWS + 1)]
    last_third = start + (end - start) * 2 // 3
    # The count falls only at completions, so its lowest value stands at one of them or at the beginning.
    falls = np.sort(completions_ns[(completions_ns > last_third) & (completions_ns <= end)])
    rises = np.sort(arrivals_ns[(arrivals_ns > last_third) & (arrivals_ns <= end)])
    changes = np.searchsorted(rises, falls, "right") - np.searchsorted(falls, falls, "right")
    lowest = active(last_third) + int(changes.min(initial=0))
    increments = tuple(np.diff(marks)[1:].tolist()) if end > start else ()
    return Backlog(marks[0], marks[-1], lowest, increments)


def rises(backlogs: Sequence[Backlog], fitting: float) -> bool:
    """Return whether the backlog grows through the arrivals of the replications.

    Parameters
    ----------
    fitting : as many active requests as there are where all that is asked for just fits, without queues

    Notes
    -----
    Two things must hold. The mean of the increments over windows, all replications together, is above 0 by a
    one-sided Student-t test at 95 %: under overload increments are independent with a positive mean, in a
    steady state they cancel out and the test is on the safe side. And in most replications active requests
    never fell back to those that fit in the last third of the arrivals: a load that merely grows within what
    there is does not count.
    """
    never_fell_back = sum(one.lowest_in_last_third > fitting for one in backlogs)
    if 2 * never_fell_back <= len(backlogs):
        return False
    increments = np.array([change for one in backlogs for change in one.increments], dtype=np.float64)
    return _mean_is_positive(increments)


def rise_in_words(backlogs: Sequence[Backlog], fitting: float) -> str:
    """Return how the backlog grew."""
    first, last = (float(np.mean([getattr(one, end) for one in backlogs])) for end in ("first", "last"))
    return (
        f"active requests grew from {first:,.0f} to {last:,.0f} while requests arrived, and never fell back "
        f"to the {fitting:,.0f} that there is room for in the last third of that time"
    )


def _mean_is_positive(values: FloatArray) -> bool:
    if len(values) < 2:
        return False
    from scipy.special import stdtrit  # noqa: PLC0415  a command's help must not wait for SciPy

    bound = (
        float(stdtrit(len(values) - 1, TREND_CONFIDENCE)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    )
    return float(values.mean()) > bound
