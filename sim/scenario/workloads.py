"""Several workloads in one file: what each states for itself, and its share of the providers."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, Strict

from sim.scenario.base import Broken, Model, Name, Users
from sim.scenario.load import Load
from sim.scenario.model import PlanEntry
from sim.scenario.slo import Slo
from sim.scenario.workflow import Workflow


class Share(Model):
    """A workload's claim on the slots of the providers that it calls."""

    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = Field(
        0, description="Higher goes first; under the allocation priority."
    )
    weight: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1, description="Weight of each of its requests, a whole number; under the allocation weighted."
    )
    reserved_slots: Users = Field(0, description="Slots kept for it on each provider that it calls.")


class Workload(Model):
    """A workflow and its load, beside others."""

    name: Name = Field(description="Name of the workload, unique in the file; it keys its random streams.")
    workflow: Workflow = Field(description="What a request runs.")
    load: Load = Field(description="How requests arrive.")
    plan: PlanEntry | None = Field(
        None, description="Plan of its requests; the one under comparison unless given."
    )
    share: Share = Field(Share(), description="Its claim on the slots.")
    slo: Slo | None = Field(None, description="Objectives that decide the exit code.")


class Workloads(Model):
    """The list of workloads of a file."""

    workloads: Annotated[tuple[Workload, ...], Strict(False)] = Field(
        min_length=1, max_length=100, description="Workloads that share the providers."
    )

    def broken_rules(self) -> Iterator[Broken]:
        names = [workload.name for workload in self.workloads]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Broken(("workloads", index, "name"), "must not repeat", name)
