"""Every figure of a run, said once: its name, heading and unit, how it is shown, and who may use it.

Measuring, JSON, tables, SLO rules, sweeps, the terminal, reports and the README's reference take it from
here. Names have their unit last; they are plain text, so that they are keys and columns as they stand.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sim.contract.output import REQUEST_OUTCOMES

Kind = Literal["time", "share", "mean", "count"]
Better = Literal["lower", "higher"]
Holder = Literal["any", "period", "run"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Parameters
    ----------
    unit
        As it is shown; a share is 0..1 and shown in %.
    kind
        What decides on its digits: a time, a share, the mean of something, or a count.
    better
        Which way it gets better; None where neither way is.
    slo
        Whose figure an SLO may use: that of any requests, of a period or the whole run, of the whole run
        alone; None where no SLO may.
    usual
        What it is where nothing special happens, a number or the name of another figure; a table that shows
        what is special leaves it out there.
    column
        Its heading in a wide table, without unit, where that is shorter.
    listed
        Whether the table of a run on the terminal has it.
    """

    name: str
    heading: str
    unit: str
    kind: Kind
    better: Better | None = None
    slo: Holder | None = None
    usual: float | str | None = None
    column: str | None = None
    listed: bool = True

    @property
    def words(self) -> str:
        """Its heading with its unit."""
        return _with_unit(self.heading, self.unit)

    @property
    def title(self) -> str:
        """Its heading where cells have the % of a share with them."""
        return _with_unit(self.heading.capitalize(), "" if self.kind == "share" else self.unit)

    @property
    def column_title(self) -> str:
        """The same in a wide table."""
        return _with_unit(self.column, self.unit) if self.column else self.title

    @property
    def of_requests(self) -> bool:
        """Whether it is the share of issued requests of which something is true: a proportion."""
        return self.name in OUTCOME_SHARES or self.name.startswith(WITHIN)

    @property
    def scale(self) -> int:
        """What one is in the unit that is shown."""
        return 100 if self.kind == "share" else 1


def _with_unit(words: str, unit: str) -> str:
    return f"{words}, {unit}" if unit else words


PERCENTILES = {"p50": "0.5", "p90": "0.9", "p95": "0.95", "p99": "0.99", "p99_9": "0.999"}
TIME_LEVELS = ("mean", *PERCENTILES, "max")
LATENCY, WAITING, FOLLOW_UP = "latency_ms", "waiting_ms", "follow_up_ms"
DELIVERED_LATENCY = "delivered_latency_ms"
"""Kinds of time, each with a figure for every level."""

MEAN_LATENCY, MEAN_DELIVERED_LATENCY = "latency_ms_mean", "delivered_latency_ms_mean"
"""Of issued requests, none where one was not delivered; of delivered ones, which decisions are about."""
P50_LATENCY, P95_LATENCY, MAX_LATENCY = "latency_ms_p50", "latency_ms_p95", "latency_ms_max"
LATENCIES = (MEAN_LATENCY, P95_LATENCY, MAX_LATENCY)
MEAN_WAIT, MAX_WAIT = "waiting_ms_mean", "waiting_ms_max"
MAXIMA = (MAX_LATENCY, "delivered_latency_ms_max", MAX_WAIT)
"""What rules of an SLO demand of every run, not of the mean of runs."""
MEAN_FOLLOW_UP, P95_FOLLOW_UP = "follow_up_ms_mean", "follow_up_ms_p95"
UTILISATION, THROUGHPUT, ACTIVE_REQUESTS = "utilisation", "throughput_per_s", "active_requests_mean"
REQUESTS, PARALLEL_SHARE, SLOT_SHARE = "requests", "parallel_share", "slot_share"
COST_PER_REQUEST, COST_PER_SUCCESS = "cost_micros_per_request", "cost_micros_per_success"
OUTCOME_SHARES = tuple(f"{outcome}_share" for outcome in REQUEST_OUTCOMES)
SUCCEEDED_SHARE, DEGRADED_SHARE, FAILED_SHARE, TIMED_OUT_SHARE = OUTCOME_SHARES
ATTEMPTS_PER_CALL, REJECTED_SHARE, PREFIX_REUSE = "attempts_per_call", "rejected_share", "prefix_reuse_ratio"
REVIEWERS_NEEDED = "follow_up_reviewers_needed"
BACKLOG_AT_HALF, BACKLOG_AT_END = "follow_up_backlog_at_half", "follow_up_backlog_at_end"
ACTIVE_AT_START, ACTIVE_AT_END = "active_at_start", "active_at_end"


