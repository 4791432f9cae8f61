"""Surrogates of posteriors: where they are made, about what, and that the draws are right."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import (
    ProposalMixture,
    SettingError,
    SurrogateHamiltonianProposal,
)
from pymc_austerity.proposals import hamiltonian
from pymc_austerity.setup import normality
from pymc_austerity.setup.surrogate import Expansion, SurrogatePosterior
from tests.model.splitting import by_name
from tests.references import moments_of
from tests.running import built, sample
from tests.step_methods.models import logistic, normal_mean

N_ROWS = 3_000


def laplace():
    """Normal rows, so that the surrogate is the posterior: its moments by quadrature."""
    rng = np.random.default_rng(6)
    x = np.column_stack([np.ones(N_ROWS), np.tile([1.0, -1.0], N_ROWS // 2)])
    y = x @ np.array([0.03, 0.0]) + rng.normal(size=N_ROWS)
    with pm.Model() as model:
        beta = pm.Laplace("beta", 0.0, 0.01, shape=2)
        pm.Normal("y", x @ beta, 1.0, observed=y)
    return model, x.T @ y


def funnel(link="normal"):
    """Few groups that hardly differ: the spread may be anything below their standard errors."""
    rng, group = np.random.default_rng(7), np.arange(N_ROWS) % 6
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfCauchy("tau", 0.5)
        a = pm.Normal("a", mu, tau, shape=6)
        if link == "normal":
            pm.Normal("y", a[group], 1.0, observed=rng.normal(0.3, 1.0, size=N_ROWS))
        else:
            pm.Bernoulli("y", logit_p=a[group], observed=rng.integers(0, 2, size=N_ROWS))
    return model


@pytest.fixture(scope="module")
def of_funnel():
    return built(funnel("logit"))


def sampled(model):
    return sample(built(model), model, draws=2_000, tune=500, random_seed=4).posterior


class TestDefault:
    def test_a_posterior_that_is_nearly_normal_has_the_mixture(self):
        step = built(logistic(N_ROWS, np.zeros(3), seed=8))
        assert isinstance(step.proposal, ProposalMixture)
        assert step.target.surrogate is None

    @pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
    def test_entries_that_no_row_reads_do_not_make_a_funnel(self):
        """Missing responses are normal given the others, whose posterior is nearly normal."""
        y = np.ma.masked_array(np.linspace(-1.0, 1.0, N_ROWS), mask=np.arange(N_ROWS) < 5)
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=y)
        step = built(model)
        assert isinstance(step.proposal, ProposalMixture)
        assert step.target.surrogate is None

    @pytest.mark.exhaustive
    def test_a_funnel_has_them_in_units_of_its_scale(self, of_funnel):
        step = of_funnel
        assert isinstance(step.proposal, SurrogateHamiltonianProposal)
        assert step.target.surrogate.scaled.tolist() == list(range(2, 8))


class TestSurrogate:
    def test_difference_is_what_decisions_add(self, of_funnel, rng):
        target, surrogate = of_funnel.target, of_funnel.target.surrogate
        new, old = (surrogate.dispersed(1.0, rng) for _ in range(2))
        known = target.row_free_part(new, old) + target.expansion(new, old)
        assert surrogate.difference(new, old) == pytest.approx(known, abs=1e-9)

    def test_coordinates_lead_back(self, of_funnel, rng):
        surrogate = of_funnel.target.surrogate
        point = surrogate.dispersed(1.0, rng)
        back = surrogate.point(surrogate.coordinates(point))
        np.testing.assert_allclose(back, point, atol=1e-12)

    def test_compiled_walk_is_that_of_python(self, of_funnel, rng):
        surrogate = of_funnel.target.surrogate
        x = surrogate.coordinates(surrogate.dispersed(1.0, rng))
        where = (x, surrogate.root, surrogate.step_size, 1.0, 3)
        found = surrogate.walk(*where, np.random.default_rng(9))
        known = (*surrogate.expansion, surrogate.scaled)
        expected = hamiltonian.walk(surrogate.exact, known, *where, np.random.default_rng(9))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
        assert found[1] == pytest.approx(expected[1], rel=1e-6)
        assert found[2] == expected[2]
        nowhere = (*where[:-1], 0, rng)  # as where it is compiled, or nothing has to be
        assert hamiltonian.walk(surrogate.exact, known, *nowhere)[1:] == (0.0, 0)

    def test_dispersed_points_are_not_beyond_a_wall(self, rng):
        def steep(point):  # standard normal below 1, and a wall above it
            excess = max(point[0] - 1.0, 0.0)
            value = -0.5 * point[0] ** 2 - 1e6 * excess**2
            return value, np.array([-point[0] - 2e6 * excess])

        flat = Expansion(np.zeros(1), np.zeros(1), np.zeros((1, 1)))
        surrogate = SurrogatePosterior(
            steep,
            lambda new, old: steep(new)[0] - steep(old)[0],
            flat,
            np.empty(0, dtype=int),
            np.zeros(1),
            np.eye(1),
        )
        points = np.array([surrogate.dispersed(2.0, rng)[0] for _ in range(200)])
        assert points.max() < 1.1
        assert points.min() < -3.0  # where it is normal, nothing is moved

    def test_an_expansion_that_bends_upward_is_flattened_there(self):
        expansion = Expansion.concave(np.zeros(2), np.zeros(2), np.diag([-2.0, 3.0]))
        np.testing.assert_allclose(expansion.hessian, np.diag([-2.0, 0.0]), atol=1e-12)
        assert expansion.difference(np.array([1.0, 5.0]), np.zeros(2)) == pytest.approx(-1.0)


def test_spread_of_residuals_is_what_the_expansion_leaves_open(of_funnel):
    target, model = of_funnel.target, funnel("logit")
    log_density = model.compile_logp()

    def total(point):
        return float(log_density(by_name(point, model.value_vars, model.initial_point())))

    pairs = normality._pairs(target, of_funnel.proposal, np.random.default_rng(17), 8)
    left = [total(new) - total(old) - target.surrogate.difference(new, old) for new, old in pairs]
    found = normality.spread_of_residuals(target, of_funnel.proposal)
    assert found == pytest.approx(np.sqrt(np.mean(np.square(left)) / 2.0), rel=1e-6)
    assert 0.0 < found < 1.0


class TestDraws:
    def test_of_a_laplace_prior_have_the_moments_of_quadrature(self):
        model, slopes = laplace()
        draws = sampled(model)["beta"].values
        grid = np.linspace(-0.1, 0.15, 20_001)
        for i in range(2):
            log_density = slopes[i] * grid - 0.5 * N_ROWS * grid**2 - np.abs(grid) / 0.01
            mean, sd = moments_of(log_density, grid)
            assert abs(draws[..., i].mean() - mean) < 5 * sd / np.sqrt(1_000)
            assert draws[..., i].std() == pytest.approx(sd, rel=0.1)

    @pytest.mark.exhaustive
    def test_of_the_spread_of_a_funnel_have_its_distribution(self):
        """With the groups integrated out, log tau is on a grid, and mu normal given it."""
        model = funnel()
        draws = np.log(sampled(model)["tau"].values)
        y = model["y"].owner.inputs and model.rvs_to_values[model["y"]].data
        averages = np.bincount(np.arange(N_ROWS) % 6, y) / (N_ROWS / 6)
        grid = np.linspace(-12.0, 3.0, 3_001)
        spread = np.exp(2.0 * grid) + 6.0 / N_ROWS
        precision = 1.0 + 6.0 / spread
        total = averages.sum() / spread
        log_density = grid - np.log1p(4.0 * np.exp(2.0 * grid)) - 3.0 * np.log(spread)
        log_density -= 0.5 * (averages**2).sum() / spread - 0.5 * total**2 / precision
        log_density -= 0.5 * np.log(precision)
        mean, sd = moments_of(log_density, grid)
        assert abs(draws.mean() - mean) < 5 * sd / np.sqrt(1_000)
        assert draws.std() == pytest.approx(sd, rel=0.12)
        below, _ = moments_of(log_density, grid < mean - 2 * sd)
        assert np.mean(draws < mean - 2 * sd) == pytest.approx(below, abs=0.02)


def test_a_posterior_that_is_flat_in_some_direction_has_no_anchor():
    with pm.Model() as model:
        a, b = pm.Flat("a"), pm.Flat("b")
        pm.Normal("y", a + b, 1.0, observed=np.random.default_rng(1).normal(size=N_ROWS))
    assert built(model).anchor is None


def test_without_control_variates_there_is_no_surrogate():
    with pytest.raises(SettingError, match="expansion of the rows"):
        built(normal_mean(), proposal=SurrogateHamiltonianProposal(), epsilon=0.0)
