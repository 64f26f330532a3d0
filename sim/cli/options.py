"""The options that several commands share, and how they are stated over a scenario file."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from sim.cli.terminal import say, say_json, wrote
from sim.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sim.result.experiment import Precision
    from sim.run.backend import Backend

ScenarioFile = Annotated[str, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).")]
ScenarioFiles = Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Scenario files (YAML).")]
AnyScenarioFiles = Annotated[
    list[str] | None, typer.Argument(metavar="SCENARIO...", help="Scenario files (YAML).")
]
Theory = Annotated[bool, typer.Option("--theory", help="Hold the simulator against queueing theory.")]
Quick = Annotated[bool, typer.Option("--quick", help="With --theory: the cheap cases alone.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="State a value over the file; repeatable."),
]
Seed = Annotated[int | None, typer.Option(help="Seed of every random stream.")]
Replications = Annotated[int | None, typer.Option(help="Independent runs of each plan.")]
Warmup = Annotated[
    str | None,
    typer.Option(metavar="none|auto|COUNT|SECONDSs", help="What the statistics leave out: none, 200, 10s."),
]
Plans = Annotated[
    list[str] | None,
    typer.Option("--plan", metavar="PLAN", help="Simulate this plan alone; repeatable. parallel_max_2 too."),
]
PrecisionText = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="PERCENT",
        help="Add replications until the half-width is so small, such as 2%.",
    ),
]
PrecisionFigure = Annotated[
    str | None, typer.Option(metavar="NAME", help="The figure it is about [default: latency_ms_mean]")
]
MaxReplications = Annotated[
    int | None, typer.Option(help="Where --precision stops in any case [default: 200]")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; results do not depend on it [default: the cores]")
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on the workers of a Dask scheduler, such as tcp://HOST:8786."),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|simpy|compiled",
        help="Both engines give the same results; auto takes the compiled one for large runs.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, numbers unrounded.")]
Out = Annotated[
    str | None, typer.Option(metavar="DIR", help="Write summary, tables, report and figures there.")
]
KeepTables = Annotated[
    bool, typer.Option("--keep-tables", help="Write every replication's tables, not the first's alone.")
]
Curve = Annotated[
    bool, typer.Option("--curve/--no-curve", help="Simulate other loads too, for a curve in the report.")
]


@dataclass(frozen=True, slots=True)
class Machine:
    """Where runs happen and on which engine; results depend on neither."""

    workers: "Backend | int | None" = None
    engine: str = "auto"


@dataclass(frozen=True, slots=True)
class Where:
    """Options: where runs happen and on which engine."""

    workers: Workers = None
    dask: Dask = None
    engine: EngineName = "auto"

    def machine(self) -> Machine:
        """Return where runs happen; reaches for the scheduler at once.

        Raises
        ------
        ArgumentError
            Both workers and a scheduler are given.
        EngineError
            The scheduler cannot be reached.
        """
        if self.dask is None:
            return Machine(self.workers, self.engine)
        if self.workers is not None:
            raise ArgumentError("--workers", "must be left out beside --dask", self.workers)
        from sim.run.backend import DaskBackend

        return Machine(DaskBackend(self.dask), self.engine)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Options stated over a scenario file: values, and the seed."""

    seed: Seed = None
    sets: Sets = None

    def overrides(self, plans: Sequence[str] | None = None) -> list[str]:
        """Return them as `key.path=value`, with plans in place of those that no option names."""
        stated = {field.name: getattr(self, field.name) for field in fields(self)}
        return overrides(**stated | {"plans": stated.get("plans") or plans})


@dataclass(frozen=True, slots=True)
class Repeated(Drawn):
    """Those, and the number of runs."""

    replications: Replications = None


@dataclass(frozen=True, slots=True)
class Study(Repeated):
    """Those, and the warm-up."""

    warmup: Warmup = None


@dataclass(frozen=True, slots=True)
class Planned(Study):
    """Those, and the plans."""

    plans: Plans = None


