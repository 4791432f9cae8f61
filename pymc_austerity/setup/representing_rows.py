"""A few rows with weights that stand for all of them in the surrogate of the posterior."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from pymc_austerity.control_variates import differences_of_all
from pymc_austerity.model import CommonFunctions, Kernel
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.rows import ArrayRows, Block, blocks_of
from pymc_austerity.setup.kept_rows import (
    KeptRows,
    KnownPart,
    explored_beside,
    kept_rows,
    of_others,
    pairs_from,
)
from pymc_austerity.setup.row_functions import Residuals
from pymc_austerity.setup.target import About
from pymc_austerity.time_limit import end_if_late

_POINTS, _LOOKED_AT, _WIDEST = 64, 32, 2.5
"""Points at which a few rows stand for all, those that say whether this is worth it, and their
largest distance, in standard deviations of the normal approximation."""
_DIRECTIONS, _CLOSE = (12, 16, 24, 32, 48, 64, 96, 128, 192), 0.005
"""Directions in which sums at the points are fitted, and what may be left open of a sum that is far
below a nat; of a large one the same share."""
_OF_AN_ENTRY, _ROUNDS, _SPREAD, _MOST_SPREAD = 20, 4, 0.05, 0.5
"""Draws of the surrogate for each entry of a point; how often rows are chosen, with such draws
among the points; and by how many nats these may differ in what the surrogate leaves open, at the
end by how many."""
_CANDIDATES = 500
"""Rows at random, and as many by their influence, some of which stand for all."""
_FAR, _FAR_OUT = 0.5, 1.0
"""Nats that are left open between draws and at these points, from which a few rows may stand for
all."""
_LEFT, _MOST_FUNCTIONS, _MOST_NUMBERS = 1e-3, 40, 30_000_000
"""Nats that common functions of the rows may leave open of all rows, of each its size; and how many
functions there may be, and numbers that are stored for all rows."""
_MOST_ENTRIES = 20
"""Entries of a point with more of which no few points say how the rows behave."""


def is_far_from_normal(changes: list[NDArray[np.float64]]) -> bool:
    """Whether residuals of all rows between some pairs of draws, nats, have large sums."""
    return bool(np.sqrt(np.mean([values.sum() ** 2 / 2.0 for values in changes])) > _FAR)


def represent(about: About, scores: NDArray[np.float64], kept: About | None) -> About | None:
    r"""Let a few rows with weights stand for all, where the posterior is not nearly normal.

    .. math:: S(\theta) = \log \rho(\theta)
        + \sum_i \left[ g_i' \delta + \tfrac12 \delta' H_i \delta \right]
        + \sum_{j \in T} w_j R_j(\theta), \qquad \delta = \theta - \theta^*

    with the residuals R of the rows beyond these expansions. Any sum of rows at P points is a
    combination of at most P rows with weights that are not negative (Caratheodory). Non-negative
    least squares finds one, of candidates; draws of S show whether it holds there, too, and are
    further points where it does not.
    Decisions sample all rows, of which combinations of these residuals tell the most.

    Parameters
    ----------
    about : About
        Rows in memory and their expansion of second order.
    scores : float array, shape (N,)
        Influence of each row.
    kept : About or None
        The same with influential rows that are kept.

    Returns
    -------
    About or None
        The same with a surrogate that is tuned and pilot pairs from it; None where no few rows
        stand for all, or the expansion does as well, or kept rows do.

    References
    ----------
    Caratheodory, C. (1907). Ueber den Variabilitaetsbereich der Koeffizienten von Potenzreihen,
    die gegebene Werte nicht annehmen. Mathematische Annalen 64, 95-115.
    """
    problem, anchor, residuals = about.problem, about.anchor, about.residuals
    is_possible = about.may.keep_rows and residuals.is_stored and residuals.at_anchor is not None
    is_usual = about.surrogate is None and anchor.is_smooth
    if not (is_possible and is_usual and anchor.point.size <= _MOST_ENTRIES):
        return None
    points, left = _looked_at(about, kept)
    if not points:
        return None
    which = _candidates(scores, problem.prepared.rng)
    candidates = kept_rows(problem, tuple(array[which] for array in residuals.data))
    if isinstance(candidates, str):
        return None
    for number in range(_ROUNDS):
        weights = _weights_of(candidates, about, points, left)
        if weights is None:
            return None
        candidates = replace(candidates, weights=weights)
        rows = candidates.some(np.flatnonzero(weights), weights[weights > 0.0])
        others = of_others(about, rows)
        found = explored_beside(others, rows, problem)
        if found is None:
            return None
        n_pairs = max(_POINTS, _OF_AN_ENTRY * anchor.point.size) // 2
        draws = [point for pair in pairs_from(found, problem, n_pairs) for point in pair]
        beyond, totals, known = _beyond_common(residuals, candidates, anchor.point, draws)
        if not np.isfinite(totals).all():
            return None
        if np.std(totals - known) < (_SPREAD if number < _ROUNDS - 1 else _MOST_SPREAD):
            return about._replace(
                residuals=beyond,
                anchor=replace(others, root=found.root),
                approximation=GaussianApproximation(found.mean, found.root),
                surrogate=found.surrogate,
                pairs=pairs_from(found, problem),
                n_standing=rows.weights.size,
            )
        points, left = points + draws, np.append(left, totals)
    return None


def _beyond_common(
    residuals: Residuals, candidates: KeptRows, anchor: NDArray, points: list[NDArray]
) -> tuple[Residuals, NDArray[np.float64], NDArray[np.float64]]:
    r"""What is left of residuals if combinations of those of a few rows are subtracted.

    Rows that bend alike have residuals that are nearly combinations of few functions:

    .. math:: R_i(\theta) \approx \sum_k c_{ik} B_k(\theta), \qquad
        B_k(\theta) = \sum_j A_{jk} R_j(\theta)

    The functions are principal components of the candidates on draws of the surrogate, where they
    are orthonormal, so that products with them are the best coefficients. A matrix of rank one is
    added to A, which makes :math:`A \sum_i c_i` the weights of the rows that stand for all: what is
    subtracted sums up to what the surrogate knows.

    Parameters
    ----------
    residuals : Residuals
        Of all rows.
    candidates : KeptRows
        Those that stand for all have weights; those of others are 0.
    anchor : float array, shape (d,)
    points : list of float arrays, shape (d,)
        Draws of the surrogate.

    Returns
    -------
    residuals : Residuals
    totals, known : float arrays, shape (P,), nats
        Sums of all residuals at the draws, and what the candidates tell of them.
    """
    function = residuals.function
    assert isinstance(function, Kernel)
    of_candidates = _at(points, anchor, function, residuals.block_of(candidates.block))
    if not np.isfinite(of_candidates).all():
        return residuals, np.full(len(points), np.nan), np.zeros(len(points))
    *data, constants = residuals.arrays
    basis = _principal(of_candidates, len(constants))
    n_known, done, totals = constants.shape[1], 0, np.zeros(len(points))
    known = np.empty((len(constants), n_known + basis.shape[1]))
    known[:, :n_known] = constants
    for block in blocks_of(ArrayRows(residuals.arrays)):
        end_if_late()
        following = done + len(block[0])
        values = _at(points, anchor, function, block)
        known[done:following, n_known:] = values @ basis
        totals += values.sum(axis=0)
        done = following
    n_rows = max(_POINTS, np.count_nonzero(candidates.weights))
    which = np.argsort(-candidates.weights, kind="stable")[:n_rows]
    combinations: Any = np.linalg.lstsq(of_candidates[which].T, basis)[0]
    weights, total = candidates.weights[which], known[:, n_known:].sum(axis=0)
    combinations += np.outer(weights - combinations @ total, total / total.dot(total))
    block = residuals.block_of(candidates.some(which, weights).block)
    shared = function.sharing(CommonFunctions(block, anchor, combinations))
    beyond = Residuals(shared, [*data, known], residuals.compiled_as)
    return beyond, totals, candidates.weights @ of_candidates


def _principal(values: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    """Principal components of rows at points, as many as leave little of all rows, shape (P, r)."""
    basis = np.linalg.svd(values.T, full_matrices=False)[0]
    squares = np.square(values @ basis)[:, ::-1]
    left = np.sqrt(np.cumsum(squares, axis=1)[:, ::-1] / len(basis)).mean(axis=0) * n_rows
    enough = np.count_nonzero(left > _LEFT)
    return basis[:, : max(1, min(enough, _MOST_FUNCTIONS, _MOST_NUMBERS // n_rows))]


def _at(
    points: list[NDArray], anchor: NDArray, function: Kernel, block: Block
) -> NDArray[np.float64]:
    """Residuals of the rows of a block at points, shape (rows, P), nats."""
    return np.stack([function(point, anchor, *block) for point in points], axis=1)


def _candidates(scores: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows at random, and others with probabilities in proportion to their influence."""
    n_rows = min(_CANDIDATES, scores.size)
    with np.errstate(divide="ignore", over="ignore"):
        keys = rng.standard_exponential(scores.size) / scores
    influential = np.argpartition(keys, n_rows - 1)[:n_rows]
    return np.union1d(rng.choice(scores.size, n_rows, replace=False), influential)


