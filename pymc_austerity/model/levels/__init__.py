"""Models with groups: which rows read which levels, and the row-free part level by level."""
