"""Pure functions over numbers, queueing theory among them. Arrays in, figures and intervals out."""
