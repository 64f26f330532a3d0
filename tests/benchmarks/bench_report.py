"""The results of the benchmark as Markdown and as a plot."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from tests.benchmarks.contenders import (
    CIMBA,
    CIW,
    CPP,
    CPP_RECURSION,
    CPP_TABLES,
    EVENTS,
    HANDWRITTEN,
    IN_ORDER,
    PRODUCT,
)
from tests.benchmarks.workloads import NAMES

ORDER = (HANDWRITTEN, PRODUCT, CIW, CIMBA, EVENTS, IN_ORDER, CPP_TABLES, CPP, CPP_RECURSION)
LEFT_OUT = {
    CIW: "has no fork and join and no cap per request: W1 only, with 20 slots as it is slow",
    CIMBA: "W1 only, of which it keeps the mean but no table",
    HANDWRITTEN: "with 20 slots only, as it scans its waiters",
    IN_ORDER: "only where calls start in order, so not under a fair share",
}
COLOURS = ("#0072B2", "#E69F00", "#009E73")


def markdown(results: dict[str, Any]) -> str:
    """Return the report."""
    parts = (
        "# How fast the engines are",
        introduction(results),
        "## Ratios",
        goals_table(results),
        "## Commands",
        commands_table(results),
        "## Thousand requests per second",
        rates_table(results),
        "\n".join(f"- {name}: {why}." for name, why in left_out(results).items()),
        "![Requests per second](bench.svg)",
        "## Shared providers",
        shared_table(results),
        "## Size, start, memory",
        rest(results),
    )
    return "\n\n".join(parts) + "\n"


def left_out(results: dict[str, Any]) -> dict[str, str]:
    """Return why who is not run on what."""
    reasons = dict(LEFT_OUT)
    for name, package in ((CIW, "ciw"), (CIMBA, "cimba")):
        if results["machine"][package] is None:
            reasons[name] = "not installed"
    if results["machine"]["compiler"] is None:
        reasons[CPP_TABLES] = reasons[CPP] = reasons[CPP_RECURSION] = "there is no g++"
    return reasons


def introduction(results: dict[str, Any]) -> str:
    machine = ", ".join(
        f"{key} {value}" if key not in ("processor", "system", "compiler") else str(value)
        for key, value in results["machine"].items()
        if value is not None
    )
    return f"""Measured on {machine}.

