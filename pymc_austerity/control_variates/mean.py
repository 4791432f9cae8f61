"""The posterior mean, where the gradient of the log-posterior is zero on average."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pymc_austerity.control_variates.anchor import Anchor, some_rows
from pymc_austerity.control_variates.mode import Differentiable, RowDensity
from pymc_austerity.rows import ArrayRows, Block, RowSource, sum_over_rows

__all__ = ["posterior_mean"]

_MULTIPLICATIONS = 3e10
"""In a pass over some of the rows: about a second."""

_MOST_ROWS = 200_000
_FEW_ROWS, _FEW_ENTRIES = 10_000, 100
"""Rows and dimensions up to which gradients are averaged without linear predictors."""

_MOST_ROUNDS = 4
_NEAR, _NEGLIGIBLE = 0.1, 0.01
"""Squared distances in standard deviations: of a step that is the last, and of one not made."""

_MARGIN = 2.0
"""Squared distance that is attributed to the choice of rows, relative to the expected one."""


class _Part(NamedTuple):
    """Rows, and how many rows each of them represents."""

    rows: RowSource
    weight: float


def posterior_mean(
    anchor: Anchor,
    rows: Differentiable,
    exact: Differentiable,
    source: RowSource,
    *,
    dtype: np.dtype,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    r"""Mean of the normal distribution that is closest to the posterior, among those of one shape.

    .. math:: m \leftarrow m + R R' \, E \, \nabla \log p(m + R z \mid x), \qquad z \sim N(0, I)

    with :math:`R R'` the inverse of minus the Hessian at the mode. Where it ends, the
    Kullback-Leibler divergence of :math:`N(m, R R')` from the posterior is least. About its mode,
    proposals from a normal distribution are accepted less often, and hardly ever where the
    posterior is skewed.

    Parameters
    ----------
    anchor : Anchor
        The mode.
    rows, exact : Derivatives
        As in `find_anchor`. Rows with `averaged_gradient` and `cost_of_average` can be many; see
        `pymc_austerity.model.PredictorDerivatives`.
    source : RowSource
        All rows.
    dtype : numpy.dtype
        Type of the points that the functions take.
    rng : numpy.random.Generator
        Chooses rows where there are too many to use them all.

    Returns
    -------
    float array, shape (d,)
        The mode itself where the mean is within a tenth of a standard deviation of it, or where
        there are too many dimensions for rows without linear predictors.

    References
    ----------
    Opper, M. and Archambeau, C. (2009). The variational Gaussian approximation revisited. Neural
    Computation 21(3), 786-792.
    """
    if not hasattr(rows, "averaged_gradient") and anchor.point.size > _FEW_ENTRIES:
        return anchor.point
    density = RowDensity(rows, exact, [(source, 1.0)], dtype)
    with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
        gradient = _Averages(anchor, rows, exact, dtype, _parts(density, source, rows, rng))
        point = anchor.point
        for number in range(_MOST_ROUNDS):
            step, squared = _step([anchor.root.T @ own for own in gradient(point)])
            if not _NEGLIGIBLE * (number == 0) < squared < np.inf:
                break
            point = point + anchor.root @ (step / max(1.0, np.sqrt(squared)))
            if squared < _NEAR:
                break
    return point


def _parts(
    density: RowDensity, source: RowSource, rows: Differentiable, rng: np.random.Generator
) -> list[_Part]:
    """All rows, or two halves of some of them."""
    most = _FEW_ROWS
    if hasattr(rows, "cost_of_average"):
        most = int(min(_MULTIPLICATIONS / rows.cost_of_average, _MOST_ROWS))
    ((some, weight),) = some_rows(density, source, most, rng).parts
    if weight == 1.0:
        return [_Part(some, weight)]
    halves = (ArrayRows(some.take(np.arange(first, some.n_rows, 2))) for first in (0, 1))
    return [_Part(half, source.n_rows / half.n_rows) for half in halves]


def _step(shifts: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], float]:
    """Mean of one or two estimates, and its squared length.

    Two estimates tell how far their mean is off: it is shortened by the factor of James and Stein
    (1961), Estimation with quadratic loss, and zero where its length may be due to chance.
    """
    mean = np.mean(shifts, axis=0)
    squared = float(mean.dot(mean))
    if len(shifts) == 2:
        uncertainty = float(np.square(shifts[0] - shifts[1]).sum()) / 4.0
        if squared <= _MARGIN * uncertainty:
            return np.zeros(mean.size), 0.0
        kept = 1.0 - uncertainty / squared
        return kept * mean, kept * kept * squared
    return mean, squared


class _Averages:
    """Gradients of the log-posterior, averaged over normal distributions of the anchor's shape."""

    def __init__(
        self,
        anchor: Anchor,
        rows: Differentiable,
        exact: Differentiable,
        dtype: np.dtype,
        parts: Sequence[_Part],
    ) -> None:
        self._anchor, self._rows, self._exact, self._dtype = anchor, rows, exact, dtype
        self._parts = parts

    def __call__(self, point: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """By each of the parts of the rows, shape (d,)."""
        known = self._anchor.gradient + self._by_columns(self._exact.gradient, point)
        average = getattr(self._rows, "averaged_gradient", None)
        at, here = self._anchor.point, self._anchor.point.astype(self._dtype)

        def change(block: Block) -> NDArray[np.float64]:
            before = self._rows.gradient(here, *block)[1]
            if average is not None:
                return average(point, self._anchor.root, *block) - before
            return self._by_columns(lambda x: self._rows.gradient(x, *block), point) - before

        about = ("averaged gradient", at, point)
        return [known + w * sum_over_rows(change, rows, about) for rows, w in self._parts]

    def _by_columns(
        self, gradient: Callable[..., Sequence[NDArray]], point: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Average of a gradient, from its values one standard deviation away on each axis."""

        def at(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(gradient(x.astype(self._dtype))[1], dtype=np.float64)

        here, columns = at(point), self._anchor.root.T
        return here + 0.5 * sum(at(point + c) + at(point - c) - 2.0 * here for c in columns)
