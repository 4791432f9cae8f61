"""Directions along which a Gibbs sampler of levels and common entries is slow."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, eigh, pinv, solve
from scipy.sparse.linalg import LinearOperator, eigsh

from pymc_austerity.levels import JointBlock, LevelNormals, Ridges, normals_of
from pymc_austerity.setup.levels.anchor import LevelAnchor, block_diagonal, level_blocks
from pymc_austerity.setup.levels.grouped_model import GroupedModel

_MOST = 32
"""Most directions: the fewer move at once, the more moves are accepted."""

_FAST = 0.1
"""Autocorrelation below which there is nothing to gain."""

_DENSE = 500
"""Entries up to which all eigenvectors are found at once."""

_RIDGE = 0.1
"""Precision along a direction, to the precision when either the means of the prior or the common
entries stay where they are, below which moves along it are worth their time."""

_MOST_NUMBERS = 5_000_000
"""Numbers of the derivatives of the entries that no row reads."""

_PRODUCTS = 100
"""Products with the matrix of more entries, for some eigenvectors: any directions are valid."""


def joint_block(parts: GroupedModel, anchor: LevelAnchor) -> JointBlock | None:
    r"""Slow directions of common entries and levels of smaller factors, without `shift`.

    With the precision :math:`S` of these entries when the levels of the first factor are integrated
    out, and the precisions :math:`D` of its blocks given everything else, a Gibbs sampler has the
    autocorrelations :math:`1 - \lambda` along the eigenvectors :math:`S w = \lambda D w`. They are
    found by products with sparse matrices, each of which costs as much as there are pairs of
    levels in the rows.

    Parameters
    ----------
    parts : GroupedModel
    anchor : LevelAnchor

    Returns
    -------
    JointBlock or None
        None where rows read nothing but the levels of one factor.

    References
    ----------
    Roberts, G. O. and Sahu, S. K. (1997). Updating schemes, correlation structure, blocking and
    parameterization for the Gibbs sampler. JRSS B 59(2), 291-317.
    """
    common, first = parts.blocks.common, parts.factors[0].entries
    smaller = [factor.entries for factor in parts.factors[1:]]
    entries = np.concatenate([common, *(own.ravel() for own in smaller)])
    if not entries.size:
        return None
    places = np.empty(anchor.point.size, dtype=np.int64)
    places[entries] = np.arange(entries.size)
    precision = anchor.precision
    within, between = precision[entries][:, entries], precision[first.ravel()][:, entries]
    blocks = [common[None]] * bool(common.size) + smaller
    directions, duals, stays = _slowest(
        sparse.csr_array(within),
        sparse.csr_array(between),
        _normals(precision, first),
        [_normals(precision, own) for own in blocks],
    )
    rows_alone = within @ directions
    for terms, own in zip(parts.terms[1:], smaller, strict=True):
        _, curvatures = terms.derivatives(anchor.point)
        rows_alone[places[own]] += np.matmul(curvatures, directions[places[own]])
    return JointBlock(
        entries,
        directions,
        duals,
        rows_alone,
        (between @ directions).reshape(*first.shape, -1),
        anchor.gradient[entries] @ directions,
        np.zeros(directions.shape[1]),
        places[common],
        [(number, places[own]) for number, own in enumerate(smaller, start=1)],
        stays,
    )


def ridges(parts: GroupedModel, anchor: LevelAnchor) -> Ridges | None:
    r"""Directions in which levels, the means of their prior and common entries move at once.

    With :math:`a_g \sim N(\mu, \tau^2)` and rows that read :math:`a_g + b x_i`, all :math:`a_g` and
    :math:`\mu` can rise and :math:`b` fall. Rows hardly notice if all :math:`x_i` are far from 0,
    as years are. Neither moves of :math:`\mu` and the levels nor moves of :math:`b` and the levels
    lead far then. Each direction is that of least curvature at the anchor in which all levels rise
    by one.

    Parameters
    ----------
    parts : GroupedModel
    anchor : LevelAnchor

    Returns
    -------
    Ridges or None
        None where moves of fewer entries lead as far.
    """
    common, untouched, size = parts.blocks.common, parts.blocks.untouched, anchor.point.size
    n_free = common.size + untouched.size
    if not (common.size and untouched.size) or n_free > _DENSE or n_free * size > _MOST_NUMBERS:
        return None
    precision = anchor.precision
    of_untouched = -parts.untouched_row_free.hessian(anchor.point)
    of_others = of_untouched.copy()
    of_others[:, untouched] = 0.0
    found = []
    for own in (own for factor in parts.factors for own in factor.entries.T):
        means = _means_of(parts, anchor, own)
        if not means.size:
            continue
        basis = np.zeros((size, 1 + common.size + means.size))
        basis[own, 0] = 1.0
        basis[np.concatenate([common, means]), np.arange(1, basis.shape[1])] = 1.0
        products = precision @ basis + of_others.T @ basis[untouched]
        products[untouched] += of_untouched @ basis
        curved, n_common = basis.T @ products, 1 + common.size
        try:
            least, amounts = _least(curved, slice(1, None))
            others = [_least(curved, slice(1, n_common)), _least(curved, slice(n_common, None))]
        except (LinAlgError, ValueError):  # not positive definite, or not finite
            continue
        if 0.0 < least < _RIDGE * min(each for each, _ in others):
            found.append(basis @ np.concatenate([[1.0], amounts]) / np.sqrt(least))
    if not found:
        return None
    directions, weights = np.stack(found), np.sqrt(precision.diagonal()[common])
    duals = np.zeros_like(directions)
    duals[:, common] = pinv((directions[:, common] * weights).T) * weights
    return Ridges(directions, duals)


def _least(curved: NDArray[np.float64], free: slice) -> tuple[float, NDArray[np.float64]]:
    """Least curvature in which the first coordinate is 1 and some are free, and what these are."""
    amounts = -solve(curved[free, free], curved[free, 0], assume_a="pos")
    return float(curved[0, 0] + curved[0, free] @ amounts), amounts


def _means_of(
    parts: GroupedModel, anchor: LevelAnchor, levels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Means of the prior of levels, means of these, and so on.

    How the log-density bends in an entry and a mean of its normal prior does not depend on the
    entry.
    """
    untouched, hessian = parts.blocks.untouched, parts.untouched_row_free.hessian
    here, rng = hessian(anchor.point), np.random.default_rng(8)
    is_mean, frontier = np.zeros(untouched.size, dtype=bool), levels
    while frontier.size:
        there = anchor.point.copy()
        there[frontier] += rng.standard_normal(frontier.size)
        before, after = here[:, frontier], hessian(there)[:, frontier]
        is_new = before.any(axis=1) & np.isclose(before, after, 1e-6, 1e-9).all(axis=1) & ~is_mean
        is_mean |= is_new
        frontier = untouched[is_new]
    return untouched[is_mean]


