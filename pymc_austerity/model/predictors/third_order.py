"""Third derivatives of the rows by way of those of a function of few linear predictors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.model.predictors.derivatives import predictor_thirds
from pymc_austerity.model.predictors.design import (
    DenseRows,
    Design,
    DesignFunction,
    design_function,
    predictors_at,
)
from pymc_austerity.model.predictors.structure import RowStructure

__all__ = ["ThirdDerivatives", "third_derivatives"]

_AT_ONCE = 2**18
"""Products of two columns at once, 2 MB: they stay in the cache until they are multiplied."""


@dataclass(frozen=True, eq=False)
class ThirdDerivatives:
    """Third derivatives of the rows, in float64.

    Parameters
    ----------
    designs : callable
        From a block of rows to the matrices of the predictors.
    function : callable
        ``f(*etas, *block)``: derivatives by predictors a <= b <= c, each of shape (m,).
    size : int
        Length of a point, d.
    """

    designs: DesignFunction
    function: Callable[..., list[NDArray]]
    size: int

    def of_rows(self, point: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """By predictors a <= b <= c, the last one fastest, shape (m, k (k + 1) (k + 2) / 6)."""
        return np.stack(self._at(point, block)[1], axis=1)

    def sums(self, point: NDArray, *block: NDArray) -> NDArray[np.float64]:
        r"""Third derivatives by the entries of the point, summed over the block.

        .. math:: T = \sum_i \sum_{abc} f_{i,abc}''' \, A_{ia} \otimes A_{ib} \otimes A_{ic}

        Returns
        -------
        float array, shape (d, d (d + 1) / 2)
            By one entry and a pair j <= l of entries, in the order of ``numpy.triu_indices``.
        """
        n_pairs = self.size * (self.size + 1) // 2
        total = np.zeros((self.size, n_pairs))
        n_rows = max(_AT_ONCE // n_pairs, 1)
        for start in range(0, len(block[0]), n_rows):
            designs, thirds = self._at(point, [a[start : start + n_rows] for a in block])
            total += _sum_of([_columns(design, self.size) for design in designs], thirds)
        return total

    def _at(self, point: NDArray, block: Sequence[NDArray]) -> tuple[list[Design], list[NDArray]]:
        with np.errstate(over="ignore", invalid="ignore"):
            designs, etas = predictors_at(self.designs, point, block)
            return designs, self.function(*etas, *block)


def third_derivatives(structure: RowStructure, model: pm.Model) -> ThirdDerivatives:
    """Make the third derivatives of rows that are functions of linear predictors.

    Parameters
    ----------
    structure : RowStructure
        The rows as a function of linear predictors.
    model : pymc.Model
        The model, for compilation.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no third derivative.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import find_predictors, split_log_density
    >>> with pm.Model() as model:
    ...     b = pm.Normal("b", shape=2)
    ...     _ = pm.Poisson("y", pm.math.exp(np.eye(2) @ b), observed=np.zeros(2))
    >>> split = split_log_density(model)
    >>> structure = find_predictors(split, model.value_vars, {}, model.initial_point())
    >>> third_derivatives(structure, model).sums(np.zeros(2), *split.arrays)
    array([[-1.,  0.,  0.],
           [ 0.,  0., -1.]])
    """
    function = predictor_thirds(structure, model)
    return ThirdDerivatives(design_function(structure, model), function, structure.size)


def _columns(design: Design, size: int) -> NDArray[np.float64]:
    """The matrix of a predictor, transposed, shape (d, m)."""
    columns, rows = np.zeros((size, design.n_rows)), np.arange(design.n_rows)
    for term in design.terms:
        if isinstance(term, DenseRows):
            columns[term.entries] += term.data.T
        else:
            columns[term.entries, rows] += term.coefficient
    return columns


def _sum_of(
    columns: Sequence[NDArray[np.float64]], thirds: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Products of pairs of columns, weighted, times the columns once more."""
    k, (size, n_rows) = len(columns), columns[0].shape
    number = {abc: n for n, abc in enumerate(combinations_with_replacement(range(k), 3))}
    total = np.zeros((size, size * (size + 1) // 2))
    for a in range(k):
        products = np.zeros((total.shape[1], n_rows))
        for b, c in np.ndindex(k, k):
            weights = thirds[number[tuple(sorted((a, b, c)))]]
            first = 0
            for j in range(size):
                own = products[first : first + size - j]
                own += (weights * columns[b][j]) * columns[c][j:]
                first += size - j
        total += columns[a] @ products.T
    return total
