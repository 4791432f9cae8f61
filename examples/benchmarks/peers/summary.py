"""Draws in few numbers: moments, effective sample size, distance from a reference."""

from collections.abc import Sequence
from typing import Any

import arviz as az
import numpy as np
from numpy.typing import NDArray


def flatten(draws: dict[str, NDArray], positive: Sequence[str]) -> NDArray[np.float64]:
    """All parameters side by side, in the order of their names, positive ones as logarithms.

    Parameters
    ----------
    draws : dict of arrays, shape (n_draws, ...)
        By variable.
    positive : sequence of str
        Variables on a log scale.

    Returns
    -------
    float array, shape (n_draws, d)

    Examples
    --------
    >>> flatten({"b": np.ones((2, 1)), "a": np.zeros((2, 2))}, positive=["b"])
    array([[0., 0., 0.],
           [0., 0., 0.]])
    """
    columns = []
    for name in sorted(draws):
        values = np.asarray(draws[name], dtype=np.float64)
        values = values.reshape(len(values), -1)
        columns.append(np.log(values) if name in positive else values)
    return np.hstack(columns)


def moments(flat: NDArray[np.float64]) -> dict[str, Any]:
    """Mean, sd and bulk effective sample size of one chain.

    Parameters
    ----------
    flat : float array, shape (n_draws, d)
        Draws.
    """
    ess = np.array([float(az.ess(column[None], method="bulk")) for column in flat.T])
    ess = np.where(np.isfinite(ess), ess, 0.0)
    half = len(flat) // 2
    rhat = np.array([float(az.rhat(column[: 2 * half].reshape(2, half))) for column in flat.T])
    return {
        "n_draws": len(flat),
        "ess_median": float(np.median(ess)),
        "ess_min": float(ess.min()),
        "rhat_max": float(np.nanmax(rhat)) if np.isfinite(rhat).any() else None,
        "mean": flat.mean(axis=0).tolist(),
        "sd": flat.std(axis=0, ddof=min(len(flat) - 1, 1)).tolist(),
    }


def errors(measured: dict[str, Any], reference: dict[str, Any]) -> tuple[float, float]:
    """Largest error of a mean, in posterior sds, and of an sd, as a share of it.

    Examples
    --------
    >>> errors({"mean": [0.0, 1.0], "sd": [1.0, 2.2]}, {"mean": [0.1, 1.0], "sd": [1.0, 2.0]})
    (0.1, 0.1)
    """
    sd = np.asarray(reference["sd"])
    of_mean = np.abs(np.asarray(measured["mean"]) - reference["mean"]) / sd
    of_sd = np.abs(np.asarray(measured["sd"]) / sd - 1.0)
    return round(float(of_mean.max()), 6), round(float(of_sd.max()), 6)
