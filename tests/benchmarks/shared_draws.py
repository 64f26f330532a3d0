"""What shared draws are worth: serial against parallel on the log-normal sample, open load at 0.8.

Run by `make bench-coverage`; writes `reports/bench/shared-draws.md`.
"""

import sys
from pathlib import Path

from sim.result.experiment import simulate
from sim.scenario import load_scenario
from sim.statistics.interval import Difference, paired_difference

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "reports" / "bench" / "shared-draws.md"
REPLICATIONS, REQUESTS, MOST_UNDER_FIFO = 20, 4_000, 0.6
ALLOCATIONS = ("fifo", "fair_share", "max_min")


def difference(allocation: str, replications: int = REPLICATIONS, requests: int = REQUESTS) -> Difference:
    """Return parallel minus serial mean latency, paired by replication."""
    overrides = [
        f"provider.allocation={allocation}",
        "plans=[serial, parallel]",
        f"load.requests={requests}",
        "experiment.warmup={count: 300}",
    ]
    scenario = load_scenario(ROOT / "scenarios" / "open.yaml", overrides)
    result = simulate(scenario, replications=replications)
    serial, parallel = (result.plan(name).values["latency_ms_mean"] for name in ("serial", "parallel"))
    return paired_difference(serial, parallel)


def ratio(found: Difference) -> float:
    """Return the paired half-width as a share of the unpaired one."""
    return (found.half_width or 0) / (found.unpaired_half_width or 1)


def row(allocation: str, found: Difference) -> str:
    """Return a line of the table."""
    numbers = (found.mean, found.half_width or 0, found.unpaired_half_width or 0, ratio(found))
    cells = " | ".join(f"{number:.2f}" for number in numbers)
    return f"| {allocation} | {cells} | {found.variance_reduction or 0:.1f} |"


def report(found: dict[str, Difference]) -> str:
    """Return the table."""
    rows = "\n".join(row(allocation, each) for allocation, each in found.items())
    return f"""# What shared draws are worth

`scenarios/open.yaml` (log-normal service times, 38 requests/s on 20 slots, utilisation 0.8), parallel minus
serial mean latency in ms over {REPLICATIONS} replications of {REQUESTS:,} requests. Paired: both plans meet
the same requests. Unpaired: Welch's interval, as if they had been drawn independently. Under fifo the paired
half-width has to be at most {MOST_UNDER_FIFO:g} of the unpaired one. Made by `make bench-coverage`.

| allocation | difference | paired half-width | unpaired half-width | ratio | variance reduction |
|---|---|---|---|---|---|
{rows}
"""


def main() -> int:
    """Run the benchmark and write its report; 1 where shared draws are worth too little."""
    found = {allocation: difference(allocation) for allocation in ALLOCATIONS}
    text = report(found)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(text)
    sys.stdout.write(text)
    return int(ratio(found["fifo"]) > MOST_UNDER_FIFO)


if __name__ == "__main__":
    sys.exit(main())
