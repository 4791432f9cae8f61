"""Rows that the surrogate of the posterior knows as they are, such as the most influential ones."""

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
from pymc_austerity.setup.surrogate import (
    PILOT_PAIRS,
    Expansion,
    Explored,
    SurrogatePosterior,
    explored,
)
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
    r"""Log-likelihood of m weighted rows and its gradient; their k linear predictors are stored.

    Attributes
    ----------
    slopes : RowSlopes
        Rows as functions of their predictors.
    block : tuple of arrays
        Data of the rows, C-contiguous.
    design : float array, shape (k m, d)
    offsets : float array, shape (k m,)
    weights : float array, shape (m,)
        Rows that each stands for.
    """

    slopes: RowSlopes
    block: Block
    design: NDArray[np.float64]
    offsets: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __call__(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-likelihood of the rows, nats, and gradient, shape (d,)."""
        values, *slopes = self._each(point) * self.weights
        return float(values.sum()), np.concatenate(slopes) @ self.design

    def values(self, point: NDArray) -> NDArray[np.float64]:
        """Log-likelihood of each row, shape (m,), nats."""
        found: NDArray[np.float64] = self._each(point)[0]
        return found

    def _each(self, point: NDArray) -> NDArray[np.float64]:
        """Log-likelihoods and first derivatives by the predictors, shape (1 + k, m)."""
        etas = self.design @ point.astype(np.float64, copy=False) + self.offsets
        found = np.empty((1 + etas.size // self.weights.size, self.weights.size))
        self.slopes.on_arrays(etas, found, self.table)
        return found

    def some(self, which: NDArray[np.intp], weights: NDArray[np.float64]) -> "KeptRows":
        """Some of the rows, with other weights."""
        predictors = self.offsets.reshape(-1, self.weights.size)
        design = self.design.reshape(*predictors.shape, -1)[:, which]
        block = tuple([array[which] for array in self.block])
        offsets = predictors[:, which].ravel()
        return KeptRows(self.slopes, block, design.reshape(offsets.size, -1), offsets, weights)

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
                product = (left * (self.weights * curvatures[:, column])[:, None]).T @ right
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
        arrays = [a.ctypes.data for a in (rows.table, rows.design, rows.offsets, rows.weights)]
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
    columns = np.concatenate([design.product(np.eye(size)) for design in designs])
    offsets = np.concatenate([design.eta(np.zeros(size)) for design in designs])
    data = tuple(map(np.ascontiguousarray, block))
    weights = np.ones(len(data[0]))
    return KeptRows(slopes, data, np.ascontiguousarray(columns), offsets, weights)


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
    rows = kept_rows(problem, tuple(array[which] for array in about.residuals.data))
    if isinstance(rows, str) or about.residuals.at_anchor is None:
        return None
    anchor = of_others(about, rows)
    if only_if_needed:
        known = KnownDifference(problem.row_free_difference, rows)
        if anchor.is_smooth and is_nearly_normal(known, anchor, _ENOUGH):
            return None
    found = explored_beside(anchor, rows, problem)
    if found is None:
        return None
    anchor = replace(anchor, root=found.root)
    return about._replace(
        anchor=anchor,
        approximation=GaussianApproximation(anchor.point, anchor.root),
        surrogate=found.surrogate,
        pairs=pairs_from(found, problem),
        kept=which,
    )


def explored_beside(others: Anchor, rows: KeptRows, problem: Problem) -> Explored | None:
    """A chain on what is known, with the expansion of the other rows; None if it fails."""
    exact = KnownPart(problem.row_free_gradient, rows)
    known = KnownDifference(problem.row_free_difference, rows)
    unscaled = np.empty(0, dtype=np.intp)
    try:
        expansion = Expansion.concave(others.point, others.gradient, others.hessian)
        about = SurrogatePosterior(exact, known, expansion, unscaled, others.point, others.root)
        return explored(about, others.point, problem.prepared.rng, is_informed=True)
    except NoAnchorError:
        return None


def pairs_from(
    found: Explored, problem: Problem, number: int = PILOT_PAIRS
) -> list[tuple[NDArray, NDArray]]:
    """Pilot pairs of draws of the surrogate."""
    return found.surrogate.pairs(number, problem.start.dtype, problem.prepared.rng)


def _most_influential(scores: NDArray[np.float64]) -> NDArray[np.intp]:
    falling = np.argsort(-scores)[:_MOST]
    held = np.cumsum(scores[falling])
    return np.sort(falling[: int(np.searchsorted(held, _SHARE * scores.sum())) + 1])


def of_others(about: About, rows: KeptRows) -> Anchor:
    """The anchor with the sums over all rows but some, by their weights."""
    anchor, at_anchor = about.anchor, about.residuals.at_anchor
    assert at_anchor is not None
    k = rows.offsets.size // rows.weights.size
    _, gradient = rows(anchor.point)
    hessian = anchor.hessian - rows.hessian(at_anchor(*rows.block)[:, 2 * k :])
    return replace(anchor, gradient=anchor.gradient - gradient, hessian=hessian)
