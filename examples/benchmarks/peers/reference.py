"""What the posterior is: moments by importance sampling with all rows, without any of the samplers.

Points are drawn from the normal approximation about the mode, in unconstrained space, and weighted
with PyMC's log-density on all rows. The moments of the normal approximation are known, so that
only the difference to the posterior is left to chance:

    E f = E_q f + mean of (w - 1) (f - E_q f),   w the weights over their mean.

Where the weights are so uneven that their variance may be infinite (Pareto k above 1/2), half of
the points are drawn from Student's t with the same center and scale instead, which reaches into
heavy tails (a defensive mixture, Hesterberg 1995). If that does not suffice, center and scale are
those of a long run of AusterityMH. Whatever is wrong with that run makes the weights less even, but
the moments no less right.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, multivariate_t

from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.pymc_samplers import sample
from examples.benchmarks.peers.summary import flatten
from pymc_austerity import AusterityMH

try:
    from arviz import psislw
except (ImportError, AttributeError):  # ArviZ 1 keeps it elsewhere, and takes log-likelihoods
    from arviz_stats.base import array_stats

    def psislw(log_weights: NDArray) -> tuple[NDArray, float]:
        """Smoothed log-weights and Pareto k."""
        return array_stats.psislw(-log_weights)


SEED = 5
_LONG_RUN = 100_000
_DEGREES = 5.0
"""Degrees of freedom of the heavy-tailed half of the points."""


class UnevenWeights(ValueError):
    """The points are drawn from too different a distribution."""


def reference(problem: Problem, n_points: int) -> dict[str, Any]:
    """Mean and sd of every parameter, and how well they are known."""
    model = problem.model(problem.rows)
    order = [v.name for v in model.value_vars]
    names = [rv.name for rv in model.free_RVs]
    value = model.compile_logp(mode="NUMBA")
    gradient = model.compile_dlogp(mode="NUMBA")
    start = model.initial_point()
    shapes = [np.shape(start[name]) for name in order]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def as_point(flat: NDArray) -> dict[str, NDArray]:
        pieces = np.split(flat, ends[:-1])
        return {n: p.reshape(s) for n, p, s in zip(order, pieces, shapes, strict=True)}

    mean, root = normal_approximation(
        lambda flat: float(value(as_point(flat))),
        lambda flat: np.asarray(gradient(as_point(flat))),
        np.concatenate([np.ravel(start[name]) for name in order]),
    )
    columns = {
        rv: np.arange(end)[end - int(np.prod(s)) :]
        for rv, end, s in zip(names, ends, shapes, strict=True)
    }
    by_name = np.concatenate([columns[name] for name in sorted(names)])

    def moments_about(mean: NDArray, root: NDArray, *, heavy: bool) -> dict[str, Any]:
        rng = np.random.default_rng(SEED)
        return importance_moments(
            lambda z: float(value(as_point(z))), mean, root, n_points, rng, heavy=heavy
        )

    try:
        found = moments_about(mean, root, heavy=False)
        found["points"] = "about the mode"
    except UnevenWeights:
        try:
            found = moments_about(mean, root, heavy=True)
            found["points"] = "with heavy tails about the mode"
        except UnevenWeights:
            flat = long_run(problem)[:, np.argsort(by_name)]
            center, scale = flat.mean(axis=0), np.linalg.cholesky(np.cov(flat.T))
            found = moments_about(center, scale, heavy=True)
            found["points"] = "with heavy tails about the mean of a long run"
    for entry in ("mean", "sd", "mean_error", "sd_error"):
        found[entry] = np.asarray(found[entry])[by_name].tolist()
    found["method"] = "importance sampling"
    return found


def long_run(problem: Problem) -> NDArray[np.float64]:
    """Draws of AusterityMH, flattened."""
    run, _ = sample(problem, lambda: (AusterityMH(), None), _LONG_RUN, seconds=np.inf, tune=5_000)
    return flatten(run.draws, problem.positive)


def normal_approximation(
    value: Callable[[NDArray], float],
    gradient: Callable[[NDArray], NDArray],
    start: NDArray,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mode, and a root of the inverse of the negative Hessian (by differences of the gradient).

    Returns
    -------
    mean : float array, shape (d,)
    root : float array, shape (d, d)
    """
    found = minimize(
        lambda flat: -value(flat),
        start,
        jac=lambda flat: -gradient(flat),
        method="L-BFGS-B",
        options={"maxiter": 2_000, "maxcor": 30, "ftol": 1e-14, "gtol": 1e-3},
    ).x
    for _ in range(3):
        covariance = np.linalg.inv(-hessian(gradient, found))
        found = found + covariance @ gradient(found)
    covariance = np.linalg.inv(-hessian(gradient, found))
    return found, np.linalg.cholesky(covariance)


