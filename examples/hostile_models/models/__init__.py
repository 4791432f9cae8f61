"""The hostile models, each in the file of what is hostile about it."""

from examples.hostile_models.models import (
    bounds,
    categories,
    counts,
    groups,
    modes,
    numbers,
    outliers,
    priors,
    regressions,
)

__all__ = [
    "bounds",
    "categories",
    "counts",
    "groups",
    "modes",
    "numbers",
    "outliers",
    "priors",
    "regressions",
]
