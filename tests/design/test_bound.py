import numpy as np
import pytest

from pymc_austerity.design import (
    Boundary,
    acceptance_error,
    constant_looks,
    total_variation_bound,
)
from pymc_austerity.errors import SettingError


def metropolis_kernel(log_density, errors):
    """Transition matrix of Metropolis with uniform proposals, acceptance off by `errors`."""
    n = log_density.size
    accept = np.minimum(1.0, np.exp(log_density[None, :] - log_density[:, None])) + errors
    assert np.all(accept >= 0.0) and np.all(accept <= 1.0)
    moves = accept / n
    np.fill_diagonal(moves, 0.0)
    return moves + np.diag(1.0 - moves.sum(axis=1))


def stationary(kernel):
    n = len(kernel)
    system = np.vstack([kernel.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]


def dobrushin(kernel):
    """Contraction of total variation: the largest distance between two rows."""
    return max(0.5 * np.abs(a - b).sum() for a in kernel for b in kernel)


@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_bounds_the_distance_of_stationary_distributions(spread, rng):
    log_density = rng.normal(0.0, 1.0, size=12)
    log_ratio = log_density[None, :] - log_density[:, None]
    looks = constant_looks(500, 10_000)
    errors = acceptance_error(log_ratio.ravel(), np.full(144, spread), looks, Boundary(0.1))
    errors = errors.reshape(12, 12)
    exact, austere = (metropolis_kernel(log_density, e) for e in (np.zeros((12, 12)), errors))
    density = np.exp(log_density) / np.exp(log_density).sum()
    distance = 0.5 * np.abs(stationary(austere) - density).sum()
    bound = total_variation_bound(np.abs(errors).max(), dobrushin(exact))
    assert 0.02 * bound < distance <= bound < 1.0


def test_no_error_no_distance():
    assert total_variation_bound(0.0, 0.9) == 0.0


def test_never_above_one():
    assert total_variation_bound(0.5, 0.99) == 1.0


@pytest.mark.parametrize(("error", "contraction"), [(-0.1, 0.5), (1.1, 0.5), (0.1, 1.0), (0.1, -1)])
def test_out_of_range(error, contraction):
    with pytest.raises(SettingError):
        total_variation_bound(error, contraction)
