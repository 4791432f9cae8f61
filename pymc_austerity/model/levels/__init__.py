"""Models with groups: which rows read which levels, and the exact part level by level."""
