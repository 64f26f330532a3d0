"""Generated scenario files that mix everything a file may say; the number of a case makes the case again.

Half of the cases have all times on a grid of ticks, so that many things happen at one instant; the other half
have times that hardly ever meet. Loads are small: 5 to 40 requests.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from sim.scenario import Scenario, load_scenario
from sim.scenario.model import PlanChoice, TabledChoice
from tests.dice import Dice
from tests.mixed_loads import DURATION_COLUMNS, a_load

Plain = dict[str, Any]

MS_PER_MINUTE, MS_PER_HOUR = 60_000, 3_600_000
PLAIN_ALLOCATIONS = ("fair_share", "fifo", "max_min")
ALLOCATIONS = (*PLAIN_ALLOCATIONS, "priority", "weighted")
POLICY_HOUR = 6.0


class _Quoted(yaml.SafeDumper):
    """Writes all text in quotes, so that no name is read as something else, and no mapping as an alias."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


_Quoted.add_representer(str, lambda dumper, text: dumper.represent_scalar(TEXT, text, style='"'))
TEXT = "tag:yaml.org,2002:str"


@dataclass(frozen=True)
class MixedCase:
    """One scenario: its content, the tables beside it (name: text), perhaps a policy to run for its plan."""

    number: int
    on_grid: bool
    content: Plain
    tables: dict[str, str]
    policy: TabledChoice | None = None

    @property
    def text(self) -> str:
        """The scenario file."""
        return yaml.dump(self.content, Dumper=_Quoted, sort_keys=False, allow_unicode=True, width=110)

    @property
    def story(self) -> str:
        """Everything that it takes to look at the case."""
        tables = "".join(f"--- {name}\n{text}" for name, text in self.tables.items())
        return f"mixed_case({self.number}), policy {self.policy}\n{self.text}{tables}"

    def scenario(self, folder: Path) -> Scenario:
        """Return the scenario, read from files in `folder`."""
        for name, text in {"scenario.yaml": self.text, **self.tables}.items():
            (folder / name).write_text(text, encoding="utf-8")
        return load_scenario(folder / "scenario.yaml")

    def plan(self, scenario: Scenario) -> PlanChoice:
        """Return the plan to simulate."""
        return self.policy or scenario.plans[0]

    @property
    def workloads(self) -> list[Plain]:
        """What each workload states; a file without a list of them is one."""
        return self.content.get("workloads") or [self.content]

    def with_named_providers(self) -> "MixedCase":
        """Return the case with the provider of each branch named, so that the first is no default."""
        content = deepcopy(self.content)
        first = next(iter(content["providers"]))
        for one in content.get("workloads") or [content]:
            for branch in one["workflow"]["branches"]:
                branch.setdefault("provider", first)
        return replace(self, content=content)

    def with_providers(self, names: Sequence[str]) -> "MixedCase":
        """Return the case with its providers listed in another order."""
        listed = {name: self.content["providers"][name] for name in names}
        return replace(self, content={**self.content, "providers": listed})

    def with_workloads(self, indices: Iterable[int]) -> "MixedCase":
        """Return the case with these of its workloads, in this order."""
        listed = [self.content["workloads"][index] for index in indices]
        return replace(self, content={**self.content, "workloads": listed})


