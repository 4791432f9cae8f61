"""Directions along which no predictor of any row changes."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular, svd

from pymc_austerity.levels import Exchange
from pymc_austerity.model import Design, design_function
from pymc_austerity.rows import blocks_of
from pymc_austerity.setup.levels.anchor import LevelAnchor
from pymc_austerity.setup.levels.parts import Parts

__all__ = ["exchange"]

_SOME_ROWS = 4_096
_MOST_COLUMNS = 300
_NOTHING = 1e-10
"""Share of the usual change of predictors, or of a singular value, that may be rounding."""


def exchange(parts: Parts, anchor: LevelAnchor) -> Exchange | None:
    """Find directions in common entries and in means of levels; None if there are none.

    They are found on some rows, and verified on all of them.
    """
    structure = parts.problem.structure
    assert not isinstance(structure, str)
    designs = design_function(structure, parts.problem.model)
    n_columns = parts.blocks.common.size + sum(f.entries.shape[1] for f in parts.factors)
    if n_columns > _MOST_COLUMNS:
        return None
    some = np.arange(0, parts.rows.n_rows, max(parts.rows.n_rows // _SOME_ROWS, 1))
    on_rows = designs(parts.rows.take(some))
    changes = np.stack([_change(on_rows, own) for own in _columns(parts)], axis=1)
    lengths = np.linalg.norm(changes, axis=0)
    lengths[lengths == 0.0] = 1.0
    _, singular, rows = svd(changes / lengths, full_matrices=False)
    null = rows[singular <= _NOTHING * singular[0]] / lengths
    if not null.size:
        return None
    directions = np.zeros((len(null), anchor.point.size))
    for own, weights in zip(_columns(parts), null.T, strict=True):
        directions += np.outer(weights, own)
    for block in blocks_of(parts.rows):
        on_rows = designs(block)
        if any(abs(_change(on_rows, v)).max() > _NOTHING for v in directions):
            return None
    precision = -(directions @ (anchor.exact_hessian @ directions.T))
    try:
        root = cholesky(precision, lower=True)
    except LinAlgError:
        return None
    return Exchange(solve_triangular(root, directions, lower=True))


def _columns(parts: Parts) -> Iterator[NDArray[np.float64]]:
    """Each common entry, and each column of the levels of each factor as a whole; shape (d,)."""
    size = parts.problem.start.size
    every = [parts.blocks.common[j : j + 1] for j in range(parts.blocks.common.size)]
    every += [column for factor in parts.factors for column in factor.entries.T]
    for entries in every:
        own = np.zeros(size)
        own[entries] = 1.0
        yield own


def _change(on_rows: Sequence[Design], direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Changes of all predictors of some rows, one predictor after the other."""
    nowhere = np.zeros_like(direction)
    return np.concatenate([design.eta(direction) - design.eta(nowhere) for design in on_rows])
