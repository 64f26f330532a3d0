"""Whether a run has a steady state: its label, from the offered load and from the trend of the backlog.

An open load is `overloaded` where it offers at least as much work as the slots can do, or where the backlog
grows through the arrivals. A closed load limits itself: its users wait for their answers, so that it is never
overloaded, only `near saturation` when more users would merely wait.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim.errors import ArgumentError
from sim.units import FloatArray, IntArray

NEAR_SATURATION = 0.9
WINDOWS = 20
TREND_CONFIDENCE = 0.95

# A rate given as a decimal may miss the slots by its last bits.
ROUNDING = 1e-9

Label = Literal["stable", "near saturation", "overloaded", "deterministic"]


@dataclass(frozen=True, slots=True)
class Stability:
    """The label of a run and the reason for it, in words."""

    label: Label
    reason: str


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


def open_stability(
    offered_load: float, slots: int, backlogs: Sequence[Backlog], deterministic: bool = False
) -> Stability:
    """Label a run whose arrivals do not wait for answers.

    Parameters
    ----------
    offered_load : erlangs, arrival rate x mean work of a request
        Of a trace: the work of the replayed requests over the time of their arrivals. NaN where unknown: the
        backlog alone then decides.
    slots : the provider's slots
    backlogs : one `Backlog` per replication
    deterministic : arrivals and service times are fixed; `overloaded` goes before `deterministic`

    Notes
    -----
    The backlog rises when two things hold. The mean of its increments over windows, all replications put
    together, is above 0 by a one-sided Student-t test at 95 %: under overload increments are independent with
    a positive mean, in a steady state they cancel out and the test is on the safe side. And in most
    replications the active requests never fell back to the number of slots in the last third of the arrivals:
    a load that merely grows within the slots does not count.
    """
    _check_slots(slots)
    share = offered_load / slots
    if share >= 1 - ROUNDING:
        return Stability("overloaded", f"the offered load of {offered_load:,.2f} reaches the {slots:,} slots")
    if _rises(backlogs, slots):
        return Stability("overloaded", _rise_in_words(backlogs, slots))
    load = (
        "the offered load is unknown"
        if math.isnan(share)
        else f"the offered load is {_percent(share)} of the slots"
    )
    if deterministic:
        return Stability("deterministic", f"arrivals and service times are fixed; {load}")
    if share >= NEAR_SATURATION:
        return Stability("near saturation", load)
    return Stability("stable", f"{load} and the backlog shows no rising trend")


def closed_stability(utilisation: float, deterministic: bool = False) -> Stability:
    """Label a run of users who wait for their answers, from the share of slot-time that was busy (0..1)."""
    busy = f"a closed load limits itself; the slots are {_percent(utilisation)} busy"
    if deterministic:
        return Stability("deterministic", f"service times are fixed; {busy}")
    return Stability("near saturation" if utilisation >= NEAR_SATURATION else "stable", busy)


def _rises(backlogs: Sequence[Backlog], slots: int) -> bool:
    never_fell_back = sum(one.lowest_in_last_third > slots for one in backlogs)
    if 2 * never_fell_back <= len(backlogs):
        return False
    increments = np.array([change for one in backlogs for change in one.increments], dtype=np.float64)
    return _mean_is_positive(increments)


def _mean_is_positive(values: FloatArray) -> bool:
    if len(values) < 2:
        return False
    from scipy.special import stdtrit  # noqa: PLC0415  a command's help must not wait for SciPy

    bound = (
        float(stdtrit(len(values) - 1, TREND_CONFIDENCE)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    )
    return float(values.mean()) > bound


def _rise_in_words(backlogs: Sequence[Backlog], slots: int) -> str:
    first, last = (float(np.mean([getattr(one, end) for one in backlogs])) for end in ("first", "last"))
    return (
        f"active requests grew from {first:,.0f} to {last:,.0f} while requests arrived, "
        f"and never fell back to the {slots:,} slots in the last third of that time"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _check_slots(slots: int) -> None:
    if slots < 1:
        raise ArgumentError("slots", "must be >= 1", slots)
