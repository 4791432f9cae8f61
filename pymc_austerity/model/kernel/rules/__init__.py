"""Rules for operations on short arrays; importing this package registers them."""

from pymc_austerity.model.kernel.rules import algebra, arithmetic, indexing, shapes

__all__ = ["algebra", "arithmetic", "indexing", "shapes"]
