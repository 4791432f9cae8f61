"""AusterityMH against other samplers: ``make bench-peers``, or ``python -m examples.benchmarks.peers``."""
