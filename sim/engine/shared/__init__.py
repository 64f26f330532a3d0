"""Engines for shared, limited, failing or cached providers. Arrays in; tables out."""
