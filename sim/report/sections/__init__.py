"""Sections of a report. Results in; headings, tables and figures out."""
