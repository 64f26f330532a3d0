"""Generated scenario files, simulated on both engines and held against what their loads ask for.

A failing case prints its number and its files; `mixed_case(number)` makes it again.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sim.check.compiled import verdict
from sim.check.grants import walk_provider
from sim.check.shared_compiled import first_broken
from sim.check.timeline import timeline
from sim.contract.load import NO_USER
from sim.contract.output import CANCELLED, DEGRADED, NO_SLOT, OK, REJECTED, SUCCEEDED, RunOutput
from sim.contract.plain import PlainRunOutput, plain_view
from sim.contract.run import RunInput
from sim.draws.drawing import draw_arrivals, draw_think
from sim.draws.streams import Streams
from sim.engine import select_engine
from sim.errors import CheckError, SlotsimError
from sim.run.simulation import Run, simulate_once
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, OpenLoad, StepsLoad, TraceLoad
from sim.units import NS_PER_S, IntArray, s_to_ns
from tests.engines import every_column
from tests.mixed_scenarios import MixedCase, mixed_case
from tests.shared_checks import attempts_of, check_everything

QUICK, ALL, CHUNK = 100, 2_000, 20
CASES = [
    pytest.param(first, marks=() if first < QUICK else pytest.mark.slow) for first in range(0, ALL, CHUNK)
]


@pytest.mark.parametrize("first", CASES)
def test_mixed_scenarios(first: int, tmp_path: Path) -> None:
    for number in range(first, first + CHUNK):
        case = mixed_case(number)
        try:
            hold(case, tmp_path)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{case.story}") from error


def hold(case: MixedCase, folder: Path) -> None:
    """Hold everything that must hold of a case."""
    scenario = case.scenario(folder)
    simulated, compiled = simulate(case, scenario, "simpy"), simulate(case, scenario, "compiled")
    if isinstance(simulated, str) or isinstance(compiled, str):
        assert isinstance(simulated, str) is isinstance(compiled, str), (simulated, compiled)
        return
    assert tables(compiled) == tables(simulated)
    hold_checks(simulated)
    again = simulate(case, case.scenario(folder), "compiled")
    assert isinstance(again, Run)
    assert digest(again) == digest(compiled)
    for index, part in enumerate(scenario.parts):
        hold_load(part, index, simulated)
    if not case.on_grid:
        hold_orders(case, folder, compiled)
    hold_alone(case, folder, compiled)


def simulate(case: MixedCase, scenario: Scenario, name: str) -> Run | str:
    """Return the checked run of a case; or in words why it was refused."""
    engine = select_engine(name, 0)
    try:
        return simulate_once(scenario, case.plan(scenario), 0, engine=engine)
    except CheckError:
        raise
    except SlotsimError as error:
        return str(error)


def run_of(case: MixedCase, folder: Path) -> Run:
    """Return the run of a variant of a case that is not refused, on the compiled engine."""
    run = simulate(case, case.scenario(folder), "compiled")
    assert isinstance(run, Run), run
    return run


def tables(run: Run) -> dict[str, object]:
    """Return every column of a run's tables, and what the checks counted; not whose they are."""
    checks: dict[str, object] = {"checks": replace(run.checks, run_by=())}
    return checks | every_column(run.out)


def digest(run: Run) -> str:
    return sha256(repr(tables(run)).encode()).hexdigest()


def hold_checks(run: Run) -> None:
    """Hold the check to read and the compiled one, whichever the run chose; and a third way of checking."""
    if run.out.requests == 0:
        return
    given, out = run.given, run.out
    plain = plain_view(given)
    if plain is not None:
        assert isinstance(out, PlainRunOutput)
        assert verdict(plain, out.tables).broken is None
    line = timeline(given, out)
    for provider in range(len(given.providers)):
        walk_provider(given, out, line, provider)
    assert first_broken(given, out) is None
    check_everything(given, out)
    hold_ends(given, out)


