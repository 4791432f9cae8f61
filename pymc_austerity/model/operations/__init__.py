"""Scalar operations: one table, in which each has its code, derivative and bound."""
