"""Wide models with sparse designs: gradients of all rows, and a normal distribution near them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.blas import dtrmv, dtrsm, dtrsv
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from pymc_austerity._pymc import discrete_types, underivable
from pymc_austerity.errors import SettingError
from pymc_austerity.model import PredictorDerivatives, RowStructure, predictor_derivatives
from pymc_austerity.rows import Block
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.time_limit import end_if_late

_MOST_BYTES = 4e9
"""Size of the factor of the precision, the one matrix with a number for each pair of entries."""

_LENGTH, _LENGTH_OF_HESSIANS = 65_536, 4_096
"""Rows of a block."""

_MOST_ITERATIONS = 200
_DIRECTIONS, _ROUNDS = 64, 2
_FEW_ENTRIES = 50
"""Entries of a variable up to which each is taken for one that priors of others depend on."""

_STEP, _TOLERANCE = 1e-4, 0.01


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """Log-posterior with all rows, and its gradient.

    Parameters
    ----------
    rows : PredictorDerivatives
        Of the rows.
    data : tuple of arrays
        All rows.
    row_free : callable
        Row-free part in nats, and its gradient, shape (d,).
    dtype : numpy.dtype
        Type of the points that these take.
    """

    rows: PredictorDerivatives
    data: Block
    row_free: Callable[..., Any]
    dtype: np.dtype

    def __call__(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """In nats; not finite where it is zero or undefined."""
        at = point.astype(self.dtype)
        value, gradient = self.row_free(at)
        total, slopes = float(value), np.array(gradient, dtype=np.float64)
        for block in self.blocks(_LENGTH):
            of_rows, own = self.rows.gradient(at, *block)
            total += float(of_rows)
            slopes += own
        return total, slopes

    def blocks(self, length: int) -> list[Block]:
        """The rows, in pieces that are not copied."""
        n_rows = len(self.data[0])
        starts = range(0, n_rows, length)
        return [tuple([a[start : start + length] for a in self.data]) for start in starts]


@dataclass(frozen=True, eq=False)
class Reference:
    """Normal distribution N(mean, (L L')^-1), of which one triangular matrix is stored.

    Parameters
    ----------
    mean : float array, shape (d,)
    factor : float array, shape (d, d), in Fortran order
        L; only its lower triangle is used.
    """

    mean: NDArray[np.float64]
    factor: NDArray[np.float64]

    def point(self, standard: NDArray) -> NDArray[np.float64]:
        """From standardized coordinates to a point, shape (d,)."""
        return self.mean + dtrsv(self.factor, standard, lower=1, trans=1)

    def standardized(self, point: NDArray) -> NDArray[np.float64]:
        """From a point to standardized coordinates, in which the reference is N(0, I)."""
        return dtrmv(self.factor, point - self.mean, lower=1, trans=1)

    def slope(self, gradient: NDArray) -> NDArray[np.float64]:
        """From a gradient at a point to one by standardized coordinates."""
        return dtrsv(self.factor, gradient, lower=1)

    def moves(self, noise: NDArray) -> NDArray[np.float64]:
        """From standard normal columns, shape (d, n), to those of draws about zero."""
        return dtrsm(1.0, self.factor, noise, lower=1, trans_a=1)


def wide_reference(problem: Problem, say: Say) -> tuple[LogPosterior, Reference]:
    r"""The posterior, and the normal distribution with the Hessian at the mode about the mean.

    No matrix of rows and entries is formed, and one of entries and entries.

    Raises
    ------
    SettingError
        The reason why this is impossible.
    """
    posterior = _posterior(problem)
    say("finding the posterior mode")
    with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
        mode = _mode(problem, posterior)
        say("factorizing the Hessian")
        reference = Reference(mode, _factor(posterior, mode, problem))
        say("finding the posterior mean")
        for _ in range(_ROUNDS):
            reference = _about_mean(posterior, reference, problem)
    return posterior, reference


def has_sparse_design(problem: Problem) -> bool:
    """Whether linear predictors of the rows, all in memory, read a sparse matrix."""
    structure = problem.structure
    if not isinstance(structure, RowStructure) or problem.prepared.from_sources is not None:
        return False
    return any(term.is_sparse for p in structure.predictors for term in p.terms)


def _posterior(problem: Problem) -> LogPosterior:
    structure, n_bytes = problem.structure, 8.0 * problem.start.size**2
    assert isinstance(structure, RowStructure)
    if n_bytes > _MOST_BYTES:
        raise SettingError(f"the factor of the precision would take {n_bytes / 1e9:.1f} GB")
    if any(v.dtype in discrete_types for v in problem.variables) or problem.shared:
        raise SettingError("other step methods are needed for some of the variables")
    try:
        rows = predictor_derivatives(
            structure, problem.model, compile_kwargs=problem.compile_kwargs
        )
        row_free = problem.row_free_derivatives.gradient
    except underivable:
        raise SettingError("an operation of the model has no derivative") from None
    data = tuple(np.ascontiguousarray(array) for array in problem.likelihood.arrays)
    return LogPosterior(rows, data, row_free, problem.start.dtype)


def _mode(problem: Problem, posterior: LogPosterior) -> NDArray[np.float64]:
    def negative(point: NDArray) -> tuple[float, NDArray[np.float64]]:
        end_if_late()
        value, gradient = posterior(point)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return np.inf, np.zeros_like(gradient)
        return -value, -gradient

    found = minimize(
        negative,
        problem.start.astype(np.float64),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _MOST_ITERATIONS, "maxcor": 20},
    )
    if not np.isfinite(found.fun):
        raise SettingError("the search for the mode left the support")
    return np.asarray(found.x)


def _factor(
    posterior: LogPosterior, point: NDArray[np.float64], problem: Problem
) -> NDArray[np.float64]:
    """Lower Cholesky factor of the precision at a point."""
    precision = _row_free_precision(posterior.row_free, point, problem)
    at = point.astype(posterior.dtype)
    for block in posterior.blocks(_LENGTH_OF_HESSIANS):
        end_if_late()
        own = posterior.rows.sparse_hessian(at, *block).tocoo()
        precision[own.row, own.col] -= own.data
    try:
        return cholesky(precision, lower=True, overwrite_a=True, check_finite=True)
    except (LinAlgError, ValueError):
        raise SettingError("the Hessian at the mode is not negative definite") from None


def _row_free_precision(
    row_free: Callable[..., Any], point: NDArray[np.float64], problem: Problem
) -> NDArray[np.float64]:
    """Minus the Hessian of the row-free part, if priors of long variables are independent.

    By differences of the gradient: the reference is only near to the posterior anyway.
    """
    dtype, size, rng = problem.start.dtype, point.size, np.random.default_rng(0)

    def along(direction: NDArray) -> NDArray[np.float64]:
        ends = (row_free((point + side * direction).astype(dtype))[1] for side in (_STEP, -_STEP))
        return np.asarray(np.subtract(*ends), dtype=np.float64) / (-2.0 * _STEP)

    blocks = [b for b in problem.layout.blocks if b.entries.stop - b.entries.start <= _FEW_ENTRIES]
    few = np.concatenate([np.arange(size)[b.entries] for b in blocks] or [np.empty(0, int)])
    signs = rng.choice([-1.0, 1.0], size=size)
    signs[few] = 0.0
    precision = np.zeros((size, size), order="F")
    np.fill_diagonal(precision, along(signs) * signs)
    for entry in few:
        unit = np.zeros(size)
        unit[entry] = 1.0
        precision[:, entry] = precision[entry] = along(unit)
    trial = rng.standard_normal(size)
    expected, found = along(trial), precision @ trial
    if not np.linalg.norm(found - expected) <= _TOLERANCE * np.linalg.norm(expected):
        raise SettingError("priors of long variables are not independent")
    return precision


def _about_mean(posterior: LogPosterior, reference: Reference, problem: Problem) -> Reference:
    """A step to where the gradient is zero on average: see `posterior_mean`."""
    rng, center = problem.prepared.rng, reference.mean
    noise = rng.standard_normal((center.size, _DIRECTIONS)) / np.sqrt(_DIRECTIONS)
    root = reference.moves(np.asfortranarray(noise))
    total = np.array(posterior.row_free(center.astype(posterior.dtype))[1], dtype=np.float64)
    total += functools.reduce(
        np.add,
        (posterior.rows.averaged_gradient(center, root, *b) for b in posterior.blocks(_LENGTH)),
    )
    step = dtrsv(reference.factor, reference.slope(total), lower=1, trans=1)
    return Reference(center + step, reference.factor)
