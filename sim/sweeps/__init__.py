"""Many points of a grid. A scenario and ranges in; a stored row for each point and plan out."""
