"""Wide models with sparse designs: gradients of all rows, and a normal distribution near them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.blas import dtrmv, dtrsm, dtrsv
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import threadpool_limits

from pymc_austerity._pymc import discrete_types, underivable
from pymc_austerity.control_variates import RowDensity, few_directions, where_zero
from pymc_austerity.errors import SettingError
from pymc_austerity.model import PredictorDerivatives, RowStructure, predictor_derivatives
from pymc_austerity.rows import SharedRows, blocks_of, sum_over_rows
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.time_limit import end_if_late

_MOST_BYTES = 4e9
"""Size of the factor of the precision, the one matrix with a number for each pair of entries."""

_LENGTH, _LENGTH_OF_HESSIANS = 65_536, 4_096
"""Rows of a block."""

_MOST_ITERATIONS = 200
_FEW_ENTRIES = 50
"""Entries of a variable up to which each is taken for one that priors of others depend on."""

_STEP, _TOLERANCE = 1e-4, 0.01


@dataclass(frozen=True, eq=False)
class Reference:
    """Normal distribution N(mean, (L L')^-1), of which one triangular matrix is stored.

    Attributes
    ----------
    mean : float array, shape (d,)
    columns : SharedRows
        Columns of L, for all processes.
    """

    mean: NDArray[np.float64]
    columns: SharedRows

    @classmethod
    def of(cls, mean: NDArray[np.float64], factor: NDArray[np.float64]) -> "Reference":
        """From L, float array, shape (d, d), in Fortran order; only its lower triangle is used."""
        return cls(mean, SharedRows([factor.T]))

    @property
    def factor(self) -> NDArray[np.float64]:
        """L, in Fortran order."""
        (rows,) = self.columns.window(0, self.mean.size)
        return rows.T

    @property
    def root(self) -> LinearOperator:
        """Root of the covariance, inverse of L'."""
        factor = self.factor
        return LinearOperator(
            factor.shape,
            lambda x: dtrsv(factor, x, lower=1, trans=1),
            rmatvec=lambda x: dtrsv(factor, x, lower=1),
            matmat=lambda x: dtrsm(1.0, factor, x, lower=1, trans_a=1),
            dtype=np.float64,
        )

    def point(self, standard: NDArray) -> NDArray[np.float64]:
        """From standardized coordinates to a point, shape (d,)."""
        return self.mean + dtrsv(self.factor, standard, lower=1, trans=1)

    def standardized(self, point: NDArray) -> NDArray[np.float64]:
        """From a point to standardized coordinates, in which the reference is N(0, I)."""
        return dtrmv(self.factor, point - self.mean, lower=1, trans=1)

    def slope(self, gradient: NDArray) -> NDArray[np.float64]:
        """From a gradient at a point to one by standardized coordinates."""
        return dtrsv(self.factor, gradient, lower=1)


class _RowFree(NamedTuple):
    """The row-free part, if priors of long variables are independent.

    Its second derivatives are differences of the gradient: the reference is only near to the
    posterior anyway, and processes do without the graph of the model.
    """

    value_and_gradient: Callable[..., Any]
    few: NDArray[np.int64]
    dtype: np.dtype

    def gradient(self, point: NDArray) -> tuple[NDArray, NDArray[np.float64]]:
        """Log-density in nats, and gradient, shape (d,)."""
        value, gradient = self.value_and_gradient(point.astype(self.dtype, copy=False))
        return value, np.asarray(gradient, dtype=np.float64)

    def hessian(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shape (d, d), in Fortran order.

        Raises
        ------
        SettingError
            Priors are not independent.
        """
        size, rng = point.size, np.random.default_rng(0)

        def along(direction: NDArray) -> NDArray[np.float64]:
            ends = (self.gradient(point + side * direction)[1] for side in (_STEP, -_STEP))
            return np.subtract(*ends) / (2.0 * _STEP)

        signs = rng.choice([-1.0, 1.0], size=size)
        signs[self.few] = 0.0
        hessian = np.zeros((size, size), order="F")
        np.fill_diagonal(hessian, along(signs) * signs)
        for entry in self.few:
            unit = np.zeros(size)
            unit[entry] = 1.0
            hessian[:, entry] = hessian[entry] = along(unit)
        trial = rng.standard_normal(size)
        expected, found = along(trial), hessian @ trial
        if not np.linalg.norm(found - expected) <= _TOLERANCE * np.linalg.norm(expected):
            raise SettingError("priors of long variables are not independent")
        return hessian


def wide_reference(problem: Problem, say: Say) -> tuple[RowDensity, Reference]:
    r"""The posterior, and the normal distribution with the Hessian at the mode about the mean.

    No matrix of rows and entries is formed, and one of entries and entries. It is stored for all
    processes, as the rows are.

    Raises
    ------
    SettingError
        The reason why this is impossible.
    """
    derivatives, row_free = _derivatives(problem)
    rows = SharedRows(problem.likelihood.arrays)
    parts, dtype = [(rows, 1.0)], problem.start.dtype
    posterior = RowDensity(derivatives, row_free, derivatives.differences, parts, dtype, _LENGTH)
    with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
        say("finding the posterior mode")
        mode = _mode(problem, posterior)
        say("factorizing the Hessian")
        reference = Reference.of(mode, _factor(derivatives, row_free, rows, mode))
        say("finding the posterior mean")
        directions = few_directions(reference.root, problem.prepared.rng)

        def gradients(point: NDArray[np.float64]) -> list[NDArray[np.float64]]:
            averaged = partial(derivatives.averaged_gradient, point, directions)
            of_rows = sum_over_rows(lambda block: averaged(*block), rows, length=_LENGTH)
            return [of_rows + row_free.gradient(point)[1]]

        mean = where_zero(gradients, mode, reference.root)
    return posterior, replace(reference, mean=mean)


def has_sparse_design(problem: Problem) -> bool:
    """Whether linear predictors of the rows, all in memory, read a sparse matrix."""
    structure = problem.structure
    if not isinstance(structure, RowStructure) or problem.prepared.from_sources is not None:
        return False
    return any(term.is_sparse for p in structure.predictors for term in p.terms)


def _derivatives(problem: Problem) -> tuple[PredictorDerivatives, _RowFree]:
    """Of the rows and of the rest, if the model is one for which there is a reference."""
    structure, n_bytes = problem.structure, 8.0 * problem.start.size**2
    assert isinstance(structure, RowStructure)
    if n_bytes > _MOST_BYTES:
        raise SettingError(f"the factor of the precision would take {n_bytes / 1e9:.1f} GB")
    if any(v.dtype in discrete_types for v in problem.variables) or problem.shared:
        raise SettingError("other step methods are needed for some of the variables")
    kwargs, point = problem.compile_kwargs, problem.prepared.point
    short = [v for v in problem.variables if np.size(point[v.name]) <= _FEW_ENTRIES]
    try:
        rows = predictor_derivatives(structure, problem.model, compile_kwargs=kwargs)
        gradient = problem.row_free_derivatives.gradient
    except underivable:
        raise SettingError("an operation of the model has no derivative") from None
    return rows, _RowFree(gradient, problem.entries_of(short), problem.start.dtype)


def _mode(problem: Problem, posterior: RowDensity) -> NDArray[np.float64]:
    def negative(point: NDArray) -> tuple[float, NDArray[np.float64]]:
        end_if_late()
        value, gradient = posterior.gradient(point)
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
    derivatives: PredictorDerivatives,
    row_free: _RowFree,
    rows: SharedRows,
    point: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Lower Cholesky factor of the precision at a point."""
    precision = row_free.hessian(point)
    np.negative(precision, out=precision)
    at = point.astype(row_free.dtype)
    for block in blocks_of(rows, _LENGTH_OF_HESSIANS):
        own = derivatives.sparse_hessian(at, *block).tocoo()
        precision[own.row, own.col] -= own.data
    try:
        return cholesky(precision, lower=True, overwrite_a=True, check_finite=True)
    except (LinAlgError, ValueError):
        raise SettingError("the Hessian at the mode is not negative definite") from None
