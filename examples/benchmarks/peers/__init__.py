"""AusterityMH against other samplers: ``make bench-peers``."""
