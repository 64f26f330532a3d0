"""The parts of a report, one file each; each returns a `sim.report.content.Section`, or None where empty."""
