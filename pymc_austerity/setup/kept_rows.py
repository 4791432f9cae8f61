"""Influential rows that the surrogate of the posterior keeps as they are."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity import compiled
from pymc_austerity.control_variates import Anchor, NoAnchorError, influence_scores
from pymc_austerity.model import RowSlopes, RowStructure, design_function, row_slopes_of
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.rows import ArrayRows, Block
from pymc_austerity.setup.problem import AnyGradient, Problem
from pymc_austerity.setup.surrogate import PILOT_PAIRS, Expansion, SurrogatePosterior, explored
from pymc_austerity.setup.surrogate_anchor import is_nearly_normal
from pymc_austerity.setup.target import About

_MOST, _SHARE = 500, 0.98
"""Rows to keep: those with this share of the influence, or as many as trajectories can afford."""

_MOST_DIMENSIONS = 300
"""Dimensions up to which a trajectory is cheap: each of its steps multiplies a dense matrix."""

_ENOUGH = 0.5
"""Effective share of draws of the normal approximation with which its own proposals are about as
good as trajectories, and cheaper."""


@dataclass(frozen=True, eq=False)
class KeptRows:
    r"""Log-likelihood of m rows and its gradient; their k linear predictors are stored.

    Attributes
    ----------
    slopes : RowSlopes
        Rows as functions of their predictors.
    block : tuple of arrays
        Data of the rows, C-contiguous.
    design : float array, shape (k m, d)
    offsets : float array, shape (k m,)
    """

    slopes: RowSlopes
    block: Block
    design: NDArray[np.float64]
    offsets: NDArray[np.float64]

    def __call__(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-likelihood of the rows, nats, and gradient, shape (d,)."""
        n_rows = int(self.table[0])
        etas = self.design @ point.astype(np.float64, copy=False) + self.offsets
        found = np.empty(n_rows + etas.size)
        self.slopes.on_arrays(etas, found, self.table)
        return float(found[:n_rows].sum()), found[n_rows:] @ self.design

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """Number of rows, and the address and shape of each array."""
        return np.append(len(self.block[0]), compiled.table_of(self.block))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but addresses."""
        return {name: value for name, value in vars(self).items() if name != "table"}

    def hessian(self, curvatures: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of the Hessians, shape (d, d).

        Parameters
        ----------
        curvatures : float array, shape (m, k (k + 1) / 2)
            Second derivatives of the rows by their predictors, the upper triangle row by row.
        """
        n_rows = len(curvatures)
        parts = self.design.reshape(-1, n_rows, self.design.shape[1])
        total, column = np.zeros((self.design.shape[1],) * 2), 0
        for a, left in enumerate(parts):
            for b, right in enumerate(parts[a:], start=a):
                product = (left * curvatures[:, [column]]).T @ right
                total += product if a == b else product + product.T
                column += 1
        return total


