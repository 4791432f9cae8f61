"""Rules for operations on short arrays; importing this package registers them."""

from pymc_austerity.model.kernel.rules import (
    arithmetic,
    checks,
    indexing,
    joining,
    products,
    shapes,
    triangles,
)

__all__ = ["arithmetic", "checks", "indexing", "joining", "products", "shapes", "triangles"]
