"""Derivatives of the rows by way of those of a function of few linear predictors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any, TypeAlias

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity._pymc import Variable, clone_replace, grad, rebuilt, stabilized
from pymc_austerity.model.compiling import OfTypes, evaluated
from pymc_austerity.model.cut.known import is_cast
from pymc_austerity.model.predictors.structure import (
    DenseRows,
    Design,
    DesignFunction,
    OnRows,
    RowStructure,
    SparseRows,
    Term,
    design_function,
)

Functions: TypeAlias = Callable[..., Iterable[NDArray[np.float64]]]
"""From predictors, each of shape (m,), and a block, to results of shape (m,)."""

_quiet = np.errstate(over="ignore", invalid="ignore")
"""Callers check whether the results are finite."""


@dataclass(frozen=True, eq=False)
class PredictorDerivatives:
    r"""Derivatives of the rows, all in float64, from f' and f'' of the predictors.

    .. math::
        \nabla = \sum_i A_i' f_i'(\eta_i), \quad H = \sum_i A_i' f_i''(\eta_i) A_i

    Attributes
    ----------
    designs : callable
        Evaluates the matrices of the predictors.
    first, second : callable
        From predictors and a block: log-likelihoods and first derivatives of the rows; the upper
        triangle of the second ones.
    size : int
        Length of the raveled vector, d.
    cost_of_average : float
        Multiplications of `averaged_gradient` for a row.
    """

    designs: DesignFunction
    first: Functions
    second: Functions
    size: int
    cost_of_average: float

    def differences(
        self, proposed: NDArray, current: NDArray, *block: NDArray
    ) -> NDArray[np.float64]:
        """Differences of the log-likelihoods of rows between two points, shape (m,), nats."""
        return self.values(proposed, *block) - self.values(current, *block)

    @_quiet
    def values(self, point: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """Log-likelihoods of the rows, shape (m,), nats."""
        return self.log_likelihoods(self._at(point, block)[1], block)

    @_quiet
    def log_likelihoods(
        self, etas: Sequence[NDArray[np.float64]], block: Sequence[NDArray]
    ) -> NDArray[np.float64]:
        """Log-likelihoods of rows with given predictors, shape (m,), nats."""
        return next(iter(self.first(*etas, *block)))

    @_quiet
    def gradient(self, point: NDArray, *block: NDArray) -> tuple[NDArray, NDArray[np.float64]]:
        """Sums over the block of the log-likelihoods, nats, and of their gradients, shape (d,)."""
        on_rows, etas = self._at(point, block)
        log_densities, *slopes = self.first(*etas, *block)
        return np.asarray(log_densities.sum()), _summed(on_rows, slopes, self.size)

    @_quiet
    def along(
        self, point: NDArray, directions: NDArray[np.float64], *block: NDArray
    ) -> NDArray[np.float64]:
        """Derivatives of the rows along directions of shape (d, n), shape (m, n)."""
        on_rows, etas = self._at(point, block)
        _, *slopes = self.first(*etas, *block)
        moves = [design.product(directions) for design in on_rows]
        return np.asarray(sum(s[:, None] * move for s, move in zip(slopes, moves, strict=True)))

    @_quiet
    def hessian(self, point: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """Sum of the Hessians, shape (d, d)."""
        designs, etas = self._at(point, block)
        return self._hessian_of(designs, self.second(*etas, *block))

    def _hessian_of(
        self, designs: Sequence[Design], curvatures: Iterable[NDArray]
    ) -> NDArray[np.float64]:
        total = np.zeros((self.size, self.size))
        for rows, columns, part in _parts(designs, curvatures):
            total[rows, columns] += part  # no pair of entries stands twice in a part
        return total

    @_quiet
    def sparse_hessian(self, point: NDArray, *block: NDArray) -> sparse.csr_matrix:
        """The same, without storing anything of size d x d."""
        designs, etas = self._at(point, block)
        parts = [
            [np.ravel(a) for a in np.broadcast_arrays(*part)]
            for part in _parts(designs, self.second(*etas, *block))
        ]
        rows, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return sparse.csr_matrix((values, (rows, columns)), shape=(self.size, self.size))

    @_quiet
    def averaged_gradient(
        self, point: NDArray, root: NDArray, *block: NDArray
    ) -> NDArray[np.float64]:
        """Sum of the gradients, averaged over a normal distribution, shape (d,).

        Its mean is the point, its covariance ``root root'``; up to terms of fifth derivatives.
        """
        on_rows, etas = self._at(point, block)
        n_rows, step = len(block[0]), max(_NUMBERS // (len(etas) * root.shape[1]), 1)
        if step < n_rows:
            starts = range(0, n_rows, step)
            parts = ([array[start : start + step] for array in block] for start in starts)
            return np.sum([self.averaged_gradient(point, root, *part) for part in parts], axis=0)
        _, *slopes = self.first(*etas, *block)
        averages = [np.copy(slope) for slope in slopes]
        for moves in _spread(on_rows, root):
            for side in (1.0, -1.0):
                there = [eta + side * move for eta, move in zip(etas, moves, strict=True)]
                _, *found = self.first(*there, *block)
                for average, slope, here in zip(averages, found, slopes, strict=True):
                    average += 0.5 * (slope - here)
        return _summed(on_rows, averages, self.size)

    @_quiet
    def averaged_hessian(
        self, point: NDArray, root: NDArray, *block: NDArray
    ) -> NDArray[np.float64]:
        """Sum of the Hessians, averaged over moves of each predictor, shape (d, d).

        Its length is a standard deviation under a normal distribution with covariance
        ``root root'``: secants of the slopes are averages of the second derivatives over it.
        """
        on_rows, etas = self._at(point, block)
        slopes = np.zeros((len(etas), len(etas), len(block[0])))
        for j, design in enumerate(on_rows):
            move = np.sqrt(np.square(design.product(root)).sum(axis=1))
            for side in (1.0, -1.0):
                there = [eta + side * move if i == j else eta for i, eta in enumerate(etas)]
                _, *found = self.first(*there, *block)
                slopes[j] += side * np.array(found) / np.where(move > 0.0, 2.0 * move, np.inf)
        pairs = combinations_with_replacement(range(len(etas)), 2)
        curvatures = [(slopes[i, j] + slopes[j, i]) / 2.0 for i, j in pairs]
        return self._hessian_of(on_rows, curvatures)

    @_quiet
    def anchor_constants(self, point: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """What the second-order expansion of a row about the point needs.

        C-contiguous, shape (m, k + k + k (k + 1) / 2): the k predictors, their k first derivatives
        and the upper triangle of the second ones, row by row.
        """
        _, etas = self._at(point, block)
        (_, *slopes), curvatures = self.first(*etas, *block), self.second(*etas, *block)
        return np.ascontiguousarray(np.stack([*etas, *slopes, *curvatures], axis=1))

    def _at(self, point: NDArray, block: Sequence[NDArray]) -> tuple[list[Design], list[NDArray]]:
        """The matrices of the predictors on a block of rows, and the predictors at a point."""
        on_rows, exact = self.designs(block), point.astype(np.float64)
        return on_rows, [design.eta(exact) for design in on_rows]


def _parts(designs: Sequence[Design], curvatures: Iterable[NDArray]) -> Iterator[tuple]:
    """Rows, columns and numbers, broadcast, that add up to the Hessian."""
    pairs = combinations_with_replacement(designs, 2)
    for (one, other), weights in zip(pairs, curvatures, strict=True):
        for left, right in product(one.terms, other.terms):
            rows, columns, part = _product(left, right, weights)
            yield rows, columns, part
            if one is not other:
                yield columns, rows, part


def predictor_derivatives(
    structure: RowStructure,
    model: pm.Model,
    *,
    loops: tuple[Functions, Functions] | None = None,
    compile_kwargs: dict[str, Any] | None = None,
) -> PredictorDerivatives:
    """Make gradients and Hessians of the rows.

    Parameters
    ----------
    structure : RowStructure
        The rows as a function of linear predictors.
    model : pymc.Model
        The model, for compilation.
    loops : tuple of two callables, optional
        Values with first derivatives, and the upper triangle of the second ones, of the predictors
        and a block, such as those of `pymc_austerity.model.row_loops_of`; by default NumPy
        evaluates graphs.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile`` where NumPy would be slow.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import ModelAt, find_predictors, split_log_density
    >>> with pm.Model() as model:
    ...     b = pm.Normal("b", shape=2)
    ...     _ = pm.Normal("y", np.eye(2) @ b, 1.0, observed=np.zeros(2))
    >>> split = split_log_density(model)
    >>> structure = find_predictors(ModelAt(split, model.value_vars, {}, model.initial_point()))
    >>> derivatives = predictor_derivatives(structure, model)
    >>> derivatives.hessian(np.zeros(2), *split.arrays)
    array([[-1.,  0.],
           [ 0., -1.]])
    """
    first, second = loops or _predictor_functions(structure, model, compile_kwargs)
    designs, cost = design_function(structure, model), _cost_of_average(structure)
    return PredictorDerivatives(designs, first, second, structure.size, cost)


# ------------------------------------------------------------------ of the function


def _predictor_functions(
    structure: RowStructure, model: pm.Model, compile_kwargs: dict[str, Any] | None
) -> tuple[Functions, Functions]:
    """Values with first derivatives, and the upper triangle of the second ones.

    Both are functions of the predictors and of a block, and return lists of arrays of shape (m,).
    """
    function, etas = _of_predictors(structure)
    slopes = _slopes_of(function, etas)
    curvatures = [c for k, slope in enumerate(slopes) for c in _slopes_of(slope, etas[k:])]
    first = _made(structure, model, etas, [function, *slopes], compile_kwargs)
    return first, _made(structure, model, etas, curvatures, compile_kwargs)


def predictor_values(
    structure: RowStructure, model: pm.Model, compile_kwargs: dict[str, Any] | None
) -> Callable[..., list]:
    """Log-likelihoods of the rows alone, as a function that returns a list."""
    function, etas = _of_predictors(structure)
    return _made(structure, model, etas, [function], compile_kwargs)


def _of_predictors(structure: RowStructure) -> tuple[Variable, list[Variable]]:
    """The function of the rows, and the predictors as inputs of it."""
    etas = [pt.vector(eta.name, dtype="float64") for eta in structure.etas]
    moved = dict(zip(structure.etas, etas, strict=True))
    (function,) = clone_replace([structure.function], moved, rebuild_strict=False)
    return stabilized(*rebuilt([function], _without_rounding)), etas


def _made(
    structure: RowStructure,
    model: pm.Model,
    etas: list[Variable],
    outputs: list[Variable],
    compile_kwargs: dict[str, Any] | None,
) -> Callable[..., list]:
    """A function whose outputs have one entry for each row, in float64."""
    inputs = [*etas, *(leaf.placeholder for leaf in structure.leaves)]
    exact = [(o + 0.0 * etas[0]).astype("float64") for o in outputs]
    function = evaluated(model, inputs, exact, compile_kwargs)
    return OfTypes(function, tuple(i.dtype for i in inputs))


def _slopes_of(slope: Variable, etas: list[Variable]) -> list[Variable]:
    return list(grad(slope.sum(), etas, disconnected_inputs="ignore"))


def _without_rounding(node: Any, inputs: list[Variable]) -> list[Variable] | None:
    """Leave out casts to shorter floats."""
    is_cut = is_cast(node.outputs[0]) and node.outputs[0].dtype == "float32"
    return inputs if is_cut and inputs[0].dtype == "float64" else None


# ------------------------------------------------------------------ sums over rows


def _summed(designs: Sequence[Design], slopes: Sequence[NDArray], size: int) -> NDArray[np.float64]:
    """Gradient of the rows from derivatives by their predictors, shape (d,)."""
    total = np.zeros(size)
    for design, slope in zip(designs, slopes, strict=True):
        design.add_transposed(slope, total)
    return total


def _cost_of_average(structure: RowStructure) -> float:
    terms = [term for predictor in structure.predictors for term in predictor.terms]
    products = sum(_n_products(term) for term in terms)
    k = len(structure.predictors)
    return products * structure.size + _OF_EIGENVECTORS * k**3 * (k > 1)


def _n_products(term: Term) -> int:
    if term.columns is None:
        return term.entries.size
    return 1 if term.data is None or not term.is_matrix else int(term.data.type.shape[1] or 1)


def _spread(designs: Sequence[Design], root: NDArray) -> NDArray[np.float64]:
    """Moves of the k predictors of each row whose outer products add up to their covariance.

    Returns
    -------
    float array, shape (n, k, m)
        By the move, and by the predictor: the columns of the root, or k where these are many.
    """
    found = [design.product(root) for design in designs]
    if len(found) == 1:
        (only,) = found
        return np.sqrt(np.einsum("ij,ij->i", only, only))[None, None]
    z = np.stack(found, axis=1)
    if root.shape[1] <= 2 * len(found):
        return np.ascontiguousarray(z.transpose(2, 1, 0))
    values, vectors = np.linalg.eigh(np.matmul(z, z.transpose(0, 2, 1)))
    moves = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.ascontiguousarray(moves.transpose(2, 1, 0))


def _product(one: OnRows, two: OnRows, weights: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """One term's matrix, transposed, times weights times the matrix of another."""
    if isinstance(one, DenseRows) and isinstance(two, DenseRows):
        return one.entries[:, None], two.entries[None, :], _weighted(one.data, two.data, weights)
    if isinstance(one, DenseRows):
        rows, columns, part = _product(two, one, weights)
        return columns, rows, part
    entries, numbers = np.unique(one.entries, return_inverse=True)
    own = SparseRows(numbers.reshape(one.data.shape), weights[:, None] * one.data)
    left = own.matrix(entries.size).T
    if isinstance(two, DenseRows):
        return entries[:, None], two.entries[None, :], left @ two.data
    pairs = (left @ two.matrix(int(two.entries.max(initial=-1)) + 1)).tocoo()
    return entries[pairs.row], pairs.col, pairs.data


def _weighted(one: NDArray, two: NDArray, weights: NDArray) -> NDArray[np.float64]:
    """One matrix, transposed, times weights times another; half the work where both are one."""
    if one.shape[1] == 1:
        return np.asarray((one[:, 0] * weights) @ two)[None]
    if one is two and (np.all(weights <= 0.0) or np.all(weights >= 0.0)):
        scaled = one * np.sqrt(np.abs(weights))[:, None]
        total = scaled.T @ scaled  # symmetric, as NumPy sees
        return -total if np.any(weights < 0.0) else total
    return (one * weights[:, None]).T @ two


_NUMBERS = 8_388_608
"""Moves of predictors that are held at a time."""
_OF_EIGENVECTORS = 20.0
"""Multiplications for each number of a cube with the size of a matrix."""