def hold_ends(given: RunInput, out: RunOutput) -> None:
    """Hold that what ends at the instant at which others are cancelled has ended by itself, as drawn.

    So all branches that are done when the join begins are in it, and a request is degraded by others alone.
    """
    done: dict[int, set[int]] = {number: set() for number in np.flatnonzero(out.outcome <= DEGRADED).tolist()}
    for attempt in attempts_of(given, out):
        joined = attempt.finish <= out.join_start_ns[attempt.number]
        if attempt.outcome == OK and attempt.number in done and joined:
            done[attempt.number].add(attempt.call)
        lasts_ns, outcome = attempt.drawn()
        if attempt.outcome == CANCELLED and attempt.slot != NO_SLOT:
            assert attempt.finish - attempt.start < lasts_ns
        elif attempt.slot != NO_SLOT:
            assert (attempt.finish - attempt.start, attempt.outcome) == (lasts_ns, outcome)
    for number, calls in done.items():
        branches = given.workloads[out.workload[number]].branches
        assert (out.outcome[number] == SUCCEEDED) == (len(calls) == branches)


# What the loads ask for


def requests_of(run: Run, workload: int) -> dict[str, IntArray]:
    """Return a workload's requests in order of their draws: arrival, completion (ns) and user.

    `turned_away` is 1 where a rejection at the dispatch of an instant answered the request there and then.
    """
    out = run.out
    mine = np.flatnonzero(out.workload == workload)
    mine = mine[np.argsort(out.position[mine])]
    assert np.array_equal(out.position[mine], np.arange(len(mine)))
    turned_away = np.zeros(out.requests, dtype=np.int64)
    ended = out.attempts.finish_ns == out.completion_ns[out.attempts.number]
    turned_away[out.attempts.number[ended & (out.attempts.outcome == REJECTED)]] = 1
    found = {name: getattr(out, name)[mine] for name in ("arrival_ns", "completion_ns", "user")}
    return found | {"turned_away": turned_away[mine]}


def hold_load(part: Scenario, index: int, run: Run) -> None:
    """Hold a workload's requests against what its load says, worked out from the load alone."""
    found, load = requests_of(run, index), part.load
    streams = Streams(part.experiment.seed, 0, part.part_name)
    drawn_ns = draw_arrivals(part, streams)
    if drawn_ns is None:
        assert isinstance(load, ClosedLoad | StepsLoad)
        think_ns = draw_think(part, streams, len(found["user"]))
        hold_users(load, found, think_ns)
        return
    assert found["arrival_ns"].tolist() == drawn_ns.tolist()
    assert set(found["user"].tolist()) <= {NO_USER}
    if isinstance(load, TraceLoad):
        rows = len(Path(part.path).with_name(load.file).read_text(encoding="utf-8").splitlines()) - 1
        assert len(drawn_ns) == (load.count or rows - load.first)
    elif isinstance(load, OpenLoad):
        assert len(drawn_ns) == (load.requests or arrivals_due(load, drawn_ns))
    else:
        hold_rates(part, drawn_ns)


def arrivals_due(load: OpenLoad, drawn_ns: IntArray) -> int:
    """Return how many requests arrive before the end: worked out, or those of what was drawn."""
    end_ns = s_to_ns(load.duration_s or 0)
    if load.arrivals == "fixed":
        return (end_ns - 1) // round(NS_PER_S / load.rate_per_s)
    return int(np.count_nonzero(drawn_ns < end_ns))


def hold_rates(part: Scenario, drawn_ns: IntArray) -> None:
    """Hold arrivals at a changing rate: within the run, and none where the rate is 0."""
    rates = part.rates
    assert rates is not None
    assert drawn_ns.min(initial=0) >= 0
    assert drawn_ns.max(initial=0) < s_to_ns(rates.end_s)
    for (from_s, to_s), start, end in zip(
        pairwise(rates.edge_s.tolist()), rates.start_rate_per_s, rates.end_rate_per_s, strict=True
    ):
        if start == end == 0:
            assert not ((drawn_ns > s_to_ns(from_s)) & (drawn_ns < s_to_ns(to_s))).any()


