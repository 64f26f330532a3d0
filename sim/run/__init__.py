"""One plan, one replication. A scenario in; a checked run with its figures and tables out."""