def of_delivered(name: str) -> str:
    """Return the figure that is of delivered requests alone; the same where it is of no latency."""
    return f"delivered_{name}" if name in levels_of(LATENCY) else name


def levels_of(time: str) -> tuple[str, ...]:
    """Return the figures of one kind of time: its mean, percentiles and maximum."""
    return tuple(f"{time}_{level}" for level in TIME_LEVELS)


def _times(
    time: str, heading: str, listed: str, slo: Holder | None = None, usual: str | None = None, **columns: str
) -> Iterable[Figure]:
    for name, level in zip(levels_of(time), TIME_LEVELS, strict=True):
        words = f"{heading} {level.replace('_', '.')}"
        column, is_listed = columns.get(level), level in listed.split()
        same_as = f"{usual}_{level}" if usual else None
        yield Figure(name, words, "ms", "time", "lower", slo, same_as, column, is_listed)


FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (
        *_times(LATENCY, "latency", "mean p50 p90 p95 p99 max", "any", mean="Mean latency", p95="p95"),
        *_times(DELIVERED_LATENCY, "delivered latency", "mean p50 p90 p95 p99 max", "any", LATENCY),
        *_times(WAITING, "waiting of a call,", "mean p95 max", "any", mean="Mean wait", max="Longest wait"),
        Figure(UTILISATION, "utilisation", "%", "share", slo="period"),
        Figure(THROUGHPUT, "throughput", "requests/s", "mean", "higher", "period"),
        Figure(ACTIVE_REQUESTS, "active requests, mean", "", "mean", slo="run"),
        Figure(PARALLEL_SHARE, "requests run in parallel", "%", "share"),
        Figure(COST_PER_REQUEST, "cost per request", "micros", "count", "lower", "any"),
        Figure(
            COST_PER_SUCCESS,
            "cost per delivered request",
            "micros",
            "count",
            "lower",
            "any",
            COST_PER_REQUEST,
        ),
        Figure(SUCCEEDED_SHARE, "succeeded", "%", "share", "higher", "any", 1),
        *(
            Figure(name, name.removesuffix("_share").replace("_", " "), "%", "share", "lower", "any", 0)
            for name in OUTCOME_SHARES[1:]
        ),
        Figure(ATTEMPTS_PER_CALL, "attempts per call", "", "mean", "lower", usual=1),
        Figure(REJECTED_SHARE, "attempts turned away", "%", "share", "lower", usual=0),
        Figure(PREFIX_REUSE, "prefix reuse", "%", "share", "higher", usual=0),
        *_times(FOLLOW_UP, "follow-up turnaround,", "mean"),
        Figure(BACKLOG_AT_HALF, "follow-up backlog at half time", "", "count", "lower", usual=0),
        Figure(BACKLOG_AT_END, "follow-up backlog at the end", "", "count", "lower", usual=0),
        Figure(REVIEWERS_NEEDED, "reviewers needed", "", "mean", "lower", listed=False),
        Figure(REQUESTS, "requests counted", "", "count", column="Requests", listed=False),
        Figure(SLOT_SHARE, "slot-time of all", "%", "share", listed=False),
        Figure(ACTIVE_AT_START, "active at start", "", "count", listed=False),
        Figure(ACTIVE_AT_END, "active at end", "", "count", listed=False),
    )
}
"""In the order in which tables show them."""

WITHIN = "share_within_"


def share_within(bound_ms: float) -> str:
    """Return the figure for the share of requests that are delivered within a time."""
    return f"{WITHIN}{bound_ms:g}_ms"


def shares_within(names: Iterable[str]) -> list[str]:
    """Return those of some figures that are such a share."""
    return [name for name in names if name.startswith(WITHIN)]


def bound_within(name: str) -> str:
    """Return the time of such a share in ms: `400` for `share_within_400_ms`."""
    return name.removeprefix(WITHIN).removesuffix("_ms")


def figure_of(name: str) -> Figure:
    """Return a figure by its name, the share within any time too."""
    if name.startswith(WITHIN):
        return Figure(name, f"within {bound_within(name)} ms", "%", "share", "higher")
    return FIGURES[name]


def slo_figures(*holders: Holder) -> tuple[str, ...]:
    """Return the figures that an SLO may use, holder after holder."""
    return tuple(name for holder in holders for name, figure in FIGURES.items() if figure.slo == holder)
