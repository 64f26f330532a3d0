"""The simulator against queueing theory. Cases in; the table of `slotsim verify --theory` out."""

from sim.verification.table import TheoryRow, TheoryTable, verify_theory

__all__ = ["TheoryRow", "TheoryTable", "verify_theory"]
