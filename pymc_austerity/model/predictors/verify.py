"""The numerical guard of the predictors: their function must give the numbers of the cut graph."""

from collections.abc import Mapping

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import Mode
from pymc_austerity.errors import NotRowwiseError
from pymc_austerity.model.predictors.design import design_function
from pymc_austerity.model.predictors.structure import RowStructure
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = ["verify_predictors"]

_MODE = Mode(linker="py", optimizer="fast_run").excluding("fusion")
_JITTER = 0.3


def verify_predictors(
    structure: RowStructure,
    split: RowLikelihood,
    point: Mapping[str, NDArray],
    *,
    rng: np.random.Generator,
    n_points: int = 3,
    max_rows: int = 1_000,
) -> None:
    """Compare the function of the predictors with the cut graph at several points.

    Parameters
    ----------
    structure : RowStructure
        What to verify.
    split : RowLikelihood
        The split log-density, whose value variables are raveled in their order.
    point : mapping of str to array
        Values of the value variables: the first point of comparison.
    rng : numpy.random.Generator
        Source of the other points, around the first one, and of the rows.
    n_points, max_rows : int
        Points, and rows at each of them.

    Raises
    ------
    NotRowwiseError
        The numbers differ.
    """
    placeholders = [leaf.placeholder for leaf in split.leaves]
    with split.model:
        rows = pm.compile(
            [*split.value_vars, *placeholders], split.rows, mode=_MODE, on_unused_input="ignore"
        )
        function = pm.compile(
            [*structure.etas, *placeholders],
            structure.function,
            mode=_MODE,
            on_unused_input="ignore",
        )
    designs = design_function(structure, split.model)
    tolerance = 1e-6 if structure.dtype == np.float64 else 5e-3
    for k in range(n_points):
        values = [_nearby(np.asarray(point[v.name]), k, rng) for v in split.value_vars]
        chosen = rng.integers(0, split.n_rows, min(max_rows, split.n_rows))
        block = [
            leaf.array[chosen].astype(leaf.placeholder.dtype, copy=False) for leaf in split.leaves
        ]
        theta = np.concatenate([np.ravel(v).astype(np.float64) for v in values])
        etas = [design.eta(theta).astype(structure.dtype) for design in designs(block)]
        with np.errstate(all="ignore"):
            expected, found = rows(*values, *block), function(*etas, *block)
        finite = np.isfinite(expected)  # far from the data, the two may overflow differently
        if not np.allclose(found[finite], expected[finite], rtol=tolerance, atol=tolerance):
            names = ", ".join(repr(predictor.name) for predictor in structure.predictors)
            raise NotRowwiseError(
                f"the log-likelihood of {', '.join(map(repr, split.subsampled))} differs from the "
                f"function of the linear predictors found for it ({names}): please report it, and "
                "use NUTS for this model."
            )


def _nearby(value: NDArray, k: int, rng: np.random.Generator) -> NDArray:
    if k == 0 or value.dtype.kind != "f":
        return value
    return (value + _JITTER * rng.standard_normal(value.shape)).astype(value.dtype)
