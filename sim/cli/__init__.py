"""The command line. Arguments in; text, JSON and an exit code out."""

from sim.cli.app import app, main

__all__ = ["app", "main"]
