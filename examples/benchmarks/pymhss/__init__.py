"""Exact decisions beside `pymhss` 0.1.5, the program of Prado, Nemeth and Sherlock (2024)."""