def _looked_at(about: About, kept: About | None) -> tuple[list[NDArray], NDArray[np.float64]]:
    """Points, and what the expansion leaves open there, nats; none if that is little.

    What is left of it with rows that are kept decides.
    """
    anchor, rng = about.anchor, about.problem.prepared.rng
    widths = rng.uniform(0.0, _WIDEST, _POINTS + _LOOKED_AT)
    noise = rng.standard_normal((widths.size, anchor.point.size))
    points = list(anchor.point + (widths[:, None] * noise) @ anchor.root.T)
    left = np.array([_left_open(about, point) for point in points[:_LOOKED_AT]])
    usual = left - [_known(about, kept, point) for point in points[:_LOOKED_AT]]
    if not np.sqrt(np.mean(np.square(usual))) > _FAR_OUT:
        return [], left
    return points, np.append(left, [_left_open(about, point) for point in points[_LOOKED_AT:]])


def _weights_of(
    rows: KeptRows, about: About, points: list[NDArray], left: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Weights of the candidates, most of them 0, if these stand for all rows, shape (m,)."""
    anchor = about.anchor
    sums = left + [anchor.expansion(point, anchor.point) for point in points]
    values = np.array([rows.values(point) for point in points]) - rows.values(anchor.point)
    if not (np.isfinite(sums).all() and np.isfinite(values).all()):
        return None
    scale = 1.0 / (1.0 + np.abs(sums))
    values, sums = values * scale[:, None], sums * scale
    directions = np.linalg.svd(values, full_matrices=False)[0].T
    for n_directions in _DIRECTIONS:  # so many equations have a solution with as many rows
        some = directions[:n_directions]
        try:
            weights, _ = nnls(some @ values, some @ sums)
        except RuntimeError:  # it does not converge
            continue
        if np.sqrt(np.mean(np.square(values @ weights - sums))) < _CLOSE:
            return weights
    return None


def _known(about: About, kept: About | None, point: NDArray) -> float:
    """What rows that are kept add to their expansion at a point, nats."""
    if kept is None or kept.surrogate is None:
        return 0.0
    known, at = kept.surrogate.exact, about.anchor.point
    assert isinstance(known, KnownPart)
    expanded = about.anchor.expansion(point, at) - kept.anchor.expansion(point, at)
    return known.rows(point)[0] - known.rows(at)[0] - expanded


def _left_open(about: About, point: NDArray) -> float:
    """What the expansion of all rows leaves open at a point, nats."""
    end_if_late()
    dtype, residuals = about.problem.start.dtype, about.residuals
    pair = point.astype(dtype), about.anchor.point.astype(dtype)
    return float(differences_of_all(residuals.function, *pair, ArrayRows(residuals.arrays)).sum())
