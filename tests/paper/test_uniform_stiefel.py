import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import gamma

from pymc_austerity.paper import UniformStiefel


def log_density_at(value, **sizes):
    return float(pm.logp(UniformStiefel.dist(**sizes), value).eval())


def rotation(a, b, c):
    """Rotation about three axes, one after the other."""
    about_z = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    about_x = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    again_z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
    return about_z @ about_x @ again_z


def area_by_quadrature(chart, ranges, n=16, step=1e-5):
    """Area of a surface: midpoints of a grid, tangents by differences."""
    middles = [low + (np.arange(n) + 0.5) * (high - low) / n for low, high in ranges]
    total = 0.0
    for angles in np.stack(np.meshgrid(*middles), -1).reshape(-1, len(ranges)):
        tangents = [
            (chart(*(angles + step * e)) - chart(*(angles - step * e))).ravel() / (2 * step)
            for e in np.eye(len(ranges))
        ]
        total += np.sqrt(np.linalg.det(np.array(tangents) @ np.array(tangents).T))
    return total * np.prod([(high - low) / n for low, high in ranges])


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_one_column_is_the_unit_sphere(n):
    area = 2 * np.pi ** (n / 2) / gamma(n / 2)
    value = np.eye(n, 1)
    np.testing.assert_allclose(log_density_at(value, n=n, p=1), -np.log(area))


def test_area_of_matrices_is_that_of_their_surface():
    circle = ((0, 2 * np.pi),)
    angles = ((0, 2 * np.pi), (0, np.pi), (0, 2 * np.pi))
    of_plane = 2 * area_by_quadrature(lambda a: rotation(a, 0.0, 0.0), circle)
    of_space = 2 * area_by_quadrature(rotation, angles)
    of_two = area_by_quadrature(lambda *a: rotation(*a)[:, :2], angles)
    for n, p, area in [(2, 2, of_plane), (3, 3, of_space), (3, 2, of_two)]:
        found = log_density_at(np.eye(n, p), n=n, p=p)
        np.testing.assert_allclose(found, -np.log(area), atol=0.005)


def test_density_is_constant_on_the_manifold_and_zero_off_it(rng):
    q = np.linalg.qr(rng.normal(size=(4, 2)))[0]
    assert log_density_at(q, n=4, p=2) == pytest.approx(log_density_at(np.eye(4, 2), n=4, p=2))
    assert log_density_at(q * 1.001, n=4, p=2) == -np.inf
    assert log_density_at(np.zeros((4, 2)), n=4, p=2) == -np.inf
    assert np.isfinite(log_density_at(q.astype(np.float32), n=4, p=2))


@pytest.mark.few("3-3", "5-2")
@pytest.mark.parametrize(("n", "p"), [(2, 2), (3, 3), (5, 2), (3, 1)])
def test_draws_are_uniform(n, p):
    """Moments of the Haar measure, and the law of an entry: its square is Beta."""
    size = 4_000
    draws = pm.draw(UniformStiefel.dist(n, p), draws=size, random_seed=8)
    gram = np.swapaxes(draws, 1, 2) @ draws
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(p), gram.shape), atol=1e-12)
    for i, j in [(0, 0), (n - 1, p - 1), (0, p - 1)]:
        entry = draws[:, i, j]
        assert abs(entry.mean()) < 4 / np.sqrt(n * size)
        assert stats.kstest(entry**2, stats.beta(0.5, (n - 1) / 2).cdf).pvalue > 1e-4
    if n == p:
        traces = np.trace(draws, axis1=1, axis2=2)
        assert abs((traces**2).mean() - 1.0) < 4 * (traces**2).std() / np.sqrt(size)
        assert abs((np.linalg.det(draws) > 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(size)


def test_in_a_model():
    with pm.Model() as model:
        W = UniformStiefel("W", n=4, p=2)
        V = UniformStiefel("V", 3, shape=(5, 3, 3))
    assert W.type.shape == (4, 2)
    assert V.type.shape == (5, 3, 3)
    assert model.rvs_to_transforms[W] is None
    point = model.initial_point()
    assert point["V"].shape == (5, 3, 3)
    expected = log_density_at(np.eye(4, 2), n=4, p=2) + 5 * log_density_at(np.eye(3), n=3)
    assert float(model.compile_logp()(point)) == pytest.approx(expected)
    prior = pm.sample_prior_predictive(20, model=model, random_seed=1).prior
    for name, p in [("W", 2), ("V", 3)]:
        values = prior[name].values
        gram = np.swapaxes(values, -1, -2) @ values
        np.testing.assert_allclose(gram, np.broadcast_to(np.eye(p), gram.shape), atol=1e-12)
        assert len(np.unique(values[..., 0, 0])) == values[..., 0, 0].size