def hold_users(load: ClosedLoad | StepsLoad, found: dict[str, IntArray], think_ns: IntArray) -> None:
    """Hold that every user asks exactly when it is due, until the end or the last request."""
    if isinstance(load, ClosedLoad):
        steps, end_ns = [(0, load.active_requests)], None
        assert len(found["user"]) == load.requests
    else:
        steps = [(s_to_ns(step.at_s), step.active_requests or 0) for step in load.steps]
        end_ns = s_to_ns(load.end_s)
    asked = 0
    for user in range(max(users for _, users in steps)):
        mine = np.flatnonzero(found["user"] == user)
        due_ns = first_wanted(steps, user, 0)
        for request in mine.tolist():
            assert found["arrival_ns"][request] == due_ns
            assert due_ns is not None
            assert end_ns is None or due_ns < end_ns
            answered = int(found["completion_ns"][request]), bool(found["turned_away"][request])
            due_ns = next_due(steps, user, *answered, int(think_ns[request]))
        if end_ns is not None:
            assert due_ns is None or due_ns >= end_ns
        asked += len(mine)
    assert asked == len(found["user"])


def first_wanted(steps: Sequence[tuple[int, int]], user: int, from_ns: int) -> int | None:
    """Return the first step from an instant on at which a user who is away is wanted; None for never."""
    return next((at_ns for at_ns, users in steps if at_ns >= from_ns and users > user), None)


def next_due(
    steps: Sequence[tuple[int, int]], user: int, answered_ns: int, is_late: bool, think_ns: int
) -> int | None:
    """Return when a user asks again after an answer; None for never.

    An answer comes before a step of the same instant, a late one after it. A user not wanted when its answer
    comes is away until a step wants it; one that would be thinking at a step that does not want it leaves
    there.
    """
    users = [users for at_ns, users in steps if at_ns < answered_ns + is_late][-1]
    if user >= users:
        return first_wanted(steps, user, answered_ns + is_late)
    ready_ns = answered_ns + think_ns
    for at_ns, users in steps:
        if answered_ns <= at_ns <= ready_ns and user >= users:
            return first_wanted(steps, user, at_ns)
    return ready_ns


# What must not matter


def hold_orders(case: MixedCase, folder: Path, run: Run) -> None:
    """Hold that the order of providers and workloads has no influence, but where it settles a tie.

    Left out is what the order is meant to settle. Requests of two workloads that arrive at one instant are
    numbered in order of workload. Attempts that end at one instant at two providers end in the order in which
    they started, which at one instant is the order of the providers. The first provider is that of branches
    that name none, which are made to name it, and of joins that hold a slot, where it stays the first.
    """
    rng = np.random.default_rng(case.number)
    for other, places in other_orders(case, run.given, run.out, rng):
        again = run_of(other, folder)
        for before, after in enumerate(places):
            assert_same_requests(requests_of(again, after), requests_of(run, before))


def other_orders(
    case: MixedCase, given: RunInput, out: RunOutput, rng: np.random.Generator
) -> Iterator[tuple[MixedCase, list[int]]]:
    """Yield the case in other orders, and where each of its workloads stands in them."""
    workloads = len(case.workloads)
    if "providers" in case.content and len(given.providers) > 1 and not ends_meet(given, out):
        first, *others = case.content["providers"]
        fixed = any(one["workflow"].get("join_holds_slot") for one in case.workloads)
        names = [first, *others[::-1]] if fixed else [*others[::-1], first]
        yield case.with_named_providers().with_providers(names), list(range(workloads))
    if workloads > 1 and not arrivals_meet(given, out):
        order = [*range(1, workloads), 0] if rng.random() < 0.5 else list(range(workloads))[::-1]
        yield case.with_workloads(order), [order.index(index) for index in range(workloads)]


def arrivals_meet(given: RunInput, out: RunOutput) -> bool:
    """Return whether two workloads with a provider in common have requests that arrive at one instant."""
    arrivals = [set(out.arrival_ns[out.workload == index].tolist()) for index in range(len(given.workloads))]
    pairs = combinations(range(len(arrivals)), 2)
    return any(
        providers_of(given, a) & providers_of(given, b) and arrivals[a] & arrivals[b] for a, b in pairs
    )


def ends_meet(given: RunInput, out: RunOutput) -> bool:
    """Return whether attempts at two providers end at one instant."""
    at = given.providers_of_attempts(out)
    ends = [set(out.attempts.finish_ns[at == provider].tolist()) for provider in range(len(given.providers))]
    return any(one & other for one, other in combinations(ends, 2))


def providers_of(given: RunInput, workload: int) -> set[int]:
    one = given.workloads[workload]
    return {one.provider_of(call) for call in range(one.calls_per_request)}


