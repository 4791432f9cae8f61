"""Taylor terms taken from the graph against finite differences of the rows."""

import numpy as np
import pymc as pm
import pytest
from scipy.special import expit, log_expit

from pymc_austerity._pymc import underivable
from pymc_austerity.model import (
    compile_residuals,
    compile_row_derivatives,
    compile_row_differences,
    compile_row_free_derivatives,
    compiled_functions,
)
from tests.control_variates.brute_force import gradients, hessians, taylor_differences
from tests.model.splitting import at_start, bessel, by_name, raveled
from tests.zoo.all_shapes import SHAPES
from tests.zoo.registry import written

NO_C = {"mode": "FAST_COMPILE"}
N_ROWS, N_TAKEN = 53, 6
DISCRETE = {"switchpoint"}
FEW = {"logistic", "poisson_exposure", "slopes_by_group", "two_likelihoods", "hurdle"}


def shapes():
    """All continuous ones that can be cut; few in the fast tier."""
    return [
        pytest.param(
            shape, id=shape.name, marks=[] if shape.name in FEW else pytest.mark.exhaustive
        )
        for shape in SHAPES.values()
        if shape.expect == "works" and shape.name not in DISCRETE
    ]


class Compiled:
    """Some rows of a model, three points in general position, and all functions of them."""

    def __init__(self, shape, rng, spread=0.2):
        self.model = shape.build(N_ROWS)
        self.at = at_start(self.model, **shape.settings)
        self.split, center = self.at.likelihood, raveled(self.at.point, self.at.variables)
        self.anchor, self.proposed, self.current = (
            center + spread * rng.standard_normal(center.size) for _ in range(3)
        )
        n_rows = self.split.n_rows
        self.indices = np.sort(rng.choice(n_rows, min(N_TAKEN, n_rows), replace=False))
        self.block = self.block_of(self.indices)
        self.differences = compile_row_differences(self.at, compile_kwargs=NO_C)

    def block_of(self, indices):
        return [np.ascontiguousarray(leaf.array[indices]) for leaf in self.split.leaves]

    def values(self, point):
        """Log-likelihoods of the rows up to constants."""
        return self.differences(point, self.anchor, *self.block)

    def residuals(self, order):
        return compile_residuals(self.at, order=order, compile_kwargs=NO_C)

    def derivatives(self):
        return (
            compile_row_derivatives(self.at, compile_kwargs=NO_C),
            compile_row_free_derivatives(self.at, compile_kwargs=NO_C),
        )


def assert_close(actual, expected, tolerance=1e-6):
    """Relative to the largest entry: central differences of fourth order leave less than 1e-8."""
    scale = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.few("logistic", "slopes_by_group", "poisson_exposure", "two_likelihoods")
@pytest.mark.parametrize("shape", shapes())
@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_taylor_terms_of_every_shape(shape, rng):
    compiled = Compiled(shape, rng)
    anchor, block = compiled.anchor, compiled.block
    g, H = gradients(compiled.values, anchor), hessians(compiled.values, anchor)
    proposed, current = compiled.proposed, compiled.current
    differences = compiled.differences(proposed, current, *block)
    for order in (1, 2) if shape.name in FEW else (2,):
        terms = taylor_differences(g, H, anchor, proposed, current, order)
        residuals = compiled.residuals(order)(proposed, current, anchor, *block)
        assert residuals.dtype == np.float64
        assert_close(residuals, differences - terms)
    rows, exact = compiled.derivatives()
    value, gradient = rows.gradient(anchor, *block)
    assert_close(gradient, g.sum(axis=0))
    assert_close(rows.hessian(anchor, *block), H.sum(axis=0))
    assert np.shape(value) == () and value.dtype == np.float64
    assert exact.gradient(anchor)[1].shape == anchor.shape
    assert exact.hessian(anchor).shape == (anchor.size, anchor.size)


@pytest.mark.few("logistic-many", "slopes_by_group-once")
@pytest.mark.parametrize("calls", ["once", "many"])
@pytest.mark.parametrize("name", ["logistic", "student_t", "slopes_by_group"])
def test_the_hessian_is_the_same_in_one_call_or_in_many(name, calls, rng, monkeypatch):
    """With a number of rows in a block that is not known to the graph."""
    if calls == "many":
        monkeypatch.setattr(compiled_functions, "interpreted", lambda *a, **k: None)
    compiled = Compiled(SHAPES[name], rng)
    rows, exact = compiled.derivatives()
    anchor = compiled.anchor
    H = hessians(compiled.values, anchor)
    for n in (1, 3, N_TAKEN):
        block = [leaf[:n] for leaf in compiled.block]
        assert_close(rows.hessian(anchor, *block), H[:n].sum(axis=0))

    def exact_density(vector):
        return np.atleast_1d(exact.gradient(vector)[0])

    assert_close(exact.gradient(anchor)[1], gradients(exact_density, anchor)[0])
    assert_close(exact.hessian(anchor), hessians(exact_density, anchor)[0])


