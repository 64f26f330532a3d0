"""Faults put into either engine are stopped on shipped scenarios, by the readable and by the compiled check.

The compiled engine runs as plain Python here, from the source of its kernel, so that a function of it can be
exchanged.
"""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sim.check import run as checks
from sim.check.run import check_run
from sim.contract.output import RunOutput
from sim.contract.run import RunInput
from sim.draws.run_input import run_input_of
from sim.engine.shared import cache, compiled, limiter, model, provider
from sim.errors import CheckError
from sim.scenario import load_scenario
from sim.scenario.model import PlanChoice

Patch = pytest.MonkeyPatch
NATIVE = "from sim.engine.native import helper, kernel, refer"
SORT = "from sim.engine.kernel_sort import sort"
Run = Callable[[RunInput], RunOutput]

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SHORT: dict[str, dict[str, Any]] = {
    "limits": {"load.requests": 200},
    "limits-reject": {"load.requests": 200},
    "cache-off-peak": {"load.requests": 20},
    "mix-peak": {f"workloads[{index}].load.duration_s": 4 for index in range(3)},
    "mix-peak-priority": {f"workloads[{index}].load.duration_s": 4 for index in range(3)},
    "mix-peak-weighted": {f"workloads[{index}].load.duration_s": 4 for index in range(3)},
}


def input_of(name: str) -> RunInput:
    scenario = load_scenario(SCENARIOS / f"{name}.yaml").replace(SHORT[name])
    return run_input_of(scenario, PlanChoice(plan="parallel"), 0)


def plain_kernels() -> Any:
    """Return the kernel's module with nothing in it compiled."""
    source = Path(compiled.__file__).with_name("kernels.py").read_text(encoding="utf-8")
    assert NATIVE in source
    assert SORT in source
    source = source.replace(NATIVE, "helper = kernel = refer = lambda one: one")
    module = ModuleType("plain_kernels")
    exec(source.replace(SORT, "def sort(values, count): values[:count].sort()"), module.__dict__)
    return module


kernels = plain_kernels()


def simpy_engine(_patch: Patch) -> Run:
    return model.run_shared


def compiled_engine(patch: Patch) -> Run:
    patch.setattr(compiled, "kernels", kernels)
    return compiled.run_shared


def buckets_that_refill_twice_as_fast(patch: Patch) -> None:
    refill, turn = limiter.TokenBucket._refill, kernels.turn

    def refill_twice(self: limiter.TokenBucket, now_ns: int) -> None:
        since_ns = self.since_ns
        refill(self, now_ns)
        self.level = min(self.capacity, self.level + self.per_ns * (now_ns - since_ns))

    def turn_twice(meter: Any, now: Any) -> None:
        since = meter[kernels.SINCE]
        turn(meter, now)
        more = meter[kernels.PER_NS] * (now - since) * meter[kernels.IS_BUCKET]
        meter[kernels.LEVEL] = min(meter[kernels.CAPACITY], meter[kernels.LEVEL] + more)

    patch.setattr(limiter.TokenBucket, "_refill", refill_twice)
    patch.setattr(kernels, "turn", turn_twice)


def a_cache_that_never_forgets(patch: Patch) -> None:
    def holds(world: Any, where: Any, index: Any) -> bool:
        kernels.note_written(world, where, index)
        here = world.shares[where, index]
        return bool(here[kernels.IS_CACHED] and here[kernels.WRITTEN_AT] != kernels.NONE)

    patch.setattr(
        cache.Entry,
        "is_fresh",
        lambda self, now_ns, _: any(at_ns <= now_ns for at_ns in self.readable_ns.values()),
    )
    patch.setattr(kernels, "holds", holds)


def grants_to_the_second_in_line(patch: Patch) -> None:
    pick_simpy, pick_compiled = provider.Provider.pick, kernels.pick

    def second_simpy(self: provider.Provider) -> Any:
        first = pick_simpy(self)
        if first is None:
            return None
        self.queue.remove(first)
        second = pick_simpy(self)
        first.is_queued = True
        self.queue.push(first)
        return second or first

    def second_compiled(world: Any, where: Any) -> Any:
        first = pick_compiled(world, where)
        if first == kernels.NOBODY:
            return first
        kernels.unqueue(world, where, first)
        second = pick_compiled(world, where)
        kernels.queue(world, where, first)
        return first if second == kernels.NOBODY else second

    patch.setattr(provider.Provider, "pick", second_simpy)
    patch.setattr(kernels, "pick", second_compiled)


def readable_check(patch: Patch) -> None:
    patch.setattr(checks, "check_of", lambda *_: "readable")


def compiled_check(patch: Patch) -> None:
    """Let the compiled check speak for itself: nothing explains what it finds."""
    patch.setattr(checks, "check_of", lambda *_: "compiled")
    patch.setattr(checks, "walk_provider", lambda *_: None)


FAULTS = [
    (buckets_that_refill_twice_as_fast, "limits"),
    (buckets_that_refill_twice_as_fast, "limits-reject"),
    (a_cache_that_never_forgets, "cache-off-peak"),
    (grants_to_the_second_in_line, "mix-peak"),
    (grants_to_the_second_in_line, "mix-peak-priority"),
    (grants_to_the_second_in_line, "mix-peak-weighted"),
    (grants_to_the_second_in_line, "limits"),
]


@pytest.mark.parametrize("check", [readable_check, compiled_check])
@pytest.mark.parametrize("engine", [simpy_engine, compiled_engine])
@pytest.mark.parametrize(("fault", "scenario"), FAULTS)
def test_a_fault_in_an_engine_is_stopped_by_each_check(
    fault: Callable[[Patch], None],
    scenario: str,
    engine: Callable[[Patch], Run],
    check: Callable[[Patch], None],
    monkeypatch: Patch,
) -> None:
    given = input_of(scenario)
    run = engine(monkeypatch)
    check(monkeypatch)
    assert check_run(given, run(given), run).requests_violated == 0
    fault(monkeypatch)
    with pytest.raises(CheckError, match=re.compile(r"request \d+")):
        check_run(given, run(given), run)
