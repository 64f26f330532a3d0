"""From a scenario file to one validated model."""

from sim.scenario.loading import load_scenario
from sim.scenario.scenario import Scenario
from sim.scenario.schema import json_schema

__all__ = ["Scenario", "json_schema", "load_scenario"]
