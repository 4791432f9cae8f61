"""The families, each file one kind of them."""

from examples.families.models import (
    beside,
    categories,
    generalized,
    groups,
    smooth,
    survival,
    unusual,
)

__all__ = [
    "beside",
    "categories",
    "generalized",
    "groups",
    "smooth",
    "survival",
    "unusual",
]
