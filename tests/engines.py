"""Engines and checks for tests, in plain terms and in general ones."""

from dataclasses import fields

import numpy as np

from sim.check import CheckReport, check_run
from sim.check.run import check_issue, check_tables
from sim.contract.output import RunOutput
from sim.contract.plain import PlainInput, PlainOutput, PlainRunOutput, run_input
from sim.contract.run import RunInput
from sim.engine import Engine
from sim.engine.choice import PlainRun
from sim.engine.choice import Run as EngineRun
from sim.engine.shared.model import run_shared
from sim.engine.simpy_model import run as run_plain
from sim.run.simulation import Run


def columns(table: object) -> dict[str, object]:
    """Return the fields of a table, arrays as lists."""
    values = {field.name: getattr(table, field.name) for field in fields(table)}  # type: ignore[arg-type]
    return {
        name: (value.dtype, value.tolist()) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def every_column(out: RunOutput) -> dict[str, object]:
    """Return everything that an engine gives but its name."""
    return {**columns(out), "attempts": columns(out.attempts), "engine": None}


class GeneralOnly(Engine):
    """An engine without its fast path."""

    def path_of(self, _given: RunInput) -> EngineRun:
        return self.general


def general_only(run: EngineRun = run_shared) -> Engine:
    """Return an engine whose every run takes `run`."""
    return GeneralOnly("general only", run_plain, run)


def on_plain(run: PlainRun) -> Engine:
    """Return an engine with this fast path."""
    return Engine("plain", run, run_shared)


def check_plain(given: PlainInput, out: PlainOutput, run: PlainRun = run_plain) -> CheckReport:
    """Check the tables of a plain run, made by `run`."""
    return check_run(run_input(given), PlainRunOutput(given, out), on_plain(run).run_plain)


def readable(given: PlainInput, out: PlainOutput) -> int:
    """Hold the tables of a plain run by the readable checks; return how many requests were exact."""
    general = run_input(given), PlainRunOutput(given, out)
    check_issue(*general)
    return check_tables(*general)


def tables_of(run: Run) -> PlainOutput:
    """Return the tables of a plain run by request and call."""
    assert isinstance(run.out, PlainRunOutput)
    return run.out.tables