CPU seconds of one thread, everyone in turn, five rounds: the median, and in brackets the least and the
greatest. Poisson arrivals at 0.8 of the slots. W1: one exponential call of 100 ms; W2: two calls of 260 and
160 ms, join 35 ms, first come first served; W3: W2 under a fair share. Before anything is timed, everyone
gives the same latencies from the same draws, to the nanosecond ({results["agreed"]} comparisons). Made by
`make bench`."""


def goals_table(results: dict[str, Any]) -> str:
    lines = [
        "| | against | workload | slots | times as fast | at least | |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for goal in results["goals"]:
        met = {True: "met", False: "missed", None: "not run"}[goal["met"]]
        names = f"| {goal['of']} | {goal['to']} | {goal['workload']} | {goal['slots']:,} "
        lines.append(f"{names}| {shown(goal['ratio'])} | {goal['at_least']:.3g} | {met} |")
    return "\n".join(lines)


def commands_table(results: dict[str, Any]) -> str:
    lines = [
        "From the shell, wall seconds except against the C++ loop; the median of the rounds.",
        "",
        "| | measured | | limit | |",
        "|---|---:|---|---:|---|",
    ]
    for one in results["commands"]:
        bound = f"at {'least' if one['at_least'] else 'most'} {one['limit']:g}"
        met = "met" if one["met"] else "missed"
        lines.append(f"| {one['what']} | {number(one['measured'])} | {one['unit']} | {bound} | {met} |")
    return "\n".join(lines)


def rates_table(results: dict[str, Any]) -> str:
    lines = ["| workload | " + " | ".join(ORDER) + " |", "|---" * (len(ORDER) + 1) + "|"]
    for row in results["rates"]:
        label = f"{row['workload']}, {row['slots']:,} slots" + (", log-normal" if row["lognormal"] else "")
        cells = [shown(row["requests_per_s"].get(name), 1_000) for name in ORDER]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shown(spread: dict[str, float] | None, unit: float = 1) -> str:
    """Return a spread as text, in the given unit."""
    if spread is None:
        return ""
    median, least, most = (number(spread[key] / unit) for key in ("median", "least", "most"))
    return f"{median} [{least}..{most}]"


def number(value: float) -> str:
    """Return three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def shared_table(results: dict[str, Any]) -> str:
    lines = [
        "Shipped scenarios, made long: several workloads, failures and retries, limits, a prefix cache.",
        "",
        "| thousand requests per second | SimPy | compiled | times as fast | checked |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, found in results["shared"].items():
        both = f"{shown(found['simpy'], 1_000)} | {shown(found['compiled'], 1_000)}"
        faster = shown(found["times_as_fast"])
        lines.append(f"| {name} | {both} | {faster} | {number(found['checked'] / 1_000)} |")
    return "\n".join(lines)


def rest(results: dict[str, Any]) -> str:
    return size_table(results) + "\n\n" + "\n".join(f"- {fact}" for fact in facts(results))


def size_table(results: dict[str, Any]) -> str:
    by_size = results["ns_per_request"]
    lines = [
        "| nanoseconds per request of the kernel alone, event by event, memory touched before | "
        + " | ".join(NAMES)
        + " |",
        "|---|---:|---:|---:|",
    ]
    for size in by_size[NAMES[0]]:
        cells = " | ".join(f"{by_size[name][size]:.0f}" for name in NAMES)
        lines.append(f"| {size:,} requests | {cells} |")
    return "\n".join(lines)


def facts(results: dict[str, Any]) -> Iterator[str]:
    """Yield one sentence for each thing measured beside the rates."""
    by_size = results["ns_per_request"]
    growths = ", ".join(f"{max(of.values()) / min(of.values()):.2f} ({name})" for name, of in by_size.items())
    yield f"Greatest over least time per request: {growths}; at most 1.25 is the goal."
    for what, seconds in results["start_up_s"].items():
        yield f"Start-up, {what}: {seconds:.2f} s of processor time."
    for state, requests in results["break_even_requests"].items():
        yield f"The compiled engine pays for its start, {state}, from {requests:,.0f} requests of W2 on."
    for name, rate in results["checked_per_s"].items():
        yield f"Requests of {name} checked per second: {rate:,.0f}."
    faster = shown(results["two_threads"])
    yield f"Two replications of W3 on two threads: {faster} times as fast as one by one (wall)."
    for what, size in results.get("peak_bytes_per_request", {}).items():
        if size is None:
            continue
        yield f"Peak memory per request, {what}: {size:.0f} bytes, draws included."


def plot(results: dict[str, Any], path: Path) -> None:
    """Draw requests per second with 20 slots, on a logarithmic axis."""
    rows = {row["workload"]: row["requests_per_s"] for row in results["rates"] if plain(row)}
    names = [name for name in ORDER if any(name in row for row in rows.values())]
    figure = Figure(figsize=(9, 0.55 * len(names) + 1.2), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(rows)
    for at, (workload, row) in enumerate(rows.items()):
        able = [place for place, name in enumerate(names) if name in row]
        medians = [row[names[place]]["median"] for place in able]
        axes.barh(np.array(able) + at * height, medians, height, label=workload, color=COLOURS[at])
    axes.set_yticks(np.arange(len(names)) + height, names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(left=1_000)
    axes.set_xlabel("requests per second and core (20 slots)")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    with mpl.rc_context({"svg.hashsalt": "bench", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})


def plain(row: dict[str, Any]) -> bool:
    return row["slots"] == 20 and not row["lognormal"]
