"""An anchor where the posterior has no mode, or none near its mass."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor, NoAnchorError, find_anchor
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals import Proposal
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import ExpandedRows
from pymc_austerity.setup.surrogate import Expansion, Explored, SurrogatePosterior, explored
from pymc_austerity.setup.target import Target

_WIDE = 10.0
"""Standard deviation of a prior that keeps the mode of the rows finite, in unconstrained space."""

_ROUNDS = 4
_CLOSE = 1.0
"""Squared distance of the anchor from the mean, in standard deviations by the rows alone."""

_ROUNDING = 1e-8

_DRAWS, _FEWEST = 1_000, 0.1
"""Draws of the normal approximation, and the smallest effective share of them."""


class _WidePrior(NamedTuple):
    """A normal prior on all entries, with its derivatives."""

    center: NDArray[np.float64]

    def gradient(self, point: NDArray) -> list[NDArray[np.float64]]:
        """Log-density, nats, and gradient."""
        away = (point - self.center) / _WIDE
        return [np.asarray(-0.5 * away.dot(away)), -away / _WIDE]

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Of the log-density."""
        return -np.eye(point.size) / _WIDE**2


def anchor_by_surrogate(
    problem: Problem,
    expanded: ExpandedRows,
    *,
    order: int,
    at: NDArray | None,
) -> tuple[Anchor, SurrogatePosterior]:
    """An anchor that is the mean of the surrogate about it: both are updated in turn.

    The first anchor is the mode of the rows, with a wide normal prior. The covariance of the
    surrogate replaces that of the posterior.

    Parameters
    ----------
    problem : Problem
        What to sample.
    expanded : ExpandedRows
        Derivatives of the rows.
    order : {1, 2}
        Of the expansion for decisions.
    at : float array, shape (d,), optional
        Where the anchor should be.

    Raises
    ------
    NoAnchorError
        There is no such mode, or the surrogate cannot be sampled.
    """
    rng, start = problem.prepared.rng, problem.start.astype(np.float64)
    density = expanded.density(_WidePrior(start), problem)
    if at is None:
        of_rows = find_anchor(problem.start, density, rng=rng, order=order)
        if not of_rows.is_smooth:
            raise NoAnchorError("the rows have kinks")
        at_mode = of_rows.point
    point = density.as_evaluated(at_mode if at is None else at)
    gradient, hessian = density.row_derivatives(point)
    if at is not None and not _bends_down(hessian):
        raise NoAnchorError("the rows are not concave at the anchor")
    touched = problem.entries_of(problem.touched)
    start[touched] = point[touched]
    if _is_flat(hessian + problem.row_free_derivatives.hessian(start.astype(problem.start.dtype))):
        raise NoAnchorError("the posterior is flat in some direction")
    expansion = Expansion.concave(point, gradient, hessian)
    surrogate = _surrogate(problem, expansion)
    for number in range(_ROUNDS):
        if number:
            gradient, hessian = density.row_derivatives(point)
            surrogate = surrogate.about(Expansion.concave(point, gradient, hessian))
        found = explored(surrogate, start, rng)
        surrogate, start, way = found.surrogate, found.last, found.mean - point
        if at is not None or -way @ surrogate.expansion.hessian @ way < _CLOSE:
            break
        point = density.as_evaluated(found.mean)
    anchor = Anchor(surrogate.expansion.point, gradient, hessian, found.root, order)
    return anchor, surrogate


def _bends_down(hessian: NDArray[np.float64]) -> bool:
    """Whether a Hessian is negative semidefinite, up to rounding error."""
    values = np.linalg.eigvalsh(hessian)
    return bool(values[-1] <= _ROUNDING * abs(values[0]))


def _is_flat(hessian: NDArray[np.float64]) -> bool:
    """Whether a Hessian is singular, whatever the units of the parameters."""
    curvatures = np.abs(np.diag(hessian))
    if not (np.isfinite(hessian).all() and (curvatures > 0.0).all()):
        return True
    scaled = hessian / np.sqrt(np.outer(curvatures, curvatures))
    return bool(np.abs(np.linalg.eigvalsh(scaled)).min() < _ROUNDING)


def _surrogate(problem: Problem, expansion: Expansion) -> SurrogatePosterior:
    """A surrogate that is not tuned yet."""
    exact, rng = problem.row_free_gradient, problem.prepared.rng
    start = problem.start.astype(np.float64)
    scaled = conditionally_normal(
        lambda x: exact(x)[1], start, problem.entries_of(problem.touched), rng
    )
    known, root = (exact, problem.row_free_difference), np.eye(start.size)
    return SurrogatePosterior(*known, expansion, scaled, start, root)


