"""The example's density is the model's, and the tests differ in the tail as the page says."""

import numpy as np
import pytest

from examples import tails as example
from examples.benchmarks.peers.problems import saturation


def test_the_density_is_that_of_the_model(rng):
    problem = saturation(2_000)
    curve = example.Curve(problem.rows["x"], problem.rows["y"])
    model = problem.model(problem.rows)
    logp, names = model.compile_logp(), [v.name for v in model.value_vars]
    assert names == ["top_log__", "half_log__", "sigma_log__"]
    points = np.array([1.7, 1.5, 1.4]) + 0.3 * rng.normal(size=(4, 3))
    own = [curve.log_density(point) for point in points]
    models = [float(logp(dict(zip(names, point, strict=True)))) for point in points]
    np.testing.assert_allclose(np.diff(own), np.diff(models), rtol=1e-9)
    draws = curve.draws(400, 1.38, rng)
    for step in 1e-4 * np.eye(3)[:2]:  # the slope of the log-density is 0 on average
        slopes = [(curve.log_density(z + step) - curve.log_density(z - step)) for z in draws]
        assert abs(np.mean(slopes)) < 4.0 * np.std(slopes) / np.sqrt(len(slopes))


@pytest.mark.exhaustive
def test_the_papers_test_leaves_the_tail_too_early():
    found = example.flows(3.0, n_points=50, n_decisions=240)
    (papers, _), (relative, into) = found["as in the paper"], found["relative"]
    assert papers.exact == pytest.approx(relative.exact)
    assert papers.ratio - 4.0 * papers.error > 1.0
    assert relative.ratio < 1.0 + 4.0 * relative.error
    assert 0.85 < into.ratio < 1.05
