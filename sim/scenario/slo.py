"""Service-level objectives: rules such as `latency_ms_p95 <= 400`, or `peak:succeeded_share >= 0.99`."""

import math
import operator
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, Strict, WithJsonSchema

from sim.contract.figure import LATENCY, levels_of, slo_figures
from sim.errors import ArgumentError
from sim.scenario.base import Broken, BrokenRulesError, Model, Name
from sim.scenario.faults import nearest

REQUEST_METRICS = slo_figures("any")
"""What a rule may be about whoever it is about: all requests, those of a workload, those of a period."""
PERIOD_METRICS = slo_figures("any", "period")
METRICS = slo_figures("any", "period", "run")

COMPARISONS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
COMPARISON, NUMBER = r"(<=|>=|<|>)", r"([-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)"
SCOPE = r"(?:(\S(?:.*\S)?)\s*:\s*)?"
RULE = re.compile(rf"\s*{SCOPE}(\w+)\s*{COMPARISON}\s*{NUMBER}\s*")
RULE_SCHEMA = {
    "type": "string",
    "pattern": rf"^\s*{SCOPE}({'|'.join(METRICS)})\s*{COMPARISON}\s*{NUMBER}\s*$",
    "examples": ["latency_ms_p95 <= 400", "peak:succeeded_share >= 0.99"],
}


class SloRule(Model):
    """A figure and the bound that it has to keep; `scope` names a workload or a period."""

    scope: str | None = None
    metric: str
    operator: Literal["<=", "<", ">=", ">"]
    bound: float

    def __str__(self) -> str:
        return f"{self.subject} {self.operator} {self.bound:.15g}"

    @property
    def subject(self) -> str:
        """The figure, with whose it is: `latency_ms_p95`, `peak:latency_ms_p95`."""
        return self.metric if self.scope is None else f"{self.scope}:{self.metric}"

    @property
    def at_most(self) -> bool:
        """Whether the bound is an upper one."""
        return self.operator in ("<=", "<")

    def holds(self, value: float) -> bool:
        """Return whether `value` keeps the bound; NaN does not."""
        return not math.isnan(value) and bool(COMPARISONS[self.operator](value, self.bound))


def parse_rule(text: Any) -> Any:
    """Return `metric operator bound` as the fields of a rule."""
    if isinstance(text, SloRule):
        return text
    match = RULE.fullmatch(text) if isinstance(text, str) else None
    if match is None or not math.isfinite(float(match[4])):
        raise BrokenRulesError(Broken((), "must be a rule such as 'latency_ms_p95 <= 400'", text))
    scope, metric, comparison, bound = match.groups()
    if metric not in METRICS:
        raise BrokenRulesError(Broken((), f"must be about a known figure{nearest(metric, METRICS)}", text))
    return {"scope": scope, "metric": metric, "operator": comparison, "bound": float(bound)}


RuleText = Annotated[
    SloRule,
    BeforeValidator(parse_rule),
    PlainSerializer(str),
    WithJsonSchema(RULE_SCHEMA),
]


class Slo(Model):
    """Rules that a run has to keep."""

    plan: Name | None = Field(
        None, description="The plan that has to keep them; the recommended one unless given."
    )
    rules: Annotated[tuple[RuleText, ...], Strict(False)] = Field(
        min_length=1, description="Rules such as 'latency_ms_p95 <= 400'."
    )

    def broken_rules(self) -> Iterator[Broken]:
        for index, rule in enumerate(self.rules):
            if rule in self.rules[:index]:
                yield Broken(("rules", index), "must not repeat", str(rule))


def latency_bounds(slo: Slo | None) -> list[float]:
    """Return the latencies that the rules name, ascending, each once; none where there is no SLO."""
    return sorted({rule.bound for rule in (slo.rules if slo else ()) if rule.metric in levels_of(LATENCY)})


def rule_from(field: str, text: str) -> SloRule:
    """Return one rule as it is written.

    Raises
    ------
    ArgumentError
        It is none; `field` is what the message names.
    """
    try:
        return SloRule(**parse_rule(text))
    except BrokenRulesError as error:
        broken = (error.context or {})["broken"][0]
        raise ArgumentError(field, broken.rule, text) from None