@dataclass(frozen=True, eq=False)
class KnownPart:
    """The row-free part, and rows that are kept as they are, with the gradient.

    Attributes
    ----------
    exact : DensityGradient or RowFreeGradient
    rows : KeptRows
    """

    exact: AnyGradient
    rows: KeptRows

    def __call__(self, point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Log-density, up to a constant, nats, and gradient, shape (d,)."""
        (value, gradient), (of_rows, slope) = self.exact(point), self.rows(point)
        return value + of_rows, gradient + slope

    @property
    def address(self) -> "compiled.KnownByAddress | None":
        """What compiled code needs; None where the row-free part needs Python."""
        if self.exact.address is None:
            return None
        rows = self.rows
        arrays = [array.ctypes.data for array in (rows.table, rows.design, rows.offsets)]
        sizes = int(rows.table[0]), rows.offsets.size
        return compiled.KnownByAddress(self.exact.address, *sizes, rows.slopes.address, *arrays)


def kept_rows(problem: Problem, block: Block) -> KeptRows | str:
    """Keep some rows, or say why that is not possible.

    Parameters
    ----------
    problem : Problem
    block : tuple of arrays
        Data of the rows.
    """
    structure = problem.structure
    if not isinstance(structure, RowStructure):
        return structure
    slopes = row_slopes_of(structure)
    if isinstance(slopes, str):
        return slopes
    designs, size = design_function(structure, problem.model)(block), structure.size
    columns = np.concatenate([design.columns(size).T for design in designs])
    offsets = np.concatenate([design.eta(np.zeros(size)) for design in designs])
    data = tuple(map(np.ascontiguousarray, block))
    return KeptRows(slopes, data, np.ascontiguousarray(columns), offsets)


@dataclass(frozen=True, eq=False)
class KnownDifference:
    """Difference of the row-free part and of the rows that are kept, between two points.

    Attributes
    ----------
    exact : callable
        ``f(proposed, current)``: difference of the row-free part, nats.
    rows : KeptRows
    """

    exact: Callable[..., Any]
    rows: KeptRows

    def __call__(self, proposed: NDArray, current: NDArray) -> float:
        """Difference, nats."""
        exact = float(self.exact(proposed, current))
        return exact + self.rows(proposed)[0] - self.rows(current)[0]


def keep_influential(about: About, scores: NDArray[np.float64]) -> About | None:
    r"""Keep the most influential rows as they are, where the posterior is not nearly normal.

    With K the rows that are kept, the posterior is known up to the residuals of all other rows:

    .. math:: S_K(\theta) = \log \rho(\theta) + \sum_{i \in K} \ell_i(\theta)
        + \sum_{i \notin K} \left[ g_i' \delta + \tfrac12 \delta' H_i \delta \right],
        \qquad \delta = \theta - \theta^*

    Rows for which an expansion is wrong are those that inform a direction almost alone, so that
    :math:`S_K` has the tails that a normal approximation misses.

    Parameters
    ----------
    about : About
        Rows in memory and their expansion of second order.
    scores : float array, shape (N,)
        Influence of each row.

    Returns
    -------
    About or None
        The expansion of the others, with a surrogate that is tuned and pilot pairs from it; None
        where rows cannot be kept, or a normal approximation does as well.
    """
    if not (about.may.keep_rows and about.residuals.is_stored):
        return None
    if about.problem.start.size > _MOST_DIMENSIONS:
        return None
    kept = keep(about, _most_influential(scores))
    if kept is None or kept.surrogate is None:
        return None
    # pairs from this surrogate reach the tails, which those of a normal approximation do not
    rows = ArrayRows(about.residuals.arrays)
    scores = influence_scores(about.residuals.function, kept.pilot_pairs(), rows)
    return keep(about, _most_influential(scores), only_if_needed=False) or kept


def keep(about: About, which: NDArray[np.intp], *, only_if_needed: bool = True) -> About | None:
    """Keep some rows, if that is possible.

    Parameters
    ----------
    about : About
        Rows in memory and their expansion of second order.
    which : int array, shape (m,)
        Numbers of the rows to keep.
    only_if_needed : bool
        Whether to return None where rows are smooth and a normal approximation does as well.
    """
    problem = about.problem
    block, at_anchor = tuple(a[which] for a in about.residuals.data), about.residuals.at_anchor
    rows = kept_rows(problem, block)
    if isinstance(rows, str) or at_anchor is None:
        return None
    k = len(rows.offsets) // which.size
    anchor = _of_others(about.anchor, rows, at_anchor(*block)[:, 2 * k :])
    known = KnownDifference(problem.row_free_difference, rows)
    if only_if_needed and anchor.is_smooth and is_nearly_normal(known, anchor, _ENOUGH):
        return None
    expansion = Expansion.concave(anchor.point, anchor.gradient, anchor.hessian)
    exact = KnownPart(problem.row_free_gradient, rows)
    unscaled = np.empty(0, dtype=np.intp)
    surrogate = SurrogatePosterior(exact, known, expansion, unscaled, anchor.point, anchor.root)
    rng = problem.prepared.rng
    try:
        found = explored(surrogate, anchor.point, rng, is_informed=True)
    except NoAnchorError:
        return None
    anchor = replace(anchor, root=found.root)
    return about._replace(
        anchor=anchor,
        approximation=GaussianApproximation(anchor.point, anchor.root),
        surrogate=found.surrogate,
        pairs=found.surrogate.pairs(PILOT_PAIRS, problem.start.dtype, rng),
        kept=which,
    )


def _most_influential(scores: NDArray[np.float64]) -> NDArray[np.intp]:
    falling = np.argsort(-scores)[:_MOST]
    held = np.cumsum(scores[falling])
    return np.sort(falling[: int(np.searchsorted(held, _SHARE * scores.sum())) + 1])


def _of_others(anchor: Anchor, rows: KeptRows, curvatures: NDArray[np.float64]) -> Anchor:
    """The anchor with the sums over all other rows."""
    _, gradient = rows(anchor.point)
    hessian = anchor.hessian - rows.hessian(curvatures)
    return replace(anchor, gradient=anchor.gradient - gradient, hessian=hessian)
