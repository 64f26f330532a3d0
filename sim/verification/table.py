"""The table that holds the simulator against theory: every case simulated, checked, and judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sim.contract.load import Progress
from sim.draws.drawing import expected_requests
from sim.engine import select_engine
from sim.run.backend import Workers, backend_for
from sim.run.measure import measure
from sim.run.simulation import simulate_once
from sim.scenario.model import WarmupCut
from sim.statistics.agreement import CONFIDENCE, Verdict
from sim.verification.case import SERVICE_MS, Case
from sim.verification.cases import all_cases
from sim.verification.claim import Claim, Mean

# The quick form runs the cases that cost no more than this, at the same precision as the full one.
QUICK_CALLS = 200_000

Values = list[list[float]]


@dataclass(frozen=True)
class TheoryRow:
    """One quantity of one case: what theory says, what was simulated, and whether they agree.

    `precision` is the half-width relative to `Mean.scale`, and `precision_needed` what it has to stay under;
    both None where nothing is estimated.
    """

    case: str
    claim: Claim
    replications: int
    requests: int
    warmup: int
    verdict: Verdict

    @property
    def passed(self) -> bool:
        return self.verdict.passed

    @property
    def precision(self) -> float | None:
        half_width = self.verdict.simulated.half_width
        if half_width is None or not isinstance(self.claim.expected, Mean):
            return None
        return half_width / self.claim.expected.scale

    @property
    def precision_needed(self) -> float | None:
        return self.claim.expected.precision.ratio if isinstance(self.claim.expected, Mean) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data, numbers unrounded."""
        simulated = self.verdict.simulated
        return {
            "case": self.case,
            "quantity": self.claim.quantity,
            "unit": self.claim.unit,
            "source": self.claim.source,
            "theory_low": self.verdict.low,
            "theory_high": self.verdict.high,
            "simulated": simulated.mean,
            "half_width": simulated.half_width,
            "precision": self.precision,
            "precision_needed": self.precision_needed,
            "replications": self.replications,
            "requests": self.requests,
            "warmup_requests": self.warmup,
            "passed": self.passed,
            "words": self.verdict.words,
        }


@dataclass(frozen=True)
class TheoryTable:
    """All rows, in the order of the cases; `engine` is the name of the one that ran."""

    rows: tuple[TheoryRow, ...]
    engine: str

    @property
    def passed(self) -> bool:
        """Whether theory and simulation agree on every row; an empty table proves nothing."""
        return bool(self.rows) and all(row.passed for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return {
            "passed": self.passed,
            "confidence": CONFIDENCE,
            "engine": self.engine,
            "service_mean_ms": SERVICE_MS,
            "rows": [row.to_dict() for row in self.rows],
        }


def chosen_cases(quick: bool = False) -> tuple[Case, ...]:
    """Return the cases that ship, or those of them that are quick."""
    return tuple(case for case in all_cases() if not quick or case.calls <= QUICK_CALLS)


def verify_theory(
    quick: bool = False,
    workers: Workers = None,
    progress: Progress | None = None,
    engine: str = "auto",
    cases: Sequence[Case] | None = None,
) -> TheoryTable:
    """Simulate the cases, every run checked, and hold them against theory.

    Parameters
    ----------
    quick
        Only the cases of at most `QUICK_CALLS` calls, at the same precision.
    workers
        Processes, or a backend; the machine's cores unless given. The table does not depend on it.
    progress
        Called with the number of runs done so far.
    engine
        `simpy`, `compiled` or `auto`; both give the same table.
    cases
        Instead of those that ship; all of them, whatever `quick` says.

    Raises
    ------
    CheckError
        A run contradicts a check.
    EngineError
        The compiled engine is asked for and numba is not installed.
    """
    chosen = chosen_cases(quick) if cases is None else tuple(cases)
    tasks = [(case, number) for case in chosen for number in range(case.replications)]
    name = select_engine(engine, sum(expected_requests(case.scenario) for case, _ in tasks)).name
    observed: list[tuple[Values, str]] = []
    for outcome in backend_for(workers, len(tasks)).map(observe, tasks, (name,)):
        observed.append(outcome)
        if progress is not None:
            progress(len(observed))
    ends = accumulate(case.replications for case in chosen)
    rows = [
        row
        for case, end in zip(chosen, ends, strict=True)
        for row in judged(case, [values for values, _ in observed[end - case.replications : end]])
    ]
    return TheoryTable(tuple(rows), ", ".join(dict.fromkeys(name for _, name in observed)))


def observe(engine: str, task: tuple[Case, int]) -> tuple[Values, str]:
    """Return what each claim of a case looks at in one replication, and the engine's name."""
    case, replication = task
    run = simulate_once(case.scenario, case.scenario.plans[0], replication, engine=select_engine(engine, 0))
    measured = measure(case.scenario, run)
    return [list(claim.observe(run, measured)) for claim in case.claims], run.out.engine


def judged(case: Case, replications: Sequence[Values]) -> list[TheoryRow]:
    """Return the rows of a case; `replications` holds, for each, what each claim looked at."""
    warmup = case.scenario.experiment.warmup
    return [
        TheoryRow(
            case=case.name,
            claim=claim,
            replications=case.replications,
            requests=expected_requests(case.scenario),
            warmup=(warmup.count or 0) if isinstance(warmup, WarmupCut) else 0,
            verdict=claim.expected.hold([value for values in replications for value in values[index]]),
        )
        for index, claim in enumerate(case.claims)
    ]