def mixed_case(number: int) -> MixedCase:
    """Return a case; the even ones are on a grid of ticks."""
    dice = Dice(number)
    scenario_name, *names = dice.names(7)
    is_plain = dice.chance(0.12)
    listed = not is_plain and dice.chance(0.85)
    providers = {name: a_provider(dice, is_plain) for name in names[: dice.whole(1, 3) if listed else 1]}
    several = not is_plain and dice.chance(0.8)
    plan = a_plan(dice, is_plain)
    tables: dict[str, str] = {}
    workloads = [
        a_workload(dice, name, providers if listed else {}, next(iter(providers.values())), plan, tables)
        for name in names[3 : 3 + (dice.whole(1, 3) if several else 1)]
    ]
    if is_plain:
        workloads[0]["workflow"] = plain_workflow(workloads[0]["workflow"])
    if several:
        share_out(dice, workloads, providers)
    else:
        workloads = [{key: workloads[0][key] for key in ("workflow", "load")}]
    experiment: dict[str, float] = {"seed": dice.whole(0, 10**6)}
    policy = a_policy(dice) if dice.chance(0.15) else None
    if policy or dice.chance(0.3):  # the hour turns a few ticks after the start
        experiment["start_hour"] = POLICY_HOUR - dice.ms(2, 12) / MS_PER_HOUR
    content = {
        "schema_version": 1,
        "name": scenario_name,
        **({"providers": providers} if listed else {"provider": next(iter(providers.values()))}),
        **({"workloads": workloads} if several else workloads[0]),
        "plans": [plan],
        "criteria": {"max_micros_per_saved_ms": dice.one_of(0, 4, 1e6), "min_marginal_gain_ratio": 0.05},
        "experiment": experiment,
    }
    return MixedCase(number, dice.on_grid, content, tables, policy)


def a_plan(dice: Dice, is_plain: bool) -> Any:
    """Return a plan, some of which cap what a request holds."""
    names = ["serial", "parallel", "parallel", "adaptive", "adaptive"]
    plan = dice.one_of(*names if is_plain else [*names, "warm_first"])
    if plan == "serial" or dice.chance(0.7):
        return plan
    return {"plan": plan, "max_degree": dice.whole(1, 3)}


def plan_name(plan: Any) -> Any:
    return plan["plan"] if isinstance(plan, dict) else plan


def a_policy(dice: Dice) -> TabledChoice:
    """Return plans by the fair share, some of them by the hour too."""
    tables = [tuple(dice.chance(0.5) for _ in range(dice.whole(1, 5))) for _ in range(dice.whole(1, 2))]
    return TabledChoice(hours=tuple(zip((0.0, POLICY_HOUR), tables, strict=False)))


# Providers


def a_provider(dice: Dice, is_plain: bool) -> Plain:
    """Return a provider; one that is not plain may step, limit, cache, keep slots and change its prices."""
    given: Plain = {
        "concurrency": dice.one_of(1, 2, 3, 4, 8),
        "allocation": dice.one_of(*PLAIN_ALLOCATIONS if is_plain else ALLOCATIONS),
    }
    if is_plain:
        return given
    if dice.chance(0.3):
        steps_s = dice.ascending_s(dice.whole(1, 3), 1, 12)
        given["concurrency_steps"] = [{"at_s": at_s, "concurrency": dice.whole(1, 6)} for at_s in steps_s]
    if dice.chance(0.45):
        given["limits"] = a_limit(dice)
    if dice.chance(0.4):
        given["prefix_cache"] = {"ttl_s": dice.s(1, 15), "min_tokens": dice.one_of(0, 0, 4)}
        if dice.chance(0.4):
            given["prefix_cache"]["capacity"] = dice.whole(1, 2)
    if dice.chance(0.2):
        window = {"name": dice.names(1)[0], "from_hour": POLICY_HOUR, "to_hour": dice.one_of(2, 9)}
        given["prices"] = [{**window, "ratio": dice.one_of(0, 0.5, 3)}]
    if dice.chance(0.3):
        given["lend_reserved_slots"] = False
    return given