def hessian(gradient: Callable[[NDArray], NDArray], point: NDArray) -> NDArray[np.float64]:
    """Central differences of the gradient."""
    columns = []
    for axis in range(point.size):
        step = np.zeros_like(point)
        step[axis] = 1e-4 * max(1.0, abs(point[axis]))
        columns.append((gradient(point + step) - gradient(point - step)) / (2 * step[axis]))
    columns = np.array(columns)
    return (columns + columns.T) / 2.0


def importance_moments(
    value: Callable[[NDArray], float],
    mean: NDArray[np.float64],
    root: NDArray[np.float64],
    n_points: int,
    rng: np.random.Generator,
    *,
    heavy: bool = False,
) -> dict[str, Any]:
    """Mean and sd of a density, from points of a normal approximation and their mirror images.

    Parameters
    ----------
    value : callable
        Log-density, nats, up to a constant.
    mean, root : float arrays, shapes (d,) and (d, d)
        The normal approximation.
    n_points : int
        Points, mirror images included.
    rng : numpy.random.Generator
        Source of randomness.
    heavy : bool
        Whether half of the points are from Student's t instead.

    Returns
    -------
    dict
        ``mean``, ``sd``, and their standard errors ``mean_error`` (in sds) and ``sd_error``
        (relative), the effective number of points, and the Pareto k of the weights.

    Raises
    ------
    UnevenWeights
        The normal approximation is not good enough.
    """
    half, square = rng.standard_normal((n_points // 2, mean.size)), 1.0
    if heavy:
        wide = slice(None, None, 2)
        half[wide] /= np.sqrt(rng.chisquare(_DEGREES, size=(len(half[wide]), 1)) / _DEGREES)
        square = 0.5 * (1.0 + _DEGREES / (_DEGREES - 2.0))
    points = np.concatenate([half, -half])
    at_mean = value(mean)
    log_density = np.array([value(mean + root @ xi) - at_mean for xi in points])
    excess = log_density - _log_density_of_points(points, heavy=heavy)
    _, pareto_k = psislw(excess)
    if not pareto_k < 0.5:
        raise UnevenWeights(f"the weights of the importance sampling have Pareto k {pareto_k:.2f}")
    weights = np.exp(excess - excess.max())
    weights /= weights.mean()
    sd_q = np.sqrt(np.sum(root**2, axis=1))
    standardized = points @ (root / sd_q[:, None]).T
    first = (weights - 1.0)[:, None] * standardized
    second = (weights - 1.0)[:, None] * (standardized**2 - square)
    shift = first.mean(axis=0)
    variance = square + second.mean(axis=0) - shift**2
    pairs = len(half)
    first_error = (first[:pairs] + first[pairs:]).std(axis=0) / 2 / np.sqrt(pairs)
    second_error = (second[:pairs] + second[pairs:]).std(axis=0) / 2 / np.sqrt(pairs)
    return {
        "mean": mean + sd_q * shift,
        "sd": sd_q * np.sqrt(variance),
        "mean_error": first_error / np.sqrt(variance),
        "sd_error": second_error / (2.0 * variance),
        "n_points": n_points,
        "effective_points": float(weights.sum() ** 2 / np.sum(weights**2)),
        "pareto_k": float(pareto_k),
    }


def _log_density_of_points(points: NDArray[np.float64], *, heavy: bool) -> NDArray[np.float64]:
    """Log-density of the distribution that standardized points are drawn from."""
    d = points.shape[1]
    normal = multivariate_normal(np.zeros(d)).logpdf(points)
    if not heavy:
        return normal
    student = multivariate_t(shape=np.eye(d), df=_DEGREES).logpdf(points)
    return np.logaddexp(normal, student) - np.log(2.0)
