"""The posterior mean beside brute force."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from pymc_austerity.control_variates import mean, posterior_mean
from pymc_austerity.model import predictor_derivatives
from tests.control_variates.regressions import logistic, poisson, simulate
from tests.control_variates.test_anchor import anchor_of
from tests.model.predictors.brute_force import of_shape


class WithAverages:
    """Gradients of a regression that are averaged by Gauss-Hermite quadrature over predictors."""

    def __init__(self, problem, cost=1.0):
        self.gradient, self.hessian = problem.row_gradient, problem.row_hessian
        self.cost_of_average, self._family = cost, problem.family

    def averaged_gradient(self, point, root, X, y):
        nodes, weights = np.polynomial.hermite_e.hermegauss(20)
        sds = np.linalg.norm(X @ root, axis=1)
        slopes = (self._family(X @ point + z * sds, y)[1] for z in nodes)
        average = sum(w * slope for w, slope in zip(weights, slopes, strict=True))
        return X.T @ average / np.sqrt(2.0 * np.pi)


def importance_mean(problem, anchor, rng, n=400_000):
    """Mean of the posterior from weighted draws, and its standard error in standard deviations."""
    z = rng.standard_t(6.0, size=(n, anchor.point.size))
    points = anchor.point + z @ anchor.root.T
    log_density = -0.5 * problem.prior_precision * (points**2).sum(axis=1)
    for x, y in zip(problem.X, problem.y, strict=True):
        log_density += problem.family(points @ x, y)[0]
    log_weights = log_density + 3.5 * np.log1p(z**2 / 6.0).sum(axis=1)
    weights = softmax(log_weights)
    return weights @ z, 1.0 / np.sqrt((weights**2).sum() ** -1)


@pytest.mark.parametrize(
    ("family", "n_rows", "coefficients"), [(logistic, 60, [2.0, -1.0, 0.0]), (poisson, 20, [-1.0])]
)
@pytest.mark.parametrize("has_averages", [False, True])
def test_skewed_posteriors(family, n_rows, coefficients, has_averages, rng):
    problem = simulate(
        family, n_rows, rng, coefficients, None if len(coefficients) > 1 else np.ones((n_rows, 1))
    )
    anchor = anchor_of(problem, rng)
    rows = WithAverages(problem) if has_averages else problem.rows
    found = posterior_mean(anchor, replace(problem.posterior, rows=rows), rng=rng)
    shift = anchor.inverse_root @ (found - anchor.point)
    expected, error = importance_mean(problem, anchor, rng)
    assert np.linalg.norm(expected) > 0.1
    assert np.linalg.norm(shift - expected) < 0.1 * np.linalg.norm(expected) + 4.0 * error


def test_normal_posteriors_are_left_alone(rng):
    problem = simulate(logistic, 20_000, rng)
    anchor = anchor_of(problem, rng)
    found = posterior_mean(anchor, problem.posterior, rng=rng)
    np.testing.assert_array_equal(found, anchor.point)


def test_some_of_the_rows_tell_nearly_the_same(rng, monkeypatch):
    problem = simulate(logistic, 6_000, rng, np.r_[1.0, -1.0, np.zeros(58)])
    anchor = anchor_of(problem, rng)
    with_averages = replace(problem.posterior, rows=WithAverages(problem))
    of_all = posterior_mean(anchor, with_averages, rng=rng)
    monkeypatch.setattr(mean, "_MULTIPLICATIONS", 1_500.0)  # a quarter of the rows
    of_some = posterior_mean(anchor, with_averages, rng=rng)
    shift, other = (anchor.inverse_root @ (m - anchor.point) for m in (of_all, of_some))
    assert np.linalg.norm(shift) > 0.3
    assert 0.0 < np.linalg.norm(other - shift) < 0.1 * np.linalg.norm(shift)


def test_what_may_be_chance_is_no_step(rng):
    shifts = rng.normal(size=(2, 50))
    assert mean._step(shifts)[1] == 0.0
    step, squared = mean._step(shifts + 10.0)
    assert squared == pytest.approx(step @ step)
    assert np.linalg.norm(step) < np.linalg.norm(shifts.mean(axis=0) + 10.0)


@pytest.mark.parametrize("name", ["logistic", "poisson_exposure", "negative_binomial", "student_t"])
def test_averages_over_predictors(name, rng):
    """Beside the mean of gradients at many points, for a narrow normal distribution."""
    its = of_shape(name, rng)
    derivatives, arrays = predictor_derivatives(its.structure, its.model), its.split.arrays
    point = its.near(0.1)
    root = np.tril(0.05 * rng.normal(size=(point.size,) * 2))
    found = derivatives.averaged_gradient(point, root, *arrays)
    noise = rng.normal(size=(1_500, point.size)) @ root.T
    both = [derivatives.gradient(point + s * z, *arrays)[1] for z in noise for s in (1, -1)]
    pairs = np.array(both).reshape(len(noise), 2, -1).mean(axis=1)
    error = pairs.std(axis=0) / np.sqrt(len(noise))
    here = derivatives.gradient(point, *arrays)[1]
    change = pairs.mean(axis=0) - here
    assert np.abs(change).max() > 10.0 * error.max()
    np.testing.assert_array_less(np.abs(found - here - change), 5.0 * error + 0.1 * np.abs(change))
