"""From a scenario file to one validated model."""

from sim.scenario.scenario import Scenario, load_scenario

__all__ = ["Scenario", "load_scenario"]
