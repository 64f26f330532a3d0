"""Reports: one HTML file that needs nothing else, the same in Markdown, and the figures as files."""

from sim.report.write import add_report, write_report

__all__ = ["add_report", "write_report"]