def a_limit(dice: Dice) -> Plain:
    """Return limits tight enough to bind."""
    enforcement = dice.one_of("token_bucket", "token_bucket", "sub_window", "fixed_window")
    given: Plain = {"enforcement": enforcement}
    ticks = dice.whole(1, 6)
    if enforcement == "sub_window":
        given["sub_window_s"] = ticks * dice.tick_ms / 1000
    keys = [key for key in ("rpm", "tpm", "itpm", "otpm") if dice.chance(0.4)] or ["rpm"]
    for key in keys:
        amount = dice.whole(1, 4) if key == "rpm" else dice.whole(3, 20)
        per_tick = {"token_bucket": 2, "sub_window": ticks}.get(enforcement)
        whole = 3 * amount if per_tick is None else -(-amount * MS_PER_MINUTE // (per_tick * dice.tick_ms))
        given[key] = whole + (0 if dice.on_grid else dice.whole(0, 5))
    if enforcement == "token_bucket":
        given["burst"] = {key: dice.whole(1, 4) if key == "rpm" else dice.whole(1, 20) for key in keys}
    given["on_limit"] = dice.one_of("queue", "queue", "reject")
    given["rejections_count"] = dice.chance(0.3)
    given["cached_tokens_count"] = dice.chance(0.4)
    return given


# Workloads


def a_workload(  # noqa: PLR0917
    dice: Dice, name: str, providers: Plain, default: Plain, plan: Any, tables: dict[str, str]
) -> Plain:
    """Return a workload that calls some of the providers, each by its name or the first by default."""
    load = a_load(dice, tables)
    own_plan = a_plan(dice, False) if dice.chance(0.2) else None
    workflow = a_workflow(dice, providers, load, "warm_first" in {plan_name(plan), plan_name(own_plan)})
    given = {"name": name, "workflow": workflow, "load": load}
    if own_plan:
        given["plan"] = own_plan
    used = [providers.get(branch.get("provider"), default) for branch in workflow["branches"]]
    if workflow.get("join_holds_slot"):
        used.append(default)
    rejects = any(one.get("limits", {}).get("on_limit") == "reject" for one in used)
    if rejects and load["kind"] == "steps" and "active_requests" in load["steps"][0]:
        load["think_time_ms"] = dice.ms(1, 4)
    if any(one.get("prefix_cache") for one in used):
        workflow["shared_context"]["prefix_reuse_ratio"] = 0
    return given


def a_workflow(dice: Dice, providers: Plain, load: Plain, warms: bool) -> Plain:
    """Return a workflow of one to four branches."""
    name, *ids = dice.names(1 + dice.whole(1, 4))
    graph = dependencies(dice, ids)
    given: Plain = {
        "name": name,
        "branches": [a_branch(dice, one, graph[one], load, warms) for one in ids],
        "join_overhead_ms": dice.one_of(0, dice.duration(0, 3)),
        "join_growth_ms_per_branch": dice.one_of(0, 0, dice.ms(0, 1)),
        "join_holds_slot": dice.chance(0.35),
        "shared_context": {
            "tokens": dice.whole(0, 8),
            "input_micros_per_ktok": dice.one_of(0, 250, 10**6),
            "prefix_reuse_ratio": dice.one_of(0, 0.5),
            "cached_input_price_ratio": 0.1,
        },
    }
    called = list(providers)[: dice.whole(1, 3)] if dice.chance(0.5) else list(providers)[-1:]
    for branch in given["branches"]:
        if called and dice.chance(0.8):
            branch["provider"] = dice.one_of(*called)
    if dice.chance(0.55):
        add_faults(dice, given)
    if dice.chance(0.1):
        given["follow_up"] = {"reviewers": 2, "duration_ms": dice.duration(2, 9)}
    return given


def dependencies(dice: Dice, ids: list[str]) -> dict[str, list[str]]:
    """Return what each branch waits for: without cycles, and not only on branches before it."""
    order = [str(one) for one in dice.rng.permutation(ids)]
    edge = dice.one_of(0, 0, 0.4, 0.8)
    return {one: [other for other in order[:place] if dice.chance(edge)] for place, one in enumerate(order)}


def a_branch(dice: Dice, name: str, depends_on: list[str], load: Plain, warms: bool) -> Plain:
    """Return a branch, with the tokens that limits and caches may ask for."""
    columns = DURATION_COLUMNS if load.get("format") == "csv" else ()
    given: Plain = {
        "id": name,
        "duration_ms": dice.duration(1, 5),
        "depends_on": depends_on,
        "cost_micros": dice.whole(0, 9),
        "carries_shared_context": dice.chance(0.6),
        "first_token_ms": dice.duration(1, 3),
    }
    counts: Plain = {"input_tokens": dice.tokens(), "output_tokens": dice.tokens()}
    if load["kind"] == "trace":
        counts = {role: dice.one_of("trace", count) for role, count in counts.items()}
    if columns and dice.chance(0.6):
        given["duration_ms"] = {"distribution": "trace", "column": dice.one_of(*columns)}
    if dice.chance(0.2):
        rates = {"prefill_ms_per_token": dice.ms(0, 1), "decode_ms_per_token": dice.ms(0, 1)}
        given["duration_ms"] = {"distribution": "tokens", "overhead_ms": dice.ms(1, 3), **counts, **rates}
    else:
        given |= {role: count for role, count in counts.items() if dice.chance(0.7)}
    if not warms and dice.chance(0.2):
        given["carries_shared_context"] = False
        del given["first_token_ms"]
    if dice.chance(0.3):
        given["max_output_tokens"] = dice.whole(0, 9)
    return given


def plain_workflow(workflow: Plain) -> Plain:
    """Return the part of a workflow that plain engines run."""
    keys = ("id", "duration_ms", "depends_on", "cost_micros", "carries_shared_context")
    branches = [{key: branch[key] for key in keys} for branch in workflow["branches"]]
    kept = ("name", "join_overhead_ms", "join_growth_ms_per_branch", "join_holds_slot", "shared_context")
    return {**{key: workflow[key] for key in kept}, "branches": branches}


def add_faults(dice: Dice, workflow: Plain) -> None:
    """Let calls fail, be tried again, hedged, given up and done without."""
    branches = workflow["branches"]
    if dice.chance(0.5):
        workflow["retry"] = {
            "attempts": dice.whole(2, 4),
            "backoff_ms": dice.ms(0, 2),
            "multiplier": dice.one_of(1, 2),
            "max_backoff_ms": 10 * dice.tick_ms,
            "jitter": dice.one_of(0, 0, 1),
        }
        if dice.chance(0.4):
            workflow["retry"]["budget_ratio"] = dice.one_of(0, 0.25, 1)
    if dice.chance(0.6):
        workflow["failures"] = some_failures(dice)
    for branch in branches:
        if dice.chance(0.2):
            branch["failures"] = some_failures(dice)
        hangs = branch.get("failures", workflow.get("failures", {})).get("timeout", 0) > 0
        if hangs or dice.chance(0.3):
            branch["timeout_ms"] = dice.ms(3, 7)
        if "retry" in workflow and dice.chance(0.4):
            branch["hedge_after_ms"] = dice.ms(1, 2)
    if dice.chance(0.4):
        workflow["deadline_ms"] = dice.ms(2, 15)
    if dice.chance(0.4):
        workflow["join_needs"] = dice.whole(1, len(branches))
    elif dice.chance(0.6):
        for branch in branches:
            branch["optional"] = dice.chance(0.5)
    workflow["siblings"] = dice.one_of("cancel", "finish")


def some_failures(dice: Dice) -> Plain:
    return {
        "server_error": dice.one_of(0, 0.2),
        "rate_limited": dice.one_of(0, 0.2),
        "timeout": dice.one_of(0, 0, 0.2),
        "rejection_ms": dice.ms(1, 2),
    }


def share_out(dice: Dice, workloads: list[Plain], providers: Plain) -> None:
    """Give the workloads their shares; somebody without reserved slots must be able to get one."""
    least = min(
        min([one["concurrency"], *(step["concurrency"] for step in one.get("concurrency_steps", ()))])
        for one in providers.values()
    )
    spare, reserves = least - 1, dice.chance(0.4)
    for one in workloads:
        share = {"priority": dice.whole(-1, 1), "weight": dice.whole(1, 3)}
        share["reserved_slots"] = dice.whole(0, spare) if reserves else 0
        spare -= share["reserved_slots"]
        one["share"] = share
