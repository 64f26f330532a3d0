"""The command `slotsim`: its subcommands, and what becomes of errors, Ctrl-C and closed pipes.

Modules of this package import the simulator where a command runs, not at their top: help has to be quick.
"""

import gc
import os
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from sim.cli.arithmetic import decide, gains
from sim.cli.capacity import capacity
from sim.cli.files import schema, validate
from sim.cli.holding import folders_let_go
from sim.cli.levelling import flip
from sim.cli.policing import policy
from sim.cli.reporting import report
from sim.cli.sensing import sensitivity
from sim.cli.simulating import compare, run, verify
from sim.cli.sizing import size
from sim.cli.sweeping import map_verdicts, sweep
from sim.cli.terminal import complain
from sim.errors import SlotsimError

INTERRUPTED = 130
PIPE_CLOSED = 141
FAULT = 2

OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""Rather than 700: imports and simulations make much that lives on, and little garbage in cycles."""


class Commands(typer.core.TyperGroup):
    """The group of all commands; an error raised on purpose becomes its text and its exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with folders_let_go():
                return super().invoke(ctx)
        except SlotsimError as error:
            text, exit_code = str(error), error.exit_code
        except KeyboardInterrupt:
            text, exit_code = "interrupted; nothing half-written is left", INTERRUPTED
        except MemoryError:
            text, exit_code = "not enough memory; fewer requests or replications need less", FAULT
        except BrokenPipeError:
            text, exit_code = "", PIPE_CLOSED
        end_quietly(text)
        raise typer.Exit(exit_code)


def end_quietly(text: str) -> None:
    """Say the last words, and let what cannot be written any more go nowhere."""
    with suppress(OSError):
        if text:
            complain(text)
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


NAMES: dict[Any, str] = {map_verdicts: "map"}
"""Commands whose function has another name than they."""

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (
    run,
    compare,
    decide,
    gains,
    capacity,
    flip,
    size,
    sensitivity,
    policy,
    sweep,
    map_verdicts,
    report,
    verify,
    validate,
    schema,
):
    app.command(NAMES.get(command))(command)


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"slotsim {version('slotsim')}")
        raise typer.Exit


@app.callback()
def slotsim(
    _version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Simulate whether running a workflow's LLM calls in parallel pays, off-peak and at peak.

    Exit codes: 0 fine, 1 an SLO missed or a check violated, 2 bad input.
    """


def main() -> None:
    """Run the command line."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no ± shows a question mark for it.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    app(prog_name="slotsim")
