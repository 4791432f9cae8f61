"""The rules, by kind of operation; importing them registers them."""

from pymc_austerity.model.cut.rules import (
    algebra,
    checks,
    elementwise,
    indexing,
    joining,
    loops,
    random,
    setting,
    shapes,
)

__all__ = [
    "algebra",
    "checks",
    "elementwise",
    "indexing",
    "joining",
    "loops",
    "random",
    "setting",
    "shapes",
]
