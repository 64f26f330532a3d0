"""The drawings of a report, one file per family; each returns a `sim.report.content.Figure`."""
