"""Control variates where other step methods, or discrete variables, are in the model."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, SettingError
from pymc_austerity.control_variates import differences_of_all
from tests.running import built, chain_of, sample
from tests.step_methods.models import switch_point

N_ROWS = 2_000


def counts(**others):
    """Poisson regression with correlated coefficients, and a spread that no row depends on."""
    rng = np.random.default_rng(3)
    x = rng.normal(1.0, 1.0, size=N_ROWS)
    with pm.Model() as model:
        spread = pm.Gamma("spread", 20.0, 20.0)
        a = pm.Normal("a", 0.0, spread)
        if "coin" in others:
            coin = pm.Bernoulli("coin", 0.3)
            pm.Potential("bonus", 0.5 * coin * a)
        b = pm.Normal("b", 0.0, spread)
        pm.Poisson("y", pm.math.exp(a + b * x), observed=rng.poisson(np.exp(0.5 + 0.3 * x)))
    return model


@pytest.fixture(scope="module")
def model():
    return counts()


@pytest.fixture(scope="module")
def with_coin():
    return counts(coin=True)


@pytest.fixture(scope="module")
def reference(model):
    """Moments of a long run in which all variables are moved together by all rows."""
    return moments(built(model, epsilon=0.0), model, draws=8_000)


def moments(step, model, **run):
    posterior = sample(step, model, tune=1_000, random_seed=2, **run).posterior
    return {name: (float(x.mean()), float(x.std())) for name, x in posterior.items()}


def assert_agree(found, expected, tolerance=0.15):
    for name, (mean, sd) in expected.items():
        assert abs(found[name][0] - mean) < tolerance * sd, name
        assert abs(found[name][1] / sd - 1.0) < tolerance, name


# ------------------------------------------------------------------ against brute force


@pytest.mark.few("names0")
@pytest.mark.parametrize("names", [["a"], ["b", "spread"], ["coin", "a"]])
def test_the_parts_add_up_to_the_log_density(with_coin, names, rng):
    step = built(with_coin, vars=names)
    around, log_density = step.embedding, with_coin.compile_logp()
    assert step.target.anchor is not None
    for _ in range(5):
        point = {
            "spread_log__": rng.normal(),
            "a": rng.normal(0.5, 0.1),
            "coin": np.array(rng.integers(2)),
            "b": rng.normal(0.3, 0.1),
        }
        values = [v.name for v in with_coin.value_vars if v in step.vars]
        current = np.array([point[name] for name in values], dtype=float)
        proposed = current + rng.normal(0.0, 0.1, size=current.size)
        if "coin" in values:
            proposed[values.index("coin")] = rng.integers(2)
        for name, shared in step.shared.items():
            shared.set_value(np.asarray(point[name], dtype=shared.dtype))
        around.look(point)
        new, old = around.among_all(proposed), around.among_all(current)
        assert not any(np.array_equal(new, other) for other in (old, step.target.start))
        total = around.question(proposed, current, 0.0).log_ratio
        total += step.target.row_free_part(new, old) + step.target.expansion(new, old)
        source = step.target.source
        total += differences_of_all(step.target.row_function, new, old, source).sum()
        moved = point | dict(zip(values, proposed, strict=True))
        expected = log_density(moved) - log_density(point)
        np.testing.assert_allclose(total, expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(around.back(around.centered(current)), current, atol=1e-12)


def test_what_no_row_depends_on_reads_no_row(with_coin):
    step = built(with_coin, vars=["coin", "spread"])
    _, statistics = chain_of(step, with_coin.initial_point(), 20)
    assert {each["n_rows_used"] for each in statistics} == {0}


@pytest.mark.exhaustive
def test_beside_another_step_method(model, reference):
    with model:
        steps = [AusterityMH(vars=["a", "spread"]), pm.Slice([model["b"]])]
    assert steps[0].constants["control_variates"] == 2
    assert_agree(moments(steps, model, draws=2_000), reference)


# ------------------------------------------------------------------ where they end


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["level"], "other step methods move 'tau', 'flip', which the rows depend on"),
        (["level", "flip", "tau"], "there are discrete variables"),
    ],
)
def test_rows_that_depend_on_discrete_variables(names, reason):
    model = switch_point()
    assert f"no control variates because {reason}" in built(model, vars=names).summary
    with pytest.raises(SettingError, match=f"is not possible because {reason}"):
        built(model, vars=names, control_variates=2)
