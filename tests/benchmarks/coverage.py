"""How often a 95 % interval holds what it should: the mean wait of M/M/20 at utilisation 0.8, many seeds.

Run by `make bench-coverage`; writes `reports/bench/coverage.md`.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from joblib import Parallel, cpu_count, delayed

from sim.engine import Engine, select_engine
from sim.run.measure import measure
from sim.run.simulation import simulate_once
from sim.scenario import Scenario
from sim.statistics.interval import Estimate, estimate
from sim.statistics.theory import mmc_wait

SLOTS, RATE_PER_S, SERVICE_MS = 20, 16, 1000
LENGTHS, WARMUP, REPLICATIONS, SEEDS = (4_000, 10_000), 400, 10, 200
UTILISATION = RATE_PER_S * SERVICE_MS / 1000 / SLOTS
LEAST, MOST = 0.90, 0.99
REPORT = Path(__file__).parents[2] / "reports" / "bench" / "coverage.md"


@dataclass(frozen=True)
class Coverage:
    """How many of the seeds' intervals held theory, and how wide they were on average."""

    requests: int
    seeds: int
    covered: int
    half_width_ms: float
    mean_ms: float

    @property
    def share(self) -> float:
        return self.covered / self.seeds


def theory_ms() -> float:
    """Return Erlang C's mean wait."""
    return mmc_wait(RATE_PER_S / 1000, SERVICE_MS, SLOTS)


def scenario_of(seed: int, requests: int) -> Scenario:
    """Return M/M/20 at 16 erlangs."""
    duration = {"distribution": "exponential", "mean_ms": SERVICE_MS}
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "coverage",
            "provider": {"concurrency": SLOTS, "allocation": "fifo"},
            "workflow": {"name": "coverage", "branches": [{"id": "call", "duration_ms": duration}]},
            "load": {"kind": "open", "rate_per_s": RATE_PER_S, "requests": requests},
            "plans": ["parallel"],
            "experiment": {"seed": seed, "warmup": {"count": WARMUP}},
        }
    )


def interval(seed: int, replications: int, requests: int, engine: Engine | None) -> Estimate:
    """Return one seed's estimate of the mean wait (ms) with its 95 % interval."""
    scenario = scenario_of(seed, requests)
    waits_ms = []
    for replication in range(replications):
        run = simulate_once(scenario, scenario.plans[0], replication, engine=engine)
        waits_ms.append(measure(scenario, run).figures["waiting_ms_mean"])
    return estimate(waits_ms)


def coverage(
    seeds: int,
    requests: int,
    replications: int = REPLICATIONS,
    workers: int | None = None,
    engine: Engine | None = None,
) -> Coverage:
    """Return how many intervals of the seeds 1, 2, .. hold theory."""
    one = partial(interval, replications=replications, requests=requests, engine=engine)
    found = Parallel(n_jobs=workers or cpu_count())(delayed(one)(seed) for seed in range(1, seeds + 1))
    covered = sum(abs(each.mean - theory_ms()) <= (each.half_width or 0) for each in found)
    half_width_ms = math.fsum(each.half_width or 0 for each in found) / seeds
    return Coverage(requests, seeds, covered, half_width_ms, math.fsum(each.mean for each in found) / seeds)


def report(found: Sequence[Coverage]) -> str:
    """Return the result in words."""
    rows = "\n".join(
        f"| {each.requests:,} | {each.mean_ms:.2f} | {each.half_width_ms:.2f} | "
        f"{each.covered} of {each.seeds} | {100 * each.share:.1f} % |"
        for each in found
    )
    return f"""# Coverage of the 95 % interval

M/M/{SLOTS} at utilisation {UTILISATION:g}, in order of arrival.
Erlang C gives a mean wait of {theory_ms():.2f} ms.
For each seed, {REPLICATIONS} replications, the first {WARMUP} requests of each left out, give the mean wait
with its Student-t interval. From {100 * LEAST:g} to {100 * MOST:g} % of the intervals have to hold Erlang C.
Means of short runs are skewed, which costs some coverage. Made by `make bench-coverage` with the compiled
engine; every run was checked.

| requests | mean of the means, ms | mean half-width, ms | intervals that hold Erlang C | share |
|---|---|---|---|---|
{rows}
"""


def main() -> int:
    """Run the benchmark and write its report; 1 where the coverage is not as wanted."""
    found = [coverage(SEEDS, requests, engine=select_engine("compiled", 0)) for requests in LENGTHS]
    text = report(found)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(text)
    sys.stdout.write(text)
    return int(not all(LEAST <= each.share <= MOST for each in found))


if __name__ == "__main__":
    sys.exit(main())
