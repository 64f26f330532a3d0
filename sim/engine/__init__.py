"""Engines: drawn arrays in, tables out (see `sim.engine.interface`)."""

from sim.engine.interface import (
    ALLOCATIONS,
    NO_CALL,
    NO_USER,
    ClosedUsers,
    DrawsExhaustedError,
    EngineInput,
    EngineOutput,
    OpenArrivals,
    Progress,
)
from sim.engine.simpy_model import run

__all__ = [
    "ALLOCATIONS",
    "NO_CALL",
    "NO_USER",
    "ClosedUsers",
    "DrawsExhaustedError",
    "EngineInput",
    "EngineOutput",
    "OpenArrivals",
    "Progress",
    "run",
]
