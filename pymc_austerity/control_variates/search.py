"""The search for a mode, on some rows or on all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.optimize import OptimizeResult, minimize

from pymc_austerity.rows import (
    LARGEST_BLOCK,
    ArrayRows,
    Block,
    RowSource,
    SampledRows,
    sum_over_rows,
)
from pymc_austerity.time_limit import end_if_late

_CLOSE_ENOUGH = 0.02
"""Distance from the mode, in posterior standard deviations, at which the search ends."""

_STEEP = 1e3
"""Gradient relative to that at the start of a search, from which on it leads to no mode."""
_MANY_STEPS = 40
"""Steps after which a search in trust regions has some difficulty."""
_MOST_PASSES = 25
_BISECTIONS = 15
_JUMP = 0.1
"""Share of the fall of a slope along a step that the last bisection leaves: a smooth one would have
fallen by 0.003 % of it there."""


class Differentiable(Protocol):
    """First and second derivatives of a function of a point, and maybe of a block of rows."""

    @property
    def gradient(self) -> Callable[..., Sequence[NDArray]]:
        """``f(point, *block)``: value in nats, and gradient, shape (d,)."""

    @property
    def hessian(self) -> Callable[..., NDArray]:
        """``f(point, *block)``: Hessian, shape (d, d)."""


@dataclass(frozen=True, eq=False)
class RowDensity:
    """Log-posterior with the rows of some sources, each source with a weight.

    Attributes
    ----------
    rows, exact : Derivatives
        Of the rows and of the row-free part; see `pymc_austerity.model.Derivatives`.
    differences : callable
        ``f(proposed, current, *block)``: differences of the rows in a block, nats.
    parts : sequence of (RowSource, float)
        Rows, and how many rows each of them represents.
    dtype : numpy.dtype
        Type of the points that the functions take.
    length : int
        Rows that are evaluated together.
    """

    rows: Differentiable
    exact: Differentiable
    differences: Callable[..., NDArray]
    parts: Sequence[tuple[RowSource, float]]
    dtype: np.dtype
    length: int = LARGEST_BLOCK

    @property
    def source(self) -> RowSource:
        """The rows of a log-posterior with one source."""
        ((source, _),) = self.parts
        return source

    def on(self, parts: Sequence[tuple[RowSource, float]]) -> "RowDensity":
        """The same log-posterior with other rows."""
        return replace(self, parts=parts)

    def as_evaluated(self, point: NDArray) -> NDArray[np.float64]:
        """A point in the precision in which sums over rows are evaluated.

        An expansion must be about the point where its sums were taken, to the last digit.
        """
        return point.astype(self.dtype).astype(np.float64)

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-density in nats, and its gradient, shape (d,)."""
        at = point.astype(self.dtype)
        value, gradient = self.exact.gradient(at)
        sums = self._row_sums(at)
        return float(value + sums[0]), gradient + sums[1:]

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian of the log-density, shape (d, d)."""
        return self.row_hessian(point) + self.row_free_hessian(point)

    def row_gradient(self, point: NDArray) -> NDArray[np.float64]:
        """Gradient of the row part, shape (d,)."""
        return self._row_sums(point.astype(self.dtype))[1:]

    def row_hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian of the row part, shape (d, d)."""
        at = point.astype(self.dtype)
        hessian = self.rows.hessian
        return _symmetric(self._sum(lambda block: hessian(at, *block), ("Hessian", at)))

    @property
    def has_averages(self) -> bool:
        """Whether rows have linear predictors, over which their curvature can be averaged."""
        return hasattr(self.rows, "averaged_hessian")

    def averaged_hessian(self, point: NDArray, root: NDArray) -> NDArray[np.float64]:
        """Hessian whose row part is averaged over a normal distribution, shape (d, d).

        Parameters
        ----------
        point : float array, shape (d,)
            Its mean.
        root : float array, shape (d, d)
            Root of its covariance.
        """
        at, averaged = point.astype(self.dtype), self.rows.averaged_hessian  # type: ignore[attr-defined]
        arguments = ("averaged Hessian", at, root)
        of_rows = self._sum(lambda block: averaged(at, root, *block), arguments)
        return _symmetric(of_rows) + self.row_free_hessian(point)

    def row_derivatives(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradient and Hessian of the row part, in one pass over the rows."""
        at, rows = point.astype(self.dtype), self.rows

        def block_sums(block: Block) -> NDArray[np.float64]:
            _, gradient = rows.gradient(at, *block)
            return np.concatenate([gradient, np.ravel(rows.hessian(at, *block))])

        sums, size = self._sum(block_sums, ("gradient and Hessian", at)), point.size
        return sums[:size], _symmetric(sums[size:].reshape(size, size))

    def row_free_hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian of the row-free part, shape (d, d)."""
        end_if_late()
        return _symmetric(self.exact.hessian(point.astype(self.dtype)))

    def _row_sums(self, at: NDArray) -> NDArray[np.float64]:
        gradient_of = self.rows.gradient

        def block_sums(block: Block) -> NDArray[np.float64]:
            value, gradient = gradient_of(at, *block)
            return np.concatenate([np.atleast_1d(value), gradient])

        return self._sum(block_sums, ("log-density and gradient", at))

    def _sum(
        self, function: Callable[[Block], NDArray], arguments: Sequence[Any]
    ) -> NDArray[np.float64]:
        end_if_late()
        sums = [
            weight * sum_over_rows(function, rows, arguments, self.length)
            for rows, weight in self.parts
        ]
        return np.sum(sums, axis=0)


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return (matrix + matrix.T) / 2


class NoModeError(ValueError):
    """No point was found at which the log-density is concave and its gradient vanishes."""


class KinkError(NoModeError):
    """The log-density has a kink near its mode, with any subset of the rows."""


class LogDensity(Protocol):
    """A log-density with its first two derivatives."""

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Value in nats, and gradient, shape (d,)."""

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian, shape (d, d)."""


def trust_region(
    start: NDArray[np.float64],
    density: LogDensity,
    check: Callable[[NDArray[np.float64]], None] | None = None,
) -> NDArray[np.float64]:
    """Mode of a log-density that is cheap to evaluate, by Newton's method in trust regions.

    Parameters
    ----------
    start : float array, shape (d,)
        Where the search starts.
    density : LogDensity
    check : callable, optional
        Called once, where a search is after many steps; it may raise an error.

    Raises
    ------
    NoModeError
        The search did not end at a finite point, or the density has no bound, as that of a
        hierarchy whose levels are all equal and whose spread goes to 0.
    """
    first = latest = 0.0
    best = -np.inf

    def negative(point: NDArray) -> tuple[float, NDArray[np.float64]]:
        nonlocal latest, best
        value, gradient = density.gradient(point)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            return np.inf, np.zeros_like(gradient)
        latest = float(np.abs(gradient).max()) if value >= best else 0.0
        best = max(best, value)
        return -value, -gradient

    def hessian(point: NDArray) -> NDArray[np.float64]:
        nonlocal first  # called after the gradient, where the search turns back as well
        first = first or max(latest, 1.0)
        if latest > _STEEP * first:
            raise NoModeError("the log-density has no bound")
        return np.nan_to_num(-density.hessian(point))

    numbers = count(1)

    def step(point: NDArray) -> None:
        if next(numbers) == _MANY_STEPS and check is not None:
            check(point)

    with np.errstate(all="ignore"):
        result = minimize(
            negative,
            start,
            jac=True,
            hess=hessian,
            callback=step,
            method="trust-exact",
            options={"gtol": 1e-3, "maxiter": 200},
        )
    if not np.isfinite(result.x).all():
        raise NoModeError("the search for the mode left the real numbers")
    return np.asarray(result.x)


IMPOSSIBLE = 1e100
"""Minus the log-density where it is not finite: a number, so that a line search goes on."""


def climb(
    begin: NDArray[np.float64],
    about: NDArray[np.float64],
    root: NDArray[np.float64],
    density: LogDensity,
    **options: float,
) -> OptimizeResult:
    """Search for a mode by gradients alone, in the coordinates of a normal approximation.

    Parameters
    ----------
    begin : float array, shape (d,)
    about, root : float arrays, shapes (d,) and (d, d)
        Mean and root of the covariance of the approximation.
    density : LogDensity
    **options
        Of `scipy.optimize.minimize` with the method L-BFGS-B.
    """

    def negative(standard: NDArray) -> tuple[float, NDArray[np.float64]]:
        value, gradient = density.gradient(about + root @ standard)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return IMPOSSIBLE, np.zeros(standard.size)
        return -value, -(root.T @ gradient)

    first = solve_triangular(root, begin - about, lower=True)
    with np.errstate(all="ignore"):
        return minimize(negative, first, jac=True, method="L-BFGS-B", options=options)


def approach_mode(
    start: NDArray[np.float64],
    cheap: LogDensity,
    full: LogDensity,
    close: float = _CLOSE_ENOUGH,
    at_end: float = 0.0,
) -> NDArray[np.float64]:
    """Mode of a log-density from nearby, with few passes over all rows.

    Steps of the full gradient, preconditioned with the Hessian of a cheap version, approach the
    mode; each reduces the distance by about the relative error of that Hessian. If a step does
    not, the full Hessian is used instead.

    Parameters
    ----------
    start : float array, shape (d,)
        The mode of the cheap version.
    cheap : LogDensity
        On some of the rows.
    full : LogDensity
        The log-density whose mode is returned.
    close : float
        Distance from it, in posterior standard deviations, that is near enough.
    at_end : float
        The same for a search that gets no nearer.

    Returns
    -------
    float array, shape (d,)

    Raises
    ------
    NoModeError
        The search failed.
    """
    point = start
    factor = _factor(cheap.hessian(point))
    value, gradient = full.gradient(point)
    distance = np.inf
    for _ in range(_MOST_PASSES):
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise NoModeError("the log-density near the mode is not finite")
        step = cho_solve(factor, gradient)
        before, distance = distance, float(np.sqrt(max(gradient.dot(step), 0.0)))
        if distance < close:
            return point
        if distance > 0.5 * before:  # the cheap Hessian is too far off
            factor = _factor(full.hessian(point))
            step = cho_solve(factor, gradient)
        try:
            point, value, gradient = _ascend(full, point, step, value)
        except NoModeError:
            break
    if distance < at_end:
        return point
    if _has_kink(full, point, cho_solve(factor, gradient)):
        raise KinkError("the log-density has a kink near its mode, as of a Laplace distribution")
    raise NoModeError("the search for the mode did not converge")


def _factor(hessian: NDArray[np.float64]) -> tuple:
    try:
        return cho_factor(-hessian)
    except (LinAlgError, ValueError) as error:
        raise NoModeError("the Hessian near the mode is not negative definite") from error


def _ascend(
    density: LogDensity, point: NDArray, step: NDArray, value: float
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Go along the step, halved until the log-density does not fall."""
    for _ in range(20):
        new = point + step
        new_value, gradient = density.gradient(new)
        if np.isfinite(new_value) and new_value >= value - 1e-9 * abs(value):
            return new, new_value, gradient
        step = step / 2
    raise NoModeError("the log-density does not rise along its gradient")


def _has_kink(density: LogDensity, point: NDArray, step: NDArray) -> bool:
    """Whether the slope along a step jumps from rising to falling."""
    rising, falling = 0.0, 1.0
    slopes = [density.gradient(point + share * step)[1].dot(step) for share in (rising, falling)]
    if not slopes[0] > 0.0 > slopes[1]:
        return False
    jump = slopes[0] - slopes[1]
    for _ in range(_BISECTIONS):
        middle = (rising + falling) / 2.0
        slope = density.gradient(point + middle * step)[1].dot(step)
        if slope > 0.0:
            rising, slopes[0] = middle, slope
        else:
            falling, slopes[1] = middle, slope
    return slopes[0] - slopes[1] > _JUMP * jump


_FLAT = 1e-10
"""Curvature, relative to that of each parameter by itself, that may be rounding error."""


def inverse_root(precision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lower triangular ``R`` with ``R R'`` the inverse of a positive definite matrix.

    Raises
    ------
    NoModeError
        The matrix is not positive definite, or not by more than rounding error.
    """
    curvatures = np.diag(precision)
    if not (np.isfinite(precision).all() and (curvatures > 0.0).all()):
        raise NoModeError("the Hessian there is not negative definite")
    sds = 1.0 / np.sqrt(curvatures)
    scaled = precision * np.outer(sds, sds)  # units of the parameters must not matter
    if not np.linalg.eigvalsh(scaled)[0] > _FLAT:
        raise NoModeError("the Hessian there is not negative definite")
    upper = np.linalg.cholesky(scaled[::-1, ::-1])[::-1, ::-1]  # scaled = upper upper'
    return sds[:, None] * solve_triangular(upper, np.eye(sds.size), lower=False).T


def some_rows(density: RowDensity, n_rows: int, rng: np.random.Generator) -> RowDensity:
    """A log-posterior with some random rows that represent all; with all rows if there are few.

    If rows are slow to read at random positions, they are some of those that were drawn before.
    """
    source = density.source
    if isinstance(source, SampledRows):
        drawn_before = source.some(n_rows, rng)
        return density.on([(drawn_before, source.n_rows / drawn_before.n_rows)])
    if source.n_rows <= n_rows:
        return density
    drawn = rng.choice(source.n_rows, n_rows, replace=False)
    return density.on([(taken(source, drawn), source.n_rows / n_rows)])


def taken(source: RowSource, indices: NDArray[np.intp]) -> ArrayRows:
    """Rows with these numbers, in the order of storage."""
    return ArrayRows(source.take(np.sort(indices)))
