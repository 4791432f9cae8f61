"""Set-up, draws and memory: ``make bench``, or ``python -m examples.benchmarks``."""
