"""The rules, by kind of operation; importing them registers them."""

from pymc_austerity.model.cut.rules import batched, elementwise, indexing, shapes

__all__ = ["batched", "elementwise", "indexing", "shapes"]
