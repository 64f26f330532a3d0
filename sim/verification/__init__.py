"""The simulator held against queueing theory; the table of `slotsim verify --theory`."""

from sim.verification.table import TheoryRow, TheoryTable, verify_theory

__all__ = ["TheoryRow", "TheoryTable", "verify_theory"]
