"""Engines: drawn arrays in (`sim.contract.run`), what happened out (`sim.contract.output`)."""

from sim.engine.choice import ENGINES, Engine, select_engine, simpy_engine

__all__ = ["ENGINES", "Engine", "select_engine", "simpy_engine"]
