"""Small simulated scenarios that several tests report on, each simulated once."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import sim
from sim.answers.comparison import Comparison
from sim.answers.flip import FlipTable
from sim.report.compose import compose
from sim.report.content import ReportContent
from sim.report.render import html, markdown
from sim.result.result import Result

SCENARIOS = Path(__file__).parent.parent / "scenarios"
STEPS = (
    "[{at_s: 0, active_requests: 10, name: off-peak}, {at_s: 4, active_requests: 20, name: peak}, "
    "{at_s: 8, active_requests: 10, name: recovery}]"
)


def scenario(name: str, *overrides: str) -> sim.Scenario:
    return sim.load_scenario(SCENARIOS / f"{name}.yaml", overrides)


@cache
def off_peak_and_peak() -> Comparison:
    return sim.compare([scenario(name, "load.requests=200") for name in ("off-peak", "peak")])


@cache
def levels() -> FlipTable:
    return sim.flip(
        scenario("peak"), active=(10, 11), allocations=("fair_share",), requests_per_user=10, workers=1
    )


@cache
def overloaded() -> Result:
    return sim.simulate(
        scenario(
            "open",
            "load.rate_per_s=60",
            "load.requests=300",
            "experiment.replications=2",
            "experiment.warmup=none",
            "slo={rules: ['latency_ms_p95 <= 400', 'latency_ms_p99 <= 900']}",
        )
    )


@cache
def day() -> Result:
    return sim.simulate(scenario("day", f"load.steps={STEPS}", "load.end_s=12"))


@cache
def mix() -> Result:
    durations = [f"workloads[{place}].load.duration_s=5" for place in range(3)]
    return sim.simulate(scenario("mix-peak", *durations, "plans=[serial, parallel]"))


@cache
def hostile() -> Result:
    name = "<script>alert('1')</script> | **bold** & _it_"
    return sim.simulate(scenario("off-peak", "load.requests=20", "plans=[serial]").replace({"name": name}))


SUBJECTS: dict[str, Callable[[], Comparison | Result]] = {
    "comparison": off_peak_and_peak,
    "overloaded": overloaded,
    "day": day,
    "hostile": hostile,
    "mix": mix,
}


@cache
def content_of(name: str) -> ReportContent:
    """Return the report on a subject, drawn once; that of the comparison has levels and a command."""
    if name == "comparison":
        return compose(off_peak_and_peak(), levels(), "slotsim compare off-peak.yaml peak.yaml")
    return compose(SUBJECTS[name]())


@cache
def html_of(name: str) -> str:
    return html(content_of(name))


@cache
def markdown_of(name: str) -> str:
    return markdown(content_of(name))
