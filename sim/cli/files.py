"""`slotsim validate` and `slotsim schema`: scenario files, nothing simulated."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from sim.cli.options import AsJson, ScenarioFiles
from sim.cli.terminal import complain, say_json, write
from sim.errors import Fault, InputError, shown
from sim.report.file_list import json_text


def validate(files: ScenarioFiles, as_json: AsJson = False) -> None:
    """Check scenario files and tell every fault of every file."""
    faults = {file: faults_of(file) for file in files}
    if as_json:
        say_json({"files": [file_summary(file, each) for file, each in faults.items()]})
    else:
        for file, each in faults.items():
            if each:
                complain("\n".join(str(fault) for fault in each))
            else:
                write(f"{file}: ok\n")
    if any(faults.values()):
        raise typer.Exit(InputError.exit_code)


def faults_of(file: str) -> Sequence[Fault]:
    """Return the faults of a scenario file; none where it is fine."""
    from sim.scenario import load_scenario

    try:
        load_scenario(file)
    except InputError as error:
        return error.faults
    return ()


def file_summary(file: str, faults: Sequence[Fault]) -> dict[str, Any]:
    """Return a file's faults as plain data; a value is as messages show it."""
    return {
        "file": file,
        "ok": not faults,
        "faults": [
            {
                **asdict(fault),
                "value": shown(fault.value) if fault.has_value else None,
                "message": str(fault),
            }
            for fault in faults
        ],
    }


def schema(
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write it there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, as it does anyway.")] = False,
) -> None:
    """Print the JSON Schema of scenario files.

    Editors use it to check and to complete while one types.
    """
    from sim.report.output_folder import OutputFolder
    from sim.scenario import json_schema

    text = json_text(json_schema())
    if out is None:
        write(text)
        return
    target = Path(out)
    with OutputFolder(target.parent) as folder:
        folder.write_text(target.name, text)
    write(json_text({"out": out}) if as_json else f"wrote {out}\n")
