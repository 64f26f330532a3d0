"""Engines: drawn arrays in, tables out (see `sim.contract.plain`)."""

from sim.contract.plain import (
    NO_CALL,
    NO_USER,
    ClosedUsers,
    DrawsExhaustedError,
    EngineInput,
    EngineOutput,
    OpenArrivals,
    Progress,
)
from sim.engine.choice import ENGINES, Engine, EngineChoice, SharedEngine, select_engine
from sim.engine.simpy_model import run

__all__ = [
    "ENGINES",
    "NO_CALL",
    "NO_USER",
    "ClosedUsers",
    "DrawsExhaustedError",
    "Engine",
    "EngineChoice",
    "EngineInput",
    "EngineOutput",
    "OpenArrivals",
    "Progress",
    "SharedEngine",
    "run",
    "select_engine",
]
