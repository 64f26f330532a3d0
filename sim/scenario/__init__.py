"""Scenario files. YAML in; one validated model out, or every fault with its line."""

from sim.scenario.loading import load_scenario
from sim.scenario.scenario import Scenario
from sim.scenario.schema import json_schema

__all__ = ["Scenario", "json_schema", "load_scenario"]
