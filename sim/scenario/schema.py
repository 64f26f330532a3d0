"""The JSON Schema of a scenario file, for editors that check and complete while one types."""

from typing import Any

from pydantic.json_schema import models_json_schema

from sim.scenario.scenario import Scenario
from sim.scenario.source import WORKLOAD_KEYS
from sim.scenario.workloads import Workloads

DIALECT = "https://json-schema.org/draft/2020-12/schema"
UNITS = {"_ms": "Milliseconds.", "_tokens": "Tokens."}
EXTENDS = {
    "type": "string",
    "minLength": 1,
    "description": "Path of a parent file. Mappings merge, lists replace, null takes a key away.",
}
# One provider or several; the keys of one workload or a list of them.
CHOICES: list[dict[str, Any]] = [
    {"oneOf": [{"required": ["provider"]}, {"required": ["providers"]}]},
    {
        "oneOf": [
            {"required": ["workflow", "load"], "properties": {"workloads": False}},
            {"required": ["workloads"], "properties": dict.fromkeys(WORKLOAD_KEYS, False)},
        ]
    },
]

Schema = dict[str, Any]


def json_schema() -> Schema:
    """Return the schema (draft 2020-12) of a scenario file.

    A file that extends another may leave out whatever its parent states: for it nothing is required.
    """
    _, generated = models_json_schema([(Scenario, "validation"), (Workloads, "validation")], by_alias=True)
    definitions = {name: _described(schema) for name, schema in generated["$defs"].items()}
    whole = definitions["Scenario"]
    whole["properties"] |= definitions.pop("Workloads")["properties"]
    parts = {f"{name}Part": _part(schema) for name, schema in definitions.items()}
    parts["ScenarioPart"]["properties"]["extends"] = EXTENDS
    whole["required"] = [key for key in whole["required"] if key not in WORKLOAD_KEYS]
    whole["allOf"] = CHOICES
    return {
        "$schema": DIALECT,
        "title": "slotsim scenario",
        "description": whole["description"],
        "type": "object",
        "if": {"required": ["extends"]},
        "then": {"$ref": "#/$defs/ScenarioPart"},
        "else": {"$ref": "#/$defs/Scenario"},
        "$defs": definitions | parts,
    }


def _described(schema: Schema) -> Schema:
    """Return a mapping's schema with a description and a unit for each key, without generated titles."""
    if "properties" not in schema:
        return schema
    properties = {
        key: {name: value for name, value in item.items() if name != "title"}
        for key, item in schema["properties"].items()
    }
    for key, item in properties.items():
        item.setdefault("description", schema["description"])
        unit = next((text for suffix, text in UNITS.items() if key.endswith(suffix)), None)
        if unit and ("InMs" in schema["title"] or "InTokens" in schema["title"]):
            item["description"] += f" {unit}"
    return {**schema, "properties": properties}


def _part(schema: Any) -> Any:
    """Return what a file may say that has a parent: any of the keys, or null to take one away."""
    if isinstance(schema, list):
        return [_part(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    part: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            part[key] = {name: {"anyOf": [_part(item), {"type": "null"}]} for name, item in value.items()}
        elif key == "$ref":
            part[key] = f"{value}Part"
        elif key != "required":
            part["anyOf" if key == "oneOf" else key] = _part(value)
    return part
