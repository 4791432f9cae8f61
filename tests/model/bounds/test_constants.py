"""Constants that bound the third derivatives, against known ones and by brute force on the zoo."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from examples.benchmarks.bounds import by_row
from pymc_austerity.exact import largest_change
from pymc_austerity.model import find_predictors
from pymc_austerity.model.bounds import NoBoundError, scalar_function, third_derivative_constants
from pymc_austerity.model.bounds.enclosure import at_points, enclose
from tests.model.splitting import at_start
from tests.zoo.all_shapes import SHAPES
from tests.zoo.registry import Shape, ordered

RADII = (1.0, 2.5, 4.0)
ETA, Y, K = pt.dvector("eta"), pt.dvector("y"), pt.lvector("k")


def constant(graph, y, center, radius=50.0):
    """Of one row, whose value is a whole number or another one."""
    data = K if isinstance(y, int) else Y
    function = scalar_function(by_row(graph), [ETA], [data])
    gram = np.ones((1, 1, 1))
    given = [np.array([y])], np.array([[center]]), gram, [radius]
    return float(third_derivative_constants(function, *given)[0, 0])


BERNOULLI = pm.logp(pm.Bernoulli.dist(logit_p=ETA), K)
STUDENT_T = pm.logp(pm.StudentT.dist(nu=4.0, mu=ETA, sigma=2.0), Y)


@pytest.mark.parametrize(
    ("graph", "y", "center", "radius", "expected"),
    [
        (BERNOULLI, 0, 0.0, 50.0, pytest.approx(np.sqrt(3) / 18, rel=1e-4)),
        (BERNOULLI, 1, 3.0, 50.0, pytest.approx(np.sqrt(3) / 18, rel=1e-4)),
        (pm.logp(pm.Normal.dist(ETA, 2.0), Y), 0.0, 0.3, 50.0, 0.0),
        (
            pm.logp(pm.Poisson.dist(pt.exp(ETA)), K),
            2,
            0.5,
            1.0,
            pytest.approx(np.exp(1.5), rel=1e-3),
        ),
        (
            K * ETA - (K + 1.5) * pt.log(1.5 + pt.exp(ETA)),
            4,
            0.5,
            8.0,
            pytest.approx(0.52924, rel=1e-3),
        ),
        (STUDENT_T, 0.0, 0.0, 50.0, pytest.approx(1.4571 * 5.0 / (4.0**1.5 * 2.0**3), rel=1e-3)),
    ],
    ids=["logistic, 0", "logistic, 1", "normal", "poisson", "negative binomial", "student t"],
)
def test_known_constants(graph, y, center, radius, expected):
    assert constant(graph, y, center, radius) == expected


class TestNoBound:
    def test_names_an_operation_without_a_rule(self):
        with pytest.raises(NoBoundError, match="bounds of arccosh are unknown"):
            constant(pt.arccosh(ETA) * Y, 0.0, 2.0)

    def test_names_the_operation_without_a_finite_enclosure(self):
        with pytest.raises(NoBoundError, match="abs has no finite enclosure"):
            constant(-abs(ETA - Y), 0.0, 0.5)

    def test_a_check_that_may_fail_in_the_box(self):
        graph = pm.logp(pm.Normal.dist(0.0, ETA), Y)
        assert np.isfinite(constant(graph, 0.0, 2.0, radius=1.0))
        with pytest.raises(NoBoundError):
            constant(graph, 0.0, 2.0, radius=3.0)

    def test_a_condition_in_arithmetic_is_a_step(self):
        graph = pt.cast(ETA > 0.5, "float64") * ETA + (ETA > 0.5) * Y
        with pytest.raises(NoBoundError):
            constant(graph, 1.0, 0.4, radius=1.0)
        assert np.isfinite(constant(graph, 1.0, 2.0, radius=1.0))


def test_both_formulas_of_one_function_may_be_used():
    """A choice between formulas of one function is no kink, wherever the box lies."""
    tail, body = pt.log(pt.erfcx(-ETA)) - ETA**2, pt.log1p(-pt.erfc(ETA) / 2) + np.log(2.0)
    assert np.isfinite(constant(pt.switch(ETA < 0.3, tail, body) + Y, 0.0, 0.2, radius=0.3))


NO_BOUND = {
    "censored_gamma": "gammainc",
    "einsum": "Blockwise",
    "neural_network": "12 predictors",
    "rows_on_the_second_axis": "add",
    "smooth_function": "10 predictors",
    "unknown_knots": "Blockwise",
}
CUT = [name for name, shape in SHAPES.items() if shape.expect == "works"]


def ordered_probit(d):
    b, cutpoints = pm.Normal("b", shape=3), ordered("cutpoints", [-1.0, 0.0, 1.0])
    pm.OrderedProbit(
        "y", eta=d.X @ b, cutpoints=cutpoints, observed=d.categories(), compute_p=False
    )


def last_category_of_no_predictor(d):
    A = pm.Normal("A", shape=(3, 2))
    logits = pt.concatenate([d.X @ A, pt.zeros((d.n, 1))], axis=1)
    pm.Categorical("y", logit_p=logits, observed=d.categories() % 3)


def multinomial_of_one_trial(d):
    A = pm.Normal("A", shape=(3, 4))
    p = pm.math.softmax(d.X @ A, axis=1)
    pm.Multinomial("y", n=1, p=p, observed=np.eye(4, dtype=int)[d.categories()])


def softmax_by_hand(d):
    powers = pt.exp(d.X @ pm.Normal("A", shape=(3, 4)))
    p = powers / powers.sum(axis=1, keepdims=True)
    pm.Categorical("y", p=p, observed=d.categories())


def mixture_with_unknown_scales(d):
    w, mu = pm.Dirichlet("w", np.ones(2)), ordered("mu", [-1.0, 1.0])
    scales = pm.HalfNormal("scales", shape=2)
    pm.NormalMixture("y", w=w, mu=mu, sigma=scales, observed=d.eta)


def mixture_by_hand(d):
    b, logit = pm.Normal("b", shape=3), pm.Normal("logit")
    parts = [pm.logp(pm.Normal.dist(d.X @ b, scale), d.eta) for scale in (1.0, 5.0)]
    weights = -pt.softplus(-logit), -pt.softplus(logit)
    joint = pt.stack([w + part for w, part in zip(weights, parts, strict=True)], axis=1)
    shift = joint.max(axis=1, keepdims=True)
    pm.Potential("y", shift[:, 0] + pt.log(pt.exp(joint - shift).sum(axis=1)))


def mixture_by_logaddexp(d):
    b, logit = pm.Normal("b", shape=3), pm.Normal("logit")
    parts = [pm.logp(pm.Normal.dist(d.X @ b, scale), d.eta) for scale in (1.0, 5.0)]
    a, b = -pt.softplus(-logit) + parts[0], -pt.softplus(logit) + parts[1]
    pm.Potential("y", pt.logaddexp(a, b))


def zero_inflated_binomial(d):
    b, psi = pm.Normal("b", shape=3), pm.Beta("psi", 1, 1)
    p = pm.math.sigmoid(d.X @ b)
    pm.ZeroInflatedBinomial("y", psi=psi, n=6, p=p, observed=d.counts() % 6)


def zero_inflated_negative_binomial(d):
    b, psi, alpha = pm.Normal("b", shape=3), pm.Beta("psi", 1, 1), pm.Exponential("alpha", 1)
    mu = pm.math.exp(d.X @ b)
    pm.ZeroInflatedNegativeBinomial("y", psi=psi, mu=mu, alpha=alpha, observed=d.counts())


MORE = {
    write.__name__: write
    for write in (
        last_category_of_no_predictor, mixture_by_hand, mixture_by_logaddexp,
        mixture_with_unknown_scales, multinomial_of_one_trial, ordered_probit, softmax_by_hand,
        zero_inflated_binomial, zero_inflated_negative_binomial,
    )
}  # fmt: skip


@pytest.mark.parametrize("floatX", ["float64", "float32"])
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MORE)
def test_nor_does_one_of_models_written_otherwise(name, floatX):
    with pytensor.config.change_flags(floatX=floatX):
        model = Shape(name, MORE[name]).build(60)
        settings = {"likelihood": ["y"]} if name.startswith("mixture_by") else {}
        length = 0.01 if name == "ordered_probit" else 0.05
        bounds = check_residuals(model, floatX, length, **settings)
    assert np.isfinite(bounds[0]).mean() > 0.9


@pytest.mark.few(
    "logistic-float64",
    "logistic-float32",
    "hurdle-float64",
    "student_t-float64",
    "poisson_exposure-float64",
    "censored-float64",
    "categorical_logits-float64",
    "negative_binomial-float64",
    "custom_log_density-float64",
)
@pytest.mark.parametrize("floatX", ["float64", "float32"])
@pytest.mark.parametrize("name", CUT)
def test_no_residual_exceeds_its_bound(name, floatX):
    """Random pairs of points, near and far, for every row of every shape."""
    shape = SHAPES[name]
    with pytensor.config.change_flags(floatX=floatX):
        model = shape.build(60)
        if name in NO_BOUND:
            with pytest.raises(NoBoundError, match=NO_BOUND[name]):
                check_residuals(model, floatX, **shape.settings)
        else:
            check_residuals(model, floatX, **shape.settings)


def check_residuals(model, floatX, length=0.05, **settings):
    at = at_start(model, **settings)
    split, structure = at.likelihood, find_predictors(at)
    if isinstance(structure, str):
        pytest.skip(structure)
    placeholders = [leaf.placeholder for leaf in structure.leaves]
    arrays, n, k = split.arrays, split.n_rows, len(structure.etas)
    function = scalar_function(structure.function, structure.etas, placeholders)
    rng = np.random.default_rng(0)
    center, jacobian = 0.3 * rng.normal(size=(n, k)), length * rng.normal(size=(n, k, k + 2))
    gram = jacobian @ jacobian.transpose(0, 2, 1)
    bounds = third_derivative_constants(function, arrays, center, gram, RADII)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pymc_austerity.model.bounds.constants._GROUPS", n // 8)
        of_groups = third_derivative_constants(function, arrays, center, gram, RADII)
    assert (of_groups >= 0.99 * bounds).all() or settings
    log_density = pytensor.function(
        [*structure.etas, *placeholders], structure.function, mode="FAST_COMPILE",
        on_unused_input="ignore",
    )  # fmt: skip

    def rows_at(eta):
        etas = [x.astype(v.dtype) for x, v in zip(eta.T, structure.etas, strict=True)]
        return np.broadcast_to(np.asarray(log_density(*etas, *arrays), dtype=float), (n,))

    expansion = enclose(function, at_points(center, function.constants_of(arrays)), 2).center

    def remainder(u):
        moved = jacobian @ u
        powers = ((m, np.prod(moved ** np.array(m), axis=1)) for m in expansion)
        return rows_at(center + moved) - sum(expansion[m].lower * p for m, p in powers)

    rounding = (1e-11 if floatX == "float64" else 1e-5) * (1.0 + abs(rows_at(center)))
    both = np.stack([bounds, of_groups], axis=1)
    for radius, cs in zip(RADII, both, strict=True):
        for _ in range(10):
            u, v = rng.normal(size=(2, k + 2))
            u *= radius * rng.random() / np.linalg.norm(u)
            v *= radius / np.linalg.norm(v)
            with np.errstate(invalid="ignore"):
                residual = abs(remainder(v) - remainder(u))
                fine = residual <= cs * largest_change(u @ u, u @ v, v @ v) + rounding
            assert (fine | np.isinf(cs)).all()
    return bounds
