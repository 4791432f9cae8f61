"""Groups of rows with effects of their own."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from examples.hard_models.moments import Moments, quadrature
from examples.hard_models.registry import hard


def _groups_data(seed: int, n_groups: int, n_rows: int, spread: float) -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, size=n_rows)
    effects = 0.5 + spread * rng.normal(size=n_groups)
    return group, rng.normal(effects[group], 1.0)


def _groups_answer(group: NDArray, y: NDArray) -> dict[str, Moments]:
    """Of mean and spread, with the effects integrated out: a group's mean is normal again."""
    n_rows = np.bincount(group)
    means = np.bincount(group, weights=y) / n_rows

    def log_density(mu: NDArray, tau: NDArray) -> NDArray:
        variance = tau**2 + 1.0 / n_rows
        groups = -0.5 * ((means - mu) ** 2 / variance + np.log(variance)).sum(axis=1)
        return groups - 0.5 * (mu**2 + tau**2)[:, 0]

    return quadrature(log_density, {"mu": (-3.0, 3.0), "tau": (0.0, 4.0)})


_SMALL_SPREAD = {"seed": 21, "n_groups": 50, "n_rows": 5_000, "spread": 0.02}


@hard(lambda: _groups_answer(*_groups_data(**_SMALL_SPREAD)))
def centered_groups_with_small_spread() -> None:
    """50 group effects N(mu, tau) with a tau near zero, written centered: a funnel."""
    group, y = _groups_data(**_SMALL_SPREAD)
    mu, tau = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("tau", 1.0)
    effects = pm.Normal("effects", mu, tau, shape=50)
    pm.Normal("y", effects[group], 1.0, observed=y)


_FEW_GROUPS = {"seed": 22, "n_groups": 20, "n_rows": 10_000, "spread": 0.02}


@hard(lambda: _groups_answer(*_groups_data(**_FEW_GROUPS)))
def noncentered_groups_with_small_spread() -> None:
    """20 group effects mu + tau z with a tau near zero, written non-centered."""
    group, y = _groups_data(**_FEW_GROUPS)
    mu, tau = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("tau", 1.0)
    z = pm.Normal("z", 0.0, 1.0, shape=20)
    pm.Normal("y", mu + tau * z[group], 1.0, observed=y)


_MANY_GROUPS = {"seed": 23, "n_groups": 200, "n_rows": 50_000, "spread": 1.0}


@hard(lambda: _groups_answer(*_groups_data(**_MANY_GROUPS)))
def many_noncentered_groups() -> None:
    """200 groups of 250 rows, written non-centered as formula packages write (1 | group)."""
    group, y = _groups_data(**_MANY_GROUPS)
    mu, tau = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("tau", 1.0)
    z = pm.Normal("z", 0.0, 1.0, shape=200)
    pm.Normal("y", mu + tau * z[group], 1.0, observed=y)


@hard("nuts")
def groups_of_one_row() -> None:
    """40 groups with effects on counts, half of them with a single row."""
    rng = np.random.default_rng(24)
    group = np.concatenate([np.arange(40), rng.integers(0, 20, size=960)])
    y = rng.poisson(np.exp(1.0 + 0.5 * rng.normal(size=40))[group])
    mu, tau = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("tau", 1.0)
    effects = pm.Normal("effects", mu, tau, shape=40)
    pm.Poisson("y", pm.math.exp(effects[group]), observed=y)