def hold_alone(case: MixedCase, folder: Path, run: Run) -> None:
    """Hold that a workload which shares no provider with others is served as if it were alone."""
    if len(case.workloads) < 2:
        return
    given = run.given
    for index in range(len(case.workloads)):
        others = [other for other in range(len(case.workloads)) if other != index]
        if not any(providers_of(given, index) & providers_of(given, other) for other in others):
            alone = run_of(case.with_workloads([index]), folder)
            assert_same_requests(requests_of(alone, 0), requests_of(run, index))


def assert_same_requests(found: dict[str, IntArray], wanted: dict[str, IntArray]) -> None:
    assert {name: column.tolist() for name, column in found.items()} == {
        name: column.tolist() for name, column in wanted.items()
    }


# That the cases are what they should be


def keys_of(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key of a scenario, alone and with its value where that is a plain one."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield key, None
            yield key, value if isinstance(value, bool | str) else None
            yield from keys_of(value)
    elif isinstance(content, list):
        for item in content:
            yield from keys_of(item)


WANTED = {
    *(("kind", kind) for kind in ("closed", "open", "trace", "steps", "profile")),
    *(("arrivals", arrivals) for arrivals in ("poisson", "fixed", "gamma")),
    *(("allocation", name) for name in ("fair_share", "fifo", "max_min", "priority", "weighted")),
    *(("enforcement", name) for name in ("token_bucket", "sub_window", "fixed_window")),
    *(("on_limit", name) for name in ("queue", "reject")),
    *(("siblings", name) for name in ("cancel", "finish")),
    *(("cached_tokens_count", counts) for counts in (True, False)),
    ("join_holds_slot", True),
    ("lend_reserved_slots", False),
    ("optional", True),
    ("format", "azure"),
    *((key, None) for key in ("rpm", "tpm", "itpm", "otpm", "concurrency_steps", "capacity", "ttl_s")),
    *((key, None) for key in ("deadline_ms", "timeout_ms", "hedge_after_ms", "budget_ratio", "join_needs")),
    *((key, None) for key in ("rate_per_s", "active_requests", "duration_s", "points", "periods", "count")),
    *((key, None) for key in ("follow_up", "ratio", "max_degree", "start_hour", "first_token_ms", "plan")),
}


def test_the_quick_cases_hold_everything_that_they_should() -> None:
    cases = [mixed_case(number) for number in range(QUICK)]
    found = {pair for case in cases for pair in keys_of(case.content)}
    assert WANTED - found == set()
    plans = [case.content["plans"][0] for case in cases]
    names = {plan["plan"] if isinstance(plan, dict) else plan for plan in plans}
    assert names == {"serial", "parallel", "adaptive", "warm_first"}
    assert any(case.policy for case in cases)
    assert {len(case.workloads) for case in cases} == {1, 2, 3}
    assert {len(case.content.get("providers", [0])) for case in cases} == {1, 2, 3}


def test_the_number_of_a_case_makes_it_again() -> None:
    assert mixed_case(7) == mixed_case(7)
    assert mixed_case(7).text != mixed_case(9).text


def test_orders_are_compared_in_many_of_the_quick_cases(tmp_path: Path) -> None:
    compared = 0
    for number in range(1, QUICK, 2):
        case = mixed_case(number)
        run = simulate(case, case.scenario(tmp_path), "compiled")
        if isinstance(run, Run):
            rng = np.random.default_rng(number)
            compared += sum(1 for _ in other_orders(case, run.given, run.out, rng))
    assert compared >= QUICK // 4


BOUNDS_CHECKED = """
import sys
from pathlib import Path
import numba
from tests.test_mixed_scenarios import ALL, hold_checks, mixed_case, run_of
assert numba.config.BOUNDSCHECK
for number in range(ALL):
    case = mixed_case(number)
    try:
        hold_checks(run_of(case, Path(sys.argv[1])))
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\\n{case.story}") from error
"""


@pytest.mark.slow
def test_no_kernel_reaches_beyond_an_array(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    (tmp_path / "case").mkdir()
    command = [sys.executable, "-c", BOUNDS_CHECKED, str(tmp_path / "case")]
    subprocess.run(command, env=environment, check=True)
