"""Drawings. Results in; SVG out."""
