"""The hard models, each in the file of what is hard about it."""

from examples.hard_models.models import (
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
