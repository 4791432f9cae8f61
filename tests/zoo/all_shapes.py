"""All shapes of models, by name."""

from tests.zoo import (  # noqa: F401 (importing a family registers its shapes)
    censoring,
    hierarchical,
    latents,
    mixtures,
    multivariate,
    refusals,
    regression,
    series,
    sparse,
    structure,
)
from tests.zoo.registry import SHAPES, Shape

__all__ = ["SHAPES", "Shape"]