@dataclass(frozen=True, slots=True)
class Output:
    """Options: what is printed, and the folder that is written."""

    as_json: AsJson = False
    out: Out = None

    def show(
        self, summary: Callable[[], dict[str, Any]], parts: "Callable[[], Iterable[RenderableType]]"
    ) -> None:
        """Print a summary as JSON, or texts and tables, and where the report is."""
        if self.as_json:
            say_json(summary())
        else:
            say(*parts())
        if self.out is not None:
            wrote(self.out, as_json=self.as_json)


KEYWORD_ONLY = Parameter.KEYWORD_ONLY


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose options are the fields of the groups among a function's parameters.

    A group is a dataclass such as `Where`. The command line shows its fields where the group stands.
    """
    groups: dict[str, Any] = {}
    parameters = []
    for name, parameter in signature(function).parameters.items():
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            hints = get_type_hints(parameter.annotation, include_extras=True)
            parameters += [
                Parameter(
                    field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
                )
                for field in fields(parameter.annotation)
            ]
        else:
            parameters.append(parameter.replace(kind=KEYWORD_ONLY))

    @wraps(function)
    def called(**given: Any) -> None:
        taken = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        function(**given, **taken)

    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


DEGREE = re.compile(r"(\w+?)_max_(\d+)")
PERCENT = re.compile(r"(\d+\.?\d*|\.\d+)\s*%")
SECONDS = re.compile(r"(\d+\.?\d*|\.\d+)\s*s")


def overrides(
    sets: Sequence[str] | None,
    seed: int | None,
    replications: int | None = None,
    warmup: str | None = None,
    plans: Sequence[str] | None = None,
) -> list[str]:
    """Return options as `key.path=value`, those of their own after `--set`, so that they beat it."""
    stated = list(sets or ())
    if plans:
        stated.append(f"plans=[{', '.join(plan_value(label) for label in plans)}]")
    if warmup is not None:
        stated.append(f"experiment.warmup={warmup_value(warmup)}")
    if replications is not None:
        stated.append(f"experiment.replications={replications}")
    if seed is not None:
        stated.append(f"experiment.seed={seed}")
    return stated


def plan_value(label: str) -> str:
    """Return a plan's label as a scenario states it."""
    match = DEGREE.fullmatch(label)
    return f"{{plan: {match[1]}, max_degree: {match[2]}}}" if match else label


def warmup_value(text: str) -> str:
    """Return a warm-up as a scenario states it: `200` is a count, `10s` a time."""
    seconds = SECONDS.fullmatch(text)
    if seconds:
        return f"{{time_s: {seconds[1]}}}"
    if text.isdecimal():
        return f"{{count: {text}}}"
    if text in ("none", "auto"):
        return text
    raise ArgumentError("--warmup", "must be none, auto, a count such as 200 or a time such as 10s", text)


def precision_of(text: str | None, figure: str | None, most: int | None) -> "Precision | None":
    """Return when to stop adding replications."""
    if text is None:
        for name, value in (("--precision-figure", figure), ("--max-replications", most)):
            if value is not None:
                raise ArgumentError(name, "must come with --precision", value)
        return None
    match = PERCENT.fullmatch(text.strip())
    if match is None or not 0 < float(match[1]) < 100:
        raise ArgumentError("--precision", "must be a percentage such as 2%", text)
    from sim.result.experiment import Precision
    from sim.scenario.slo import METRICS

    if figure is not None and figure not in METRICS:
        raise ArgumentError("--precision-figure", f"must be one of {', '.join(METRICS)}", figure)
    chosen = Precision(float(match[1]) / 100)
    if figure is not None:
        chosen = replace(chosen, figure=figure)
    if most is None:
        return chosen
    if most < chosen.least:
        raise ArgumentError("--max-replications", f"must be >= {chosen.least}", most)
    return replace(chosen, most=most)
