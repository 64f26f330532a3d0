"""The command line."""

from sim.cli.app import app, main

__all__ = ["app", "main"]