def _normals(precision: sparse.csr_array, entries: NDArray[np.int64]) -> LevelNormals:
    """Of levels, or of other blocks, given everything else."""
    return normals_of(level_blocks(precision, entries), np.zeros(entries.shape))


def _slowest(
    within: sparse.csr_array,
    between: sparse.csr_array,
    first: LevelNormals,
    blocks: list[LevelNormals],
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """`JointBlock.directions`, `duals` and `stays`.

    From precisions within and between blocks, and of each given the rest.
    """
    root = sparse.csr_array(sparse.block_diag([block_diagonal(its.root) for its in blocks]))
    inverse = sparse.csr_array(
        sparse.block_diag([block_diagonal(its.inverse_root) for its in blocks])
    )
    own = sparse.csr_array(inverse @ within @ inverse.T)
    through = sparse.csr_array(block_diagonal(first.inverse_root) @ between @ inverse.T)
    values, vectors = _smallest(own, through)
    is_slow = values < 1.0 - _FAST
    is_slow[0] = True
    vectors = vectors[:, is_slow]
    stays = float(np.clip(1.0 - values[0], 0.0, 1.0))
    directions, duals = (np.ascontiguousarray(m @ vectors) for m in (inverse.T, root))
    return directions, duals, stays


def _smallest(
    own: sparse.csr_array, through: sparse.csr_array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest eigenvalues of own - through' through, ascending, and orthonormal eigenvectors.

    Those of many entries are Ritz values and vectors. No eigenvalue is much above 1.
    """
    size, back = own.shape[0], sparse.csr_array(through.T)
    if size <= _DENSE:
        whole = own.toarray() - (back @ through).toarray()
        values, vectors = eigh(whole, subset_by_index=(0, min(size, _MOST) - 1))
        return values, vectors
    rng = np.random.default_rng(6)
    # eigenvalues away from 0, relative to which Ritz values are always close enough
    raised = LinearOperator(own.shape, lambda v: 2.0 * v - own @ v + back @ (through @ v))
    krylov = {"ncv": _PRODUCTS - 1, "tol": 0.5, "v0": rng.standard_normal(size)}
    values, vectors = eigsh(raised, _MOST, which="LA", **krylov)
    return 2.0 - values[::-1], vectors[:, ::-1]
