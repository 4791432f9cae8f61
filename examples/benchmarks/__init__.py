"""Time and memory of a draw: ``make bench``, or ``python -m examples.benchmarks``."""
