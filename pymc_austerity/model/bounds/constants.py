"""Constants of rows that bound their third derivatives on balls about the anchor."""

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.bounds.by_groups import CELLS_AT_ONCE, Chunk, constants_by_groups
from pymc_austerity.model.bounds.cell_bounds import CellBounds, kinds_of_rows, tabulated_constants
from pymc_austerity.model.bounds.enclosure import first_unbounded
from pymc_austerity.model.bounds.scalar_function import ScalarFunction
from pymc_austerity.model.operations.enclosures import NoRuleError

__all__ = ["NoBoundError", "are_cheap", "third_derivative_constants"]

_GROUPS, _LARGEST_GROUP = 1_024, 128
"""Groups that the rows of a chunk are cut into, and how many rows a group has at most."""

_FEWEST_FOR_TABLE = 1000
"""Rows from which on a table of cells costs less than the rows one by one."""
_ORDERS = {1: 8, 2: 6, 3: 5, 4: 5}
_LARGEST_COUNT = 8
_SLACK = 1.0 + 1e-6
"""Covers the rounding of constants that a model computes in single precision."""

_FEW_COEFFICIENTS = 100_000_000
"""Taylor coefficients of all rows that are enclosed, by groups of rows, in some ten seconds."""


class NoBoundError(ValueError):
    """The third derivatives of the rows have no finite bound; the message says why."""


def are_cheap(function: ScalarFunction, arrays: Sequence[NDArray], n_rows: int) -> bool:
    """Whether the bounds of rows take some seconds at most, or rows are of few kinds.

    Parameters
    ----------
    function : ScalarFunction
        Log-likelihood of rows in terms of k predictors.
    arrays : sequence of arrays
        Data of some of the rows, or of all, rows on axis 0.
    n_rows : int
        Number of all rows.
    """
    k = function.n_predictors
    if n_rows * comb(k + _ORDERS.get(k, 4), k) <= _FEW_COEFFICIENTS:
        return True
    return k == 1 and kinds_of_rows(function.constants_of(arrays), len(arrays[0])) is not None


def third_derivative_constants(
    function: ScalarFunction,
    arrays: Sequence[NDArray],
    center: NDArray[np.float64],
    gram: NDArray[np.float64],
    radii: Sequence[float],
    cells: CellBounds | None = None,
) -> NDArray[np.float64]:
    r"""Bounds on the third derivatives of rows on nested balls about the anchor.

    With :math:`\theta = \theta^* + R u` the predictors are :math:`\eta^* + Z u`, Z of shape
    (k, d). The constants satisfy, for all directions a, b, e and all :math:`|u| \leq \rho`,

    .. math:: |D^3 f(\eta^* + Z u)[Z a, Z b, Z e]| \leq c(\rho) |a| |b| |e|

    Parameters
    ----------
    function : ScalarFunction
        Log-likelihood of rows in terms of k predictors.
    arrays : sequence of arrays
        Data of the rows, rows on axis 0.
    center : float array, shape (N, k)
        Predictors at the anchor.
    gram : float array, shape (N, k, k)
        Z Z' of each row.
    radii : sequence of float
        Radii, ascending, in standard deviations of the whitened coordinates u.
    cells : CellBounds, optional
        For rows with one predictor that come in several calls: the constants of a row are then
        the same whatever rows and radii it is given with.

    Returns
    -------
    float array, shape (number of radii, N)
        Nats; infinite where a row has no bound.

    Raises
    ------
    NoBoundError
        An operation has no rule, or there is no bound for most rows.

    Notes
    -----
    Taylor form: derivatives of order 3 to P - 1 at the anchor, which are exact, and order P over
    the box that holds the ball, which interval arithmetic overestimates but the radius to the
    power of P - 3 makes small. The smallest over P is taken. In coordinates scaled by the length
    :math:`|z_j|` of each predictor's row of Z, the norm of the q-th derivative is at most the sum
    of its absolute entries, and at most its Frobenius norm times :math:`\lambda^{q/2}`, where
    :math:`\lambda` is the largest eigenvalue of the matrix of cosines between the rows of Z.

    References
    ----------
    Prado, E., Nemeth, C. and Sherlock, C. (2024). Metropolis-Hastings with scalable subsampling.
    arXiv 2407.19602, for bounds with one predictor.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pymc_austerity.model.bounds import scalar_function
    >>> eta, y = pt.dvector("eta"), pt.dvector("y")
    >>> logistic = scalar_function(y * eta - pt.softplus(eta), [eta], [y])
    >>> c = third_derivative_constants(
    ...     logistic, [np.ones(1)], np.zeros((1, 1)), np.full((1, 1, 1), 1.0), [0.01, 50.0])
    >>> c.round(4)
    array([[0.0012],
           [0.0962]])
    """
    k = function.n_predictors
    if k > _LARGEST_COUNT:
        raise NoBoundError(f"no bound, because rows have {k} predictors")
    if k == 1:
        data = function.constants_of(arrays)
        kinds = kinds_of_rows(data, len(center))
        if kinds is not None and len(center) > _FEWEST_FOR_TABLE:
            cells = cells or CellBounds(function, float(np.nanmedian(center)))
            return _by_table(cells, function, data, kinds, center, gram, radii)
    order = _ORDERS.get(k, 4)
    size = min(max(len(center) // _GROUPS, 1), _LARGEST_GROUP)
    step = _GROUPS * size
    constants = np.empty((len(radii), len(center)))
    for start in range(0, len(center), step):
        rows = slice(start, start + step)
        chunk = Chunk.of(function, [array[rows] for array in arrays], center[rows], gram[rows])
        try:
            constants[:, rows] = _finished(constants_by_groups(chunk, radii, order, size))
        except NoRuleError as missing:
            raise NoBoundError(f"no bound, because there is no rule for {missing}") from None
        unbounded = np.flatnonzero(~np.isfinite(constants[0, rows]))
        if 2 * unbounded.size > len(center[rows]):
            name = first_unbounded(
                function, chunk.boxes(radii[0], unbounded[:CELLS_AT_ONCE]), order
            )
            raise NoBoundError(f"no bound, because {name} has no finite enclosure")
    return constants


def _by_table(
    cells: CellBounds,
    function: ScalarFunction,
    data: Mapping[Variable, NDArray],
    kinds: tuple[NDArray[np.intp], NDArray[np.int8]],
    center: NDArray[np.float64],
    gram: NDArray[np.float64],
    radii: Sequence[float],
) -> NDArray[np.float64]:
    lengths = np.sqrt(gram[:, 0, 0])
    try:
        found = tabulated_constants(cells, data, kinds, center[:, 0], lengths, radii)
    except NoRuleError as missing:
        raise NoBoundError(f"no bound, because there is no rule for {missing}") from None
    unbounded = np.flatnonzero(~np.isfinite(found[0]))
    if 2 * unbounded.size > len(center):
        chunk = Chunk(function, center, lengths[:, None], np.ones(len(center)), data)
        name = first_unbounded(
            function, chunk.boxes(radii[0], unbounded[:CELLS_AT_ONCE]), _ORDERS[1]
        )
        raise NoBoundError(f"no bound, because {name} has no finite enclosure")
    return _finished(found)


def _finished(constants: NDArray[np.float64]) -> NDArray[np.float64]:
    constants = constants * _SLACK
    constants[~np.isfinite(constants)] = np.inf
    return constants
