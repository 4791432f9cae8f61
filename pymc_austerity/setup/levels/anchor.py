"""The mode of entries that rows read, given likely values of those that no row reads."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.sparse.linalg import splu

from pymc_austerity.levels import LevelNormals, normals_of
from pymc_austerity.proposals.hamiltonian import center_and_scale, log_density
from pymc_austerity.setup.levels.grouped_model import GroupedModel, RowSums
from pymc_austerity.time_limit import end_if_late

_MOST_PASSES = 80
_ROUNDS = 8
"""Rounds for the entries on which no row depends; each costs one pass over the rows."""
_FIRST_PASSES = 12
"""Most passes before the first round."""
_NEAR, _CLOSE_ENOUGH = 1.0, 0.02
"""Lengths of Newton steps, in standard deviations, at which rounds begin and the search ends."""
_SAME_CURVATURE = 0.2
"""Length up to which a step does without the Hessian of the rows where it begins: that of the point
before it will do, if steps become half as long."""
_LENGTHS_OF_STEP = 3
"""Lengths that are tried until a step leads uphill, each a quarter of the one before."""
_DAMPINGS = (0.0, 1e-5, 1e-3, 0.1, 10.0, 1e4)
"""Added to the precision, in units of its diagonal, where a Newton step does not lead uphill."""
_LEAST_BEND, _MOST_REVERSED = 1e-6, 1_000
"""Least curvature then, as a share of the largest one; and entries beside the levels up to which
their precision is made positive definite."""
_STEPS_OF_A_ROUND = 20
_LEAVES, _AWAY = 3, 0.5
"""Times that a search leaves a saddle, and standard deviation of the entries where it goes on:
products whose factors all start at 0 have no slope there."""
_DENSE = 0.05
"""Share of entries other than zero from which on products of dense matrices take less time."""


class NoGroupsError(ValueError):
    """There are no groups, or no moves for them; the message is a clause."""


@dataclass(frozen=True, eq=False)
class LevelAnchor:
    """Where rows are expanded.

    Attributes
    ----------
    point : float array, shape (d,)
    gradient : float array, shape (d,)
        Of the rows.
    hessian, row_free_hessian : scipy.sparse.csr_array, shape (d, d)
        Of the rows, and of the row-free part for the entries that rows read.
    """

    point: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: sparse.csr_array
    row_free_hessian: sparse.csr_array

    @cached_property
    def precision(self) -> sparse.csr_array:
        """Negative Hessian of the log-density, for the entries that rows read."""
        return sparse.csr_array(-(self.hessian + self.row_free_hessian))


def find_level_anchor(parts: GroupedModel, start: NDArray[np.float64]) -> LevelAnchor:
    r"""Mode of levels and common entries, with priors fitted to the levels and their uncertainty.

    The joint mode of a hierarchy may not exist: with a scale of 0 the density of levels that are
    all equal is infinite. Therefore, the entries that no row reads maximize the row-free part at
    *draws* of the levels about their modes, which are as spread out as in the posterior (Monte
    Carlo EM with a normal approximation), in turn with Newton steps for the other entries. The
    first draws are made when the other entries are near their mode given the starting values: far
    from it, levels are similar, and with a small scale they would stay similar for many rounds.

    Parameters
    ----------
    parts : GroupedModel
    start : float array, shape (d,)
        Where to begin.

    Raises
    ------
    NoGroupsError
        The log-density is not concave, or the search does not converge.

    References
    ----------
    Wei, G. C. G. and Tanner, M. A. (1990). A Monte Carlo implementation of the EM algorithm and
    the poor man's data augmentation algorithms. JASA 85(411), 699-704.
    """
    rng = np.random.default_rng(0)
    noise = level_noise(parts, rng)
    z = rng.standard_normal(parts.scaled.size)
    point, touched = start.astype(np.float64), parts.touched
    first = parts.factors[0].entries.shape
    value, gradient, rows = _at(parts, point, parts.row_sums(point))
    most_rounds = _ROUNDS if parts.blocks.untouched.size else 0
    rounds, is_near, leaves = most_rounds, False, _LEAVES
    hessian, of = parts.row_hessian(point), point
    before = np.inf
    for number in range(_MOST_PASSES):
        end_if_late()
        is_near = is_near or number == _FIRST_PASSES
        if rounds and is_near:
            rounds -= 1
            point = _with_untouched(parts, point, hessian, noise, z)
            value, gradient, rows = _at(parts, point, rows)  # rows do not read these entries
        exact = parts.row_free_hessian(point)
        precision = sparse.csr_array(-(hessian + exact)[touched][:, touched])
        step = solved(precision, gradient[touched], first)
        distance = _length(step, gradient[touched])
        is_end = not rounds and distance < _CLOSE_ENOUGH * np.sqrt(touched.size)
        is_saddle = (is_end or leaves < _LEAVES) and _is_saddle(precision, first)
        if is_end and is_saddle and leaves:
            rounds, is_near, leaves = most_rounds, False, leaves - 1
            point = point.copy()
            point[touched] += _AWAY * rng.standard_normal(touched.size)
            value, gradient, rows = _at(parts, point, parts.row_sums(point))
            hessian, of, before = parts.row_hessian(point), point, np.inf
            continue
        if is_end:
            if not np.array_equal(point[touched], of[touched]):
                hessian = parts.row_hessian(point)
            return LevelAnchor(point, rows.gradient, hessian, exact)
        is_near = is_near or distance < _NEAR * np.sqrt(touched.size)
        found = None if is_saddle else _ascended(parts, point, step, value)
        if found is None:
            found = _ascended_damped(parts, point, precision, gradient[touched], value)
        point, value, gradient, rows = found
        if distance > min(_SAME_CURVATURE * np.sqrt(touched.size), before / 2.0):
            hessian, of = parts.row_hessian(point), point
        before = distance
    raise NoGroupsError("the search for a mode given the priors did not converge")


def anchor_at(parts: GroupedModel, point: NDArray[np.float64]) -> LevelAnchor:
    """Derivatives about a given point."""
    hessians = parts.row_hessian(point), parts.row_free_hessian(point)
    return LevelAnchor(point, parts.row_sums(point).gradient, *hessians)


def _at(
    parts: GroupedModel, point: NDArray[np.float64], rows: RowSums
) -> tuple[float, NDArray[np.float64], RowSums]:
    """Log-density, its gradient, and the sums over the rows."""
    exact, slope = parts.problem.row_free_derivatives.gradient(point)
    return rows.value + float(exact), rows.gradient + slope, rows


def solved(
    precision: sparse.csr_array, right: NDArray[np.float64], first: tuple[int, int]
) -> NDArray[np.float64]:
    """The solution of a sparse symmetric system, whose first entries are levels.

    Levels of one factor do not depend on each other, so they are eliminated one by one, and
    a system for the other entries remains.

    Parameters
    ----------
    precision : scipy.sparse.csr_array, shape (t, t)
    right : float array, shape (t,)
    first : (G, q)
        Levels of the factor that comes first, and entries of each.

    Raises
    ------
    NoGroupsError
        The matrix is singular.
    """
    n, own = first[0] * first[1], np.arange(first[0] * first[1]).reshape(first)
    try:
        inverses = np.linalg.inv(level_blocks(precision, own))
        levels, rest = block_diagonal(inverses), np.empty(0)
        by_levels, through = _eliminated(inverses, precision[:n, n:])
        if right.size > n:
            left = sparse.csc_array(precision[n:, n:] - through)
            factor = splu(left, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
            rest = factor.solve(right[n:] - by_levels.T @ right[:n])
    except (RuntimeError, np.linalg.LinAlgError) as error:
        raise NoGroupsError("the Hessian of the log-density is singular") from error
    solution = np.concatenate([levels @ right[:n] - by_levels @ rest, rest])
    if not np.isfinite(solution).all():
        raise NoGroupsError("the Hessian of the log-density is singular")
    return solution


def _is_saddle(precision: sparse.csr_array, first: tuple[int, int]) -> bool:
    """Whether a precision as of `solved` is not positive definite, though those of all levels are.

    Those of levels with few rows are not, where priors are wider than their mode would have them.
    """
    n = first[0] * first[1]
    blocks = level_blocks(precision, np.arange(n).reshape(first))
    try:
        np.linalg.cholesky(blocks)
    except np.linalg.LinAlgError:
        return False
    if precision.shape[0] == n:
        return False
    _, through = _eliminated(np.linalg.inv(blocks), precision[:n, n:])
    options = {"SymmetricMode": True, "DiagPivotThresh": 0.0}
    try:
        left = sparse.csc_array(precision[n:, n:] - through)
        factor = splu(left, permc_spec="MMD_AT_PLUS_A", options=options)
    except RuntimeError:  # it is singular
        return True
    is_symmetric = np.array_equal(factor.perm_r, factor.perm_c)
    return not is_symmetric or bool(np.any(factor.U.diagonal() <= 0.0))


def _eliminated(
    inverses: NDArray[np.floating], between: sparse.csr_array
) -> tuple[sparse.csr_array | NDArray[np.float64], sparse.csr_array]:
    """Inverses of levels times a matrix of shape (n, r), and its transpose times that.

    Most of the matrix may be other than zero, as where each level is read with each of another.
    """
    if between.nnz > _DENSE * between.shape[0] * between.shape[1]:
        whole = between.toarray()
        by_levels = np.matmul(inverses, whole.reshape(*inverses.shape[:2], -1)).reshape(whole.shape)
        return by_levels, sparse.csr_array(whole.T @ by_levels)
    sparsely = sparse.csr_array(block_diagonal(inverses) @ between)
    return sparsely, sparse.csr_array(between.T @ sparsely)


def _bent_down(precision: sparse.csr_array, first: tuple[int, int]) -> sparse.csr_array:
    """A positive definite one: directions in which the log-density bends upward are reversed.

    Those of the levels that come first, and then, with these eliminated, those of the others, if
    they are not too many.
    """
    n = first[0] * first[1]
    blocks = level_blocks(precision, np.arange(n).reshape(first))
    reversed_ = _reversed(blocks)
    levels = block_diagonal(reversed_)
    rest = precision[n:, n:]
    if 0 < rest.shape[0] <= _MOST_REVERSED:
        through = _eliminated(np.linalg.inv(reversed_), precision[:n, n:])[1].toarray()
        given = rest.toarray() - through
        rest = sparse.csr_array(_reversed(given) + through)
    return sparse.csr_array(
        sparse.block_array([[levels, precision[:n, n:]], [precision[n:, :n], rest]])
    )


def _reversed(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same eigenvectors, with the absolute values of eigenvalues, which are not tiny."""
    values, vectors = np.linalg.eigh(matrices)
    heights = np.maximum(np.abs(values), _LEAST_BEND * np.abs(values).max(axis=-1, keepdims=True))
    return np.asarray((vectors * heights[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def block_diagonal(blocks: NDArray) -> sparse.bsr_array:
    """The matrix with these blocks, shape (G, q, q), on its diagonal."""
    return sparse.bsr_array((blocks, np.arange(len(blocks)), np.arange(len(blocks) + 1)))


def _ridge(precision: sparse.csr_array, damping: float) -> sparse.csr_array:
    """A diagonal that makes steps shorter and turns them towards the gradient."""
    diagonal = np.abs(precision.diagonal())
    return sparse.csr_array(sparse.diags_array(damping * (diagonal + diagonal.mean())))


def _length(step: NDArray[np.float64], gradient: NDArray[np.float64]) -> float:
    """Length of a Newton step in standard deviations; infinite where it goes downhill."""
    square = float(gradient @ step)
    return np.sqrt(square) if square >= 0.0 else np.inf


def _ascended(
    parts: GroupedModel, point: NDArray[np.float64], step: NDArray[np.float64], value: float
) -> tuple[NDArray[np.float64], float, NDArray[np.float64], RowSums] | None:
    """The point after the step, shortened until the log-density rises; None if it never does."""
    for _ in range(_LENGTHS_OF_STEP):
        there = point.copy()
        there[parts.touched] += step
        new, gradient, rows = _at(parts, there, parts.row_sums(there))
        if np.isfinite(new) and np.isfinite(gradient).all() and new >= value - 1e-9 * abs(value):
            return there, new, gradient, rows
        step = step / 4.0
    return None


def _ascended_damped(
    parts: GroupedModel,
    point: NDArray[np.float64],
    precision: sparse.csr_array,
    gradient: NDArray[np.float64],
    value: float,
) -> tuple[NDArray[np.float64], float, NDArray[np.float64], RowSums]:
    """The same where a Newton step does not lead uphill, with ever shorter steps."""
    first = parts.factors[0].entries.shape
    precision = _bent_down(precision, first)
    for damping in _DAMPINGS:
        step = solved(precision + _ridge(precision, damping), gradient, first)
        if (found := _ascended(parts, point, step, value)) is not None:
            return found
    raise NoGroupsError("the log-density does not rise along its gradient")


def _with_untouched(
    parts: GroupedModel,
    point: NDArray[np.float64],
    hessian: sparse.csr_array,
    noise: list[NDArray[np.float64]],
    z: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The same point, with the entries that no row reads at their mode given draws of the levels.

    Entries that are normal given the others, like means of nested groups, are drawn, too: they
    stay at `z`, in standard deviations, during the search for the others.
    """
    own, scaled = parts.blocks.untouched, parts.scaled
    free = np.setdiff1d(np.arange(own.size), scaled)
    normals, nothing = level_normals(parts, point, hessian), np.zeros(own.size)
    drawn = _with_common(parts, drawn_levels(parts, point, normals, noise), point, hessian)
    no_rows = np.zeros((own.size, own.size))

    def exact(values: NDArray) -> tuple[float, NDArray[np.float64]]:
        there = drawn.copy()
        there[own] = values
        value, gradient = parts.problem.row_free_derivatives.gradient(there)
        return float(value), gradient[own]

    def coordinates(values: NDArray) -> NDArray[np.float64]:
        x = np.empty(own.size)
        x[free], x[scaled] = values, z
        return x

    def negative(values: NDArray) -> tuple[float, NDArray[np.float64]]:
        value, gradient = log_density(exact, coordinates(values), nothing, nothing, no_rows, scaled)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return 1e300, np.zeros(free.size)
        return -float(value), -gradient[free]

    with np.errstate(all="ignore"):
        result = minimize(
            negative,
            drawn[own][free],
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _STEPS_OF_A_ROUND},
        )
        found = coordinates(result.x)
        if scaled.size:
            center, scale = center_and_scale(exact, found, nothing, no_rows, scaled)
            found[scaled] = center + scale * z
    there = point.copy()
    if np.isfinite(found).all():
        there[own] = found
    return there


def level_noise(parts: GroupedModel, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Standard normal numbers for the levels of each factor."""
    return [rng.standard_normal(factor.entries.shape) for factor in parts.factors]


def level_normals(
    parts: GroupedModel, point: NDArray[np.float64], hessian: sparse.csr_array
) -> list[LevelNormals]:
    """Normal approximations of the levels of each factor about a point, given all other entries."""
    return [
        normals_of(
            -level_blocks(hessian, factor.entries) - terms.derivatives(point)[1],
            np.zeros(factor.entries.shape),
        )
        for factor, terms in zip(parts.factors, parts.terms, strict=True)
    ]


def drawn_levels(
    parts: GroupedModel,
    point: NDArray[np.float64],
    normals: list[LevelNormals],
    noise: list[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """The same point with levels drawn from their normal approximations about it."""
    drawn = point.copy()
    for factor, normal, xi in zip(parts.factors, normals, noise, strict=True):
        drawn[factor.entries] += normal.values(xi)
    return drawn


def _with_common(
    parts: GroupedModel,
    drawn: NDArray[np.float64],
    point: NDArray[np.float64],
    hessian: sparse.csr_array,
) -> NDArray[np.float64]:
    """The drawn point with a draw of the common entries, which may have a scale, too.

    As they are where their precision is not positive definite.
    """
    common = parts.blocks.common
    precision = -hessian[common][:, common].toarray()
    precision -= parts.common_row_free.hessian(point)[:, common]
    try:
        root = cholesky(precision, lower=True)
    except (LinAlgError, ValueError):
        return drawn
    there = drawn.copy()
    noise = np.random.default_rng(9).standard_normal(common.size)
    there[common] += solve_triangular(root, noise, trans="T", lower=True)
    return there


def level_blocks(hessian: sparse.csr_array, entries: NDArray[np.int64]) -> NDArray[np.float64]:
    """Blocks of a Hessian for the entries of each level, shape (G, q, q)."""
    n_levels, q = entries.shape
    blocks = np.empty((n_levels, q, q))
    for j in range(q):
        for k in range(q):
            blocks[:, j, k] = np.asarray(hessian[entries[:, j], entries[:, k]]).ravel()
    return blocks
