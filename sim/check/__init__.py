"""The checks that run on every simulation (see ARCHITECTURE.md): a result that fails one is never shown."""

from sim.check.report import CheckReport, check_run

__all__ = ["CheckReport", "check_run"]