def is_nearly_normal(
    row_free_difference: Callable[..., Any], anchor: Anchor, share: float = _FEWEST
) -> bool:
    """Whether the normal approximation is close to the surrogate; reads no rows to sample.

    By importance weights, its draws must be worth more than a share of as many draws of the
    surrogate.
    """
    anchor, center = replace(anchor, order=2), anchor.point  # as in the surrogate
    noise = np.random.default_rng(0).standard_normal((_DRAWS, center.size))
    log_weights = np.array(
        [
            float(row_free_difference(point, center))
            + anchor.expansion(point, center)
            + 0.5 * float(z.dot(z))
            for z, point in zip(noise, center + noise @ anchor.root.T, strict=True)
        ]
    )
    finite = log_weights[np.isfinite(log_weights)]
    if not finite.size:
        return False
    weights = np.exp(finite - finite.max())
    return bool(weights.sum() ** 2 > share * _DRAWS * (weights**2).sum())


def surrogate_about(anchor: Anchor, problem: Problem) -> Explored:
    """The surrogate about an anchor, tuned, and points of it.

    Raises
    ------
    NoAnchorError
        It cannot be sampled.
    """
    expansion = Expansion.concave(anchor.point, anchor.gradient, anchor.hessian)
    surrogate = _surrogate(problem, expansion)
    return explored(surrogate, anchor.point, problem.prepared.rng)


def with_surrogate(proposal: Proposal[Any], problem: Problem, target: Target) -> Proposal[Any]:
    """Give a proposal the surrogate, if it needs one.

    Raises
    ------
    SettingError
        There are no control variates.
    """
    if not hasattr(proposal, "with_surrogate"):
        return proposal
    name, surrogate, anchor = type(proposal).__name__, target.surrogate, target.anchor
    if anchor is None:
        raise SettingError(
            f"{name} needs the expansion of the rows that comes with control variates, and there "
            "are none here: use RandomWalkProposal(), or AusterityMH with control variates."
        )
    if surrogate is None:
        try:
            surrogate = surrogate_about(anchor, problem).surrogate
        except NoAnchorError as error:
            raise SettingError(f"{name} cannot be used because {error}.") from error
    return proposal.with_surrogate(surrogate)


_ROUNDING_OF_SLOPES = 1e-6
"""Error of a slope, relative to its terms, that rounding may explain."""

_POINTS = 3


def conditionally_normal(
    gradient: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    point: NDArray[np.float64],
    candidates: NDArray[np.intp],
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """Entries that are normal and independent given the rest, and whose moments depend on it.

    Parameters
    ----------
    gradient : callable
        Of the log-density, shape (d,).
    point : float array, shape (d,)
        Where the gradient is finite.
    candidates : int array
        Entries in question.
    rng : numpy.random.Generator
        Chooses the points at which the gradient is evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> def gradient(x):  # x[1] ~ N(0, exp(x[0])), x[2] ~ N(0, 1), and x[3] ~ t_1
    ...     precision = np.exp(-2.0 * x[0])
    ...     slope = -2.0 * x[3] / (1.0 + x[3] ** 2)
    ...     return np.array([precision * x[1] ** 2, -precision * x[1], -x[2], slope])
    >>> rng = np.random.default_rng(1)
    >>> conditionally_normal(gradient, np.zeros(4), np.array([1, 2, 3]), rng)
    array([1])
    """
    others = np.setdiff1d(np.arange(point.size), candidates)
    entries = candidates
    if not others.size:
        return entries[:0]
    elsewhere = point.copy()
    elsewhere[others] += rng.normal(size=others.size)
    while entries.size:
        passed = np.ones(entries.size, dtype=bool)
        for _ in range(_POINTS):
            here, there = (
                _slope_and_curvature(gradient, at, entries, rng) for at in (point, elsewhere)
            )
            for _, curvature, fits in (here, there):
                passed &= fits & (curvature < 0.0)
        if passed.all():
            depends = [~np.isclose(a, b, rtol=1e-6) for a, b in zip(here, there, strict=True)]
            return entries[depends[0] | depends[1]]
        entries = entries[passed]
    return entries


def _slope_and_curvature(
    gradient: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    point: NDArray[np.float64],
    entries: NDArray[np.intp],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Both at a point, and whether the slope of each entry is linear in this entry alone."""

    def slope(by: NDArray[np.float64]) -> NDArray[np.float64]:
        there = point.copy()
        there[entries] += by
        return gradient(there)[entries]

    with np.errstate(all="ignore"):
        at, ahead, behind = (slope(k * np.ones(entries.size)) for k in (0.0, 1.0, -1.0))
        curvature = 0.5 * (ahead - behind)
        way = 2.0 * rng.normal(size=entries.size)
        error = np.abs(slope(way) - at - curvature * way)
        fits = error <= _ROUNDING_OF_SLOPES * (np.abs(at) + np.abs(curvature * way))
    return at, curvature, fits
