"""Directions along which a Gibbs sampler of levels and common entries is slow."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from pymc_austerity.levels import JointBlock, LevelNormals, normals_of
from pymc_austerity.setup.levels.anchor import LevelAnchor, block_diagonal, level_blocks
from pymc_austerity.setup.levels.grouped_model import GroupedModel

_MOST = 32
"""Most directions: the fewer move at once, the more moves are accepted."""

_FAST = 0.1
"""Autocorrelation below which there is nothing to gain."""

_DENSE = 500
"""Entries up to which all eigenvectors are found at once."""

_PRODUCTS = 100
"""Products with the matrix of more entries, for some eigenvectors: any directions are valid."""


class _Slowest(NamedTuple):
    """Directions, and how slow the slowest is; see `JointBlock`."""

    directions: NDArray[np.float64]
    duals: NDArray[np.float64]
    stays: float


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
    precision = sparse.csr_array(-(anchor.hessian + anchor.row_free_hessian))
    within, between = precision[entries][:, entries], precision[first.ravel()][:, entries]
    blocks = [common[None]] * bool(common.size) + smaller
    found = _slowest(
        sparse.csr_array(within),
        sparse.csr_array(between),
        _normals(precision, first),
        [_normals(precision, own) for own in blocks],
    )
    directions, rows_alone = found.directions, within @ found.directions
    for terms, own in zip(parts.terms[1:], smaller, strict=True):
        _, curvatures = terms.derivatives(anchor.point)
        rows_alone[places[own]] += np.matmul(curvatures, directions[places[own]])
    return JointBlock(
        entries,
        directions,
        found.duals,
        rows_alone,
        (between @ directions).reshape(*first.shape, -1),
        anchor.gradient[entries] @ directions,
        np.zeros(directions.shape[1]),
        places[common],
        [(number, places[own]) for number, own in enumerate(smaller, start=1)],
        found.stays,
    )


def _normals(precision: sparse.csr_array, entries: NDArray[np.int64]) -> LevelNormals:
    """Of levels, or of other blocks, given everything else."""
    return normals_of(level_blocks(precision, entries), np.zeros(entries.shape))


def _slowest(
    within: sparse.csr_array,
    between: sparse.csr_array,
    first: LevelNormals,
    blocks: list[LevelNormals],
) -> _Slowest:
    """The directions, from precisions within and between blocks, and of each given the rest."""
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
    return _Slowest(
        np.ascontiguousarray(inverse.T @ vectors), np.ascontiguousarray(root @ vectors), stays
    )


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
