"""How fast the engines are: one run, everyone side by side, written to reports/bench.

python -m tests.benchmarks.bench [--quick]
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from ctypes import CDLL
from pathlib import Path
from typing import Any, NamedTuple

from sim.report.output_folder import OutputFolder
from tests.benchmarks import commands, event_loop, measuring
from tests.benchmarks.bench_report import markdown, plot
from tests.benchmarks.contenders import (
    CPP_TABLES,
    EVENTS,
    HANDWRITTEN,
    IN_ORDER,
    PRODUCT,
    Contender,
    contenders,
)
from tests.benchmarks.measuring import Spread, ratios
from tests.benchmarks.shared_engines import shared_rates
from tests.benchmarks.workloads import NAMES

FOLDER = Path("reports/bench")
MANY_SLOTS = 2_000


class Goal(NamedTuple):
    """A ratio that the engines are held to."""

    of: str
    to: str
    workload: str
    slots: int
    at_least: float


GOALS = (
    Goal(EVENTS, HANDWRITTEN, "W1", 20, 100),
    Goal(EVENTS, HANDWRITTEN, "W2", 20, 130),
    Goal(EVENTS, HANDWRITTEN, "W3", 20, 75),
    Goal(IN_ORDER, HANDWRITTEN, "W1", 20, 250),
    Goal(IN_ORDER, HANDWRITTEN, "W2", 20, 350),
    *(Goal(EVENTS, CPP_TABLES, name, 20, 1 / 1.5) for name in NAMES),
    Goal(EVENTS, CPP_TABLES, "W3", MANY_SLOTS, 1 / 2),
    Goal(PRODUCT, HANDWRITTEN, "W2", 20, 1.3),
)
MOST_GROWTH = 1.25


def measure(everyone: Sequence[Contender], library: CDLL | None, quick: bool) -> dict[str, Any]:
    """Return everything that is measured."""
    on_commands = commands.limits(library, quick)
    found = {
        (name, slots, lognormal): told_rates(everyone, name, slots, lognormal)
        for name in NAMES
        for slots, lognormal in ((20, False), (20, True), (MANY_SLOTS, False))
        if not (lognormal and name == "W1")
    }
    sizes = (10**5, 10**6) if quick else (10**5, 10**6, 10**7)
    results: dict[str, Any] = {
        "machine": measuring.machine(),
        "rates": [
            {"workload": name, "slots": slots, "lognormal": lognormal, "requests_per_s": spreads(rates)}
            for (name, slots, lognormal), rates in found.items()
        ],
        "commands": on_commands,
        "goals": [judged(goal, found[goal.workload, goal.slots, False]) for goal in GOALS],
        "ns_per_request": measuring.scaling(sizes),
        "start_up_s": measuring.start_up_s(),
        "checked_per_s": measuring.check_rates(),
        "two_threads": measuring.two_threads()._asdict(),
        "shared": shared_rates(),
    }
    if not quick:
        results["peak_bytes_per_request"] = {
            f"{name}, {what}": measuring.bytes_per_request(name, what == "checked")
            for name in ("W2", "W3")
            for what in ("run", "checked")
        }
    slow, fast = (results["rates"][2]["requests_per_s"][name]["median"] for name in (PRODUCT, EVENTS))
    results["break_even_requests"] = {
        state: results["start_up_s"][f"engine, {state}"] / (1 / slow - 1 / fast)
        for state in ("from the cache", "compiling")
    }
    return results


def told_rates(
    everyone: Sequence[Contender], name: str, slots: int, lognormal: bool
) -> dict[str, list[float]]:
    """Return the rates on one workload, and say that they are there."""
    found = measuring.rates(everyone, name, slots, lognormal)
    measuring.say(f"rates, {name}, {slots:,} slots{', log-normal' if lognormal else ''}")
    return found


def spreads(found: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    return {name: measuring.spread(values)._asdict() for name, values in found.items()}


def judged(goal: Goal, found: dict[str, list[float]]) -> dict[str, Any]:
    """Return a goal with what was measured; `met` is None where one of the two could not run."""
    ratio: Spread | None = ratios(found, goal.of, goal.to)
    measured = None if ratio is None else ratio._asdict()
    return {
        **goal._asdict(),
        "ratio": measured,
        "met": None if ratio is None else ratio.median >= goal.at_least,
    }


def main(arguments: Sequence[str]) -> None:
    """Compare everyone, after making sure that all give the same latencies."""
    with tempfile.TemporaryDirectory() as folder:
        library = event_loop.build(Path(folder))
        everyone = contenders(library)
        agreed = measuring.assert_all_agree(everyone)
        measuring.say(f"{agreed} comparisons agree")
        results = measure(everyone, library, quick="--quick" in arguments)
    results["agreed"] = agreed
    with OutputFolder(FOLDER) as out:
        out.write_text("bench.json", json.dumps(results, indent=2) + "\n")
        out.write_text("bench.md", markdown(results))
        plot(results, out.path("bench.svg"))
    sys.stdout.write(markdown(results))


if __name__ == "__main__":
    main(sys.argv[1:])
