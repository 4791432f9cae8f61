"""Data sets, models and decisions that several examples share."""
