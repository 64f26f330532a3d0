"""Checks on every run, see ARCHITECTURE.md. Input and tables in; what was checked out, or an error."""

from sim.check.report import CheckReport
from sim.check.run import check_run

__all__ = ["CheckReport", "check_run"]
