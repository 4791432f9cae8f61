"""Points near a point, at which graphs are tried."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["jittered"]


def jittered(values: Sequence[NDArray], scale: float, rng: np.random.Generator) -> list[NDArray]:
    """Add normal noise of a scale to every array of floats; whole numbers stay as they are."""
    return [
        (value + scale * rng.normal(size=value.shape)).astype(value.dtype)
        if value.dtype.kind == "f"
        else value
        for value in values
    ]