@pytest.mark.few("logistic")
@pytest.mark.parametrize("name", ["logistic", "student_t"])
def test_sums_over_all_rows_and_the_exact_part_are_the_log_density(name, rng):
    compiled = Compiled(SHAPES[name], rng)
    log_density = compiled.model.compile_logp(**NO_C)
    every, anchor = compiled.block_of(np.arange(compiled.split.n_rows)), compiled.anchor
    rows, exact = compiled.derivatives()
    value, gradient = rows.gradient(anchor, *every)
    exact_value, row_free_gradient = exact.gradient(anchor)
    whole_point = compiled.at.variables, compiled.at.point

    def whole(vector):
        return np.atleast_1d(log_density(by_name(vector, *whole_point)))

    assert value + exact_value == pytest.approx(whole(anchor)[0], rel=1e-12)
    assert_close(gradient + row_free_gradient, gradients(whole, anchor)[0])
    both = rows.hessian(anchor, *every) + exact.hessian(anchor)
    assert_close(both, hessians(whole, anchor)[0])


@pytest.mark.few("2-logistic", "1-logistic")
@pytest.mark.parametrize("name", ["logistic", "hurdle"])
@pytest.mark.parametrize("order", [1, 2])
def test_residuals_vanish_at_the_rate_that_theory_predicts(name, order, rng):
    """At distance h from the anchor: h**(order + 1)."""
    compiled = Compiled(SHAPES[name], rng)
    residuals, anchor = compiled.residuals(order), compiled.anchor
    a, b = rng.standard_normal((2, anchor.size))
    distances = np.geomspace(1e-3, 1e-1, 5)
    sizes = [
        np.abs(residuals(anchor + h * a, anchor + h * b, anchor, *compiled.block))
        for h in distances
    ]
    slopes = np.polyfit(np.log(distances), np.log(sizes), 1)[0]
    np.testing.assert_allclose(np.median(slopes), order + 1, atol=0.1)
    assert (slopes > order + 0.6).all()


def test_residuals_at_the_anchor_are_nothing(rng):
    compiled = Compiled(SHAPES["logistic"], rng)
    residuals, anchor, other = compiled.residuals(2), compiled.anchor, compiled.proposed
    np.testing.assert_array_equal(residuals(anchor, anchor, anchor, *compiled.block), 0.0)
    there = residuals(other, anchor, anchor, *compiled.block)
    back = residuals(anchor, other, anchor, *compiled.block)
    np.testing.assert_allclose(there, -back, rtol=1e-12, atol=1e-15)
    assert np.abs(there).max() > 1e-6


def test_a_linear_predictor_with_known_scale_has_no_residuals_of_second_order(rng):
    compiled = Compiled(SHAPES["linear_row_vector"], rng, spread=30.0)
    residuals = compiled.residuals(2)(
        compiled.proposed, compiled.current, compiled.anchor, *compiled.block
    )
    size = np.abs(compiled.differences(compiled.proposed, compiled.current, *compiled.block)).max()
    assert size > 10.0
    np.testing.assert_allclose(residuals, 0.0, atol=1e-12 * size)


# ------------------------------------------------------------------ far out


def logistic_model(form, x, y):
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 100.0)
        if form == "logit_p":
            pm.Bernoulli("y", logit_p=beta * x, observed=y)
        elif form == "sigmoid":
            pm.Bernoulli("y", p=pm.math.sigmoid(beta * x), observed=y)
        else:
            pm.Binomial("y", n=1, logit_p=beta * x, observed=y)
    return model


ETAS = np.array(
    [-800.0, -750.0, -40.0, -37.0, -30.0, -5.0, 0.5, 5.0, 30.0, 37.0, 40.0, 750.0, 800.0]
)


@pytest.mark.few("FAST_COMPILE-logit_p", "FAST_COMPILE-binomial")
@pytest.mark.parametrize("form", ["logit_p", "sigmoid", "binomial"])
@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_extreme_logits(form, mode, rng):
    """Closed form: l' = (y - p) x and l'' = -p (1 - p) x^2, which underflow and are never NaN."""
    # PyMC 5's own binomial log-density is -inf where the probability rounds to 1
    etas = ETAS if form != "binomial" else ETAS[np.abs(ETAS) < 36]
    x = np.repeat(etas, 2)
    y = np.tile([0, 1], etas.size)
    model = logistic_model(form, x, y)
    at = at_start(model)
    rows = compile_row_derivatives(at, compile_kwargs={"mode": mode})
    residuals = compile_residuals(at, compile_kwargs={"mode": mode})
    one = np.ones(1)
    p, q = expit(x), expit(-x)
    for k in range(x.size):
        block = [np.ascontiguousarray(leaf.array[[k]]) for leaf in at.likelihood.leaves]
        value, gradient = rows.gradient(one, *block)
        curvature = rows.hessian(one, *block)[0, 0]
        slope = q[k] if y[k] else -p[k]
        assert value == pytest.approx(log_expit(x[k] if y[k] else -x[k]), rel=1e-9, abs=1e-15)
        assert gradient[0] == pytest.approx(slope * x[k], rel=1e-9, abs=1e-12)
        assert curvature == pytest.approx(-p[k] * q[k] * x[k] ** 2, rel=1e-9, abs=1e-10)
        # l(1.01) - l(0.99) less its expansion
        sign = 1.0 if y[k] else -1.0
        difference = log_expit(sign * 1.01 * x[k]) - log_expit(sign * 0.99 * x[k])
        expected = difference - 0.02 * slope * x[k]
        result = residuals(1.01 * one, 0.99 * one, one, *block)
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-12)


# ------------------------------------------------------------------ what it is wrapped in


def test_an_operation_without_derivative_is_told():
    at = at_start(written(bessel))
    for compiled in (compile_row_derivatives, compile_residuals):
        with pytest.raises(underivable):
            compiled(at, compile_kwargs=NO_C)
