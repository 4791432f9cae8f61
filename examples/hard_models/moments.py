"""Mean and standard deviation of a quantity under the posterior, by formula or quadrature."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NEGLIGIBLE = 40.0
"""Nats below the maximum at which the density is taken for zero."""

_POINTS_AT_ONCE = 500


@dataclass(frozen=True)
class Moments:
    """Posterior mean and standard deviation, with the Monte Carlo errors they are known to.

    Attributes
    ----------
    mean, sd : float
        In the units of the quantity.
    mean_error, sd_error : float
        Standard errors of the two; 0 for a formula or quadrature.
    """

    mean: float
    sd: float
    mean_error: float = 0.0
    sd_error: float = 0.0


def quadrature(
    log_density: Callable[..., NDArray],
    bounds: Mapping[str, tuple[float, float]],
    *,
    size: int = 121,
    zooms: int = 10,
) -> dict[str, Moments]:
    """Moments of a density of up to three dimensions, on a grid that zooms in on it.

    Parameters
    ----------
    log_density : callable
        ``f(x, y, ...)`` with one array of shape ``(k, 1)`` for each dimension, in the order of
        `bounds`; returns shape ``(k,)``, nats, up to a constant; -inf and NaN are no density.
        Rows of data can stand in the second axis.
    bounds : dict
        Name and range of each dimension; what lies outside is left out.
    size : int
        Points in each dimension.
    zooms : int
        How often the grid shrinks to where the density is not negligible.

    Returns
    -------
    dict of Moments
        By the names of `bounds`.

    Examples
    --------
    >>> found = quadrature(lambda x: -0.5 * x[:, 0] ** 2, {"x": (-100.0, 300.0)})
    >>> round(found["x"].sd, 6)
    1.0
    """
    ranges = list(bounds.values())
    for _ in range(zooms):
        axes, log_values = _on_grid(log_density, ranges, size)
        ranges = _where_it_matters(axes, log_values, ranges)
    axes, log_values = _on_grid(log_density, ranges, size)
    weights = np.exp(log_values - log_values.max())
    for number in range(len(axes)):  # trapezoids, for densities that end at a bound
        np.moveaxis(weights, number, 0)[[0, -1]] /= 2.0
    weights /= weights.sum()
    found = {}
    for number, (name, axis) in enumerate(zip(bounds, axes, strict=True)):
        others = tuple(i for i in range(len(axes)) if i != number)
        marginal = weights.sum(axis=others)
        mean = float(marginal @ axis)
        found[name] = Moments(mean, float(np.sqrt(marginal @ (axis - mean) ** 2)))
    return found


def _on_grid(
    log_density: Callable[..., NDArray], ranges: list[tuple[float, float]], size: int
) -> tuple[list[NDArray], NDArray]:
    axes = [np.linspace(low, high, size) for low, high in ranges]
    points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    with np.errstate(all="ignore"):
        parts = [
            log_density(*block.T[:, :, None])
            for block in np.split(points, range(_POINTS_AT_ONCE, len(points), _POINTS_AT_ONCE))
        ]
    log_values = np.nan_to_num(np.concatenate(parts), nan=-np.inf, posinf=-np.inf)
    return axes, log_values.reshape([size] * len(axes))


def _where_it_matters(
    axes: list[NDArray], log_values: NDArray, ranges: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    """The range of each axis in which the density is not negligible, and one cell more."""
    matters = log_values > log_values.max() - _NEGLIGIBLE
    narrowed = []
    for number, (axis, (low, high)) in enumerate(zip(axes, ranges, strict=True)):
        others = tuple(i for i in range(len(axes)) if i != number)
        inside = np.flatnonzero(matters.any(axis=others))
        cell = axis[1] - axis[0]
        narrowed.append((max(low, axis[inside[0]] - cell), min(high, axis[inside[-1]] + cell)))
    return narrowed


def gaussian(
    name: str, design: NDArray, responses: NDArray, *, prior_sd: float, noise_sd: float = 1.0
) -> dict[str, Moments]:
    """Moments of the coefficients of a normal regression with known noise and prior N(0, sd)."""
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    scaled = design / scale  # coefficients times scale, so that the matrix is well conditioned
    precision = scaled.T @ scaled / noise_sd**2 + np.diag((prior_sd * scale) ** -2.0)
    covariance = np.linalg.inv(precision)
    means = covariance @ (scaled.T @ responses) / noise_sd**2 / scale
    sds = np.sqrt(np.diag(covariance)) / scale
    return {
        f"{name}[{i}]": Moments(float(mean), float(sd))
        for i, mean, sd in zip(itertools.count(), means, sds, strict=False)
    }
