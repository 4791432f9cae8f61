"""The row-free part and its gradient for many calls: by written code, or by PyTensor."""

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model import (
    DensityGradient,
    RowFreeGradient,
    compile_row_free_gradient,
)
from pymc_austerity.setup.problem import Problem

AnyGradient = DensityGradient | RowFreeGradient

_POINTS, _TOLERANCE = 3, 1e-8


def row_free_gradient(problem: Problem) -> AnyGradient:
    """Compile the row-free part with its gradient.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    written = DensityGradient.of(problem.parts, problem.likelihood.row_free)
    if isinstance(written, DensityGradient) and _agrees(written, problem):
        return written
    return compile_row_free_gradient(problem.parts, compile_kwargs=problem.compile_kwargs)


def _agrees(written: DensityGradient, problem: Problem) -> bool:
    """Whether gradients at a few points, and differences of values, are those of the graph."""
    rng, start = np.random.default_rng(0), problem.start.astype(np.float64)
    points = [start, *(start + rng.normal(size=(_POINTS - 1, start.size)))]
    own = _values_and_slopes([written(point) for point in points])
    expected = _values_and_slopes(
        [problem.row_free_derivatives.gradient(_like(point, problem)) for point in points]
    )
    return np.allclose(own, expected, _TOLERANCE, _TOLERANCE, equal_nan=True)


def _values_and_slopes(found: list) -> NDArray[np.float64]:
    """Gradients, and values up to a constant."""
    values, gradients = zip(*found, strict=True)
    with np.errstate(invalid="ignore"):  # both may be infinite
        return np.concatenate([np.diff(np.ravel(values)), np.ravel(gradients)])


def _like(point: NDArray[np.float64], problem: Problem) -> NDArray:
    return point.astype(problem.start.dtype)
