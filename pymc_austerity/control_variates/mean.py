"""The posterior mean, where the gradient of the log-posterior is zero on average."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import threadpool_limits

from pymc_austerity.control_variates.anchor import Anchor
from pymc_austerity.control_variates.search import RowDensity, some_rows
from pymc_austerity.rows import ArrayRows, Block, RowSource, SampledRows, sum_over_rows

_MULTIPLICATIONS = 1e10
"""In a pass over some of the rows: about half a second."""

_MOST_ROWS = 200_000
_DIRECTIONS = 64
_FEW_ROWS, _FEW_ENTRIES = 10_000, 100
"""Rows and dimensions up to which gradients are averaged without linear predictors."""

_MOST_ROUNDS = 4
_NEAR, _NEGLIGIBLE = 0.02, 0.01
"""Squared distances in standard deviations: of a step that is the last, and of one not made."""

_LONGEST = 0.1
"""Length of a step as a share of the distance of draws from their mean; at least one standard
deviation."""

_MARGIN = 2.0
"""Squared distance that is attributed to the choice of rows, relative to the expected one."""


def posterior_mean(
    anchor: Anchor, density: RowDensity, *, rng: np.random.Generator
) -> NDArray[np.float64]:
    r"""Mean of the normal distribution that is closest to the posterior, among those of one shape.

    .. math:: m \leftarrow m + R R' \, E \, \nabla \log p(m + R z \mid x), \qquad z \sim N(0, I)

    with :math:`R R'` the inverse of minus the Hessian at the mode. Where it ends, the
    Kullback-Leibler divergence of :math:`N(m, R R')` from the posterior is least. Draws of a normal
    distribution about the mode are accepted less often, and hardly ever where the posterior is
    skewed.

    Parameters
    ----------
    anchor : Anchor
        The mode.
    density : RowDensity
        The log-posterior, with all rows. Those with `averaged_gradient` and `cost_of_average` can
        be many; see `pymc_austerity.model.PredictorDerivatives`.
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
    point, has_average = anchor.point, hasattr(density.rows, "averaged_gradient")
    if not has_average and point.size > _FEW_ENTRIES:
        return point
    if _is_surely_near(anchor, density, rng):
        return point
    parts, directions = _parts(density, rng), None
    if has_average and len(parts) > 1 and not isinstance(density.source, SampledRows):
        directions = few_directions(anchor.root, rng)
    gradient = _Averages(anchor, density, parts, directions)
    return where_zero(gradient, point, anchor.root)


def where_zero(
    gradients: Callable[[NDArray[np.float64]], Sequence[NDArray[np.float64]]],
    point: NDArray[np.float64],
    root: NDArray[np.float64] | LinearOperator,
) -> NDArray[np.float64]:
    """Point at which an averaged gradient is zero, from nearby, by the steps of `posterior_mean`.

    Parameters
    ----------
    gradients : callable
        From a point to one or two estimates of the averaged gradient, shape (d,).
    point : float array, shape (d,)
    root : float array or LinearOperator, shape (d, d)
        Root of the covariance.
    """
    with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
        for number in range(_MOST_ROUNDS):
            step, squared = _step([root.T @ own for own in gradients(point)])
            if not _NEGLIGIBLE * (number == 0) < squared < np.inf:
                break
            too_long = np.sqrt(squared / max(1.0, _LONGEST**2 * point.size))
            point = point + root @ (step / max(1.0, too_long))
            if squared < _NEAR:
                break
    return point


def few_directions(
    root: NDArray[np.float64] | LinearOperator, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Random directions, shape (d, 64), whose products have the covariance as expectation."""
    directions: NDArray[np.float64] = root @ rng.standard_normal((root.shape[0], _DIRECTIONS))
    return directions / np.sqrt(_DIRECTIONS)


def _is_surely_near(anchor: Anchor, density: RowDensity, rng: np.random.Generator) -> bool:
    """Whether few rows tell that the first step would not be made."""
    halves = _halves(density, _FEW_ROWS, rng)
    if len(halves) < 2:
        return False
    gradient = _Averages(anchor, density, halves, None)
    with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
        one, two = (anchor.root.T @ own for own in gradient(anchor.point))
    uncertainty = float(np.square(one - two).sum()) / 4.0
    return float(np.square(one + two).sum()) / 4.0 + _MARGIN * uncertainty < _NEGLIGIBLE


def _parts(density: RowDensity, rng: np.random.Generator) -> list[RowSource]:
    """All rows, or two halves of some of them."""
    most, rows = _FEW_ROWS, density.rows
    if hasattr(rows, "cost_of_average"):
        most = int(min(_MULTIPLICATIONS / rows.cost_of_average, _MOST_ROWS))
    return _halves(density, most, rng)


def _halves(density: RowDensity, most: int, rng: np.random.Generator) -> list[RowSource]:
    ((some, weight),) = some_rows(density, most, rng).parts
    if weight == 1.0:
        return [some]
    return [ArrayRows(some.take(np.arange(first, some.n_rows, 2))) for first in (0, 1)]


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


@dataclass(frozen=True, eq=False)
class _Averages:
    """Gradients of the log-posterior, averaged over normal distributions of the anchor's shape.

    Rows that represent others contribute what their averages differ by from something that is
    known of all rows: averages over a few directions, or gradients at the anchor.
    """

    anchor: Anchor
    density: RowDensity
    parts: Sequence[RowSource]
    directions: NDArray[np.float64] | None

    def __call__(self, point: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """By each of the parts of the rows, shape (d,)."""
        root, directions, at = self.anchor.root, self.directions, self.anchor.point

        def known(block: Block) -> NDArray[np.float64]:
            if directions is not None:
                return self._of_rows(point, directions, block)
            gradient = self.density.rows.gradient(at.astype(self.density.dtype), *block)[1]
            return np.asarray(gradient, dtype=np.float64)

        def unknown(block: Block) -> NDArray[np.float64]:
            return self._of_rows(point, root, block) - known(block)

        of_all = self.anchor.gradient
        if directions is not None:
            of_all = sum_over_rows(known, self.density.source)
        total = of_all + self._by_columns(self.density.exact.gradient, point, root)
        about, n_rows = ("averaged gradient", at, point), self.density.source.n_rows
        return [
            total + n_rows / part.n_rows * sum_over_rows(unknown, part, about)
            for part in self.parts
        ]

    def _of_rows(
        self, point: NDArray[np.float64], root: NDArray[np.float64], block: Block
    ) -> NDArray[np.float64]:
        average = getattr(self.density.rows, "averaged_gradient", None)
        if average is None:
            return self._by_columns(lambda x: self.density.rows.gradient(x, *block), point, root)
        of_block: NDArray[np.float64] = average(point, root, *block)
        return of_block

    def _by_columns(
        self,
        gradient: Callable[..., Sequence[NDArray]],
        point: NDArray[np.float64],
        root: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Average of a gradient, from its values one standard deviation away on each axis."""

        def at(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(gradient(x.astype(self.density.dtype))[1], dtype=np.float64)

        here = at(point)
        return here + 0.5 * sum(at(point + c) + at(point - c) - 2.0 * here for c in root.T)
