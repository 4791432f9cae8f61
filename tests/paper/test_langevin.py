"""Langevin moves on targets whose gradients are known."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import multivariate_normal

from pymc_austerity import LangevinProposal, SettingError
from pymc_austerity.paper.langevin import _ACCEPTANCE
from pymc_austerity.proposals import GaussianApproximation, Layout, Outcome, ProposalMixture
from tests.references import mean_and_error

N_ROWS = 1_000
MATRIX = np.array([[0.5, 0.2], [0.2, 0.3]])


class NoisyGradients:
    """Standard normal target; a mini-batch shifts the gradient by an amount of its own."""

    n_rows = N_ROWS

    def __init__(self, decisions="metropolis", noise=1.0, batch_size=10):
        self.decisions, self.noise, self.batch_size = decisions, noise, batch_size
        self.n_drawn = self.n_calls = 0

    def draw(self, rng):
        self.n_drawn += 1
        shift = self.noise * rng.standard_normal()

        def gradient(point):
            self.n_calls += 1
            return -point + shift

        return gradient


def bound(gradients=None, d=2, approximation=None, **settings):
    langevin = LangevinProposal(**settings).with_gradients(gradients or NoisyGradients())
    return langevin, langevin.init(Layout.continuous(d), approximation)


def chain(langevin, state, n_steps, rng, *, tune=0, start=None):
    """Points and acceptance rate of a chain on the standard normal target."""
    point = np.zeros(1) if start is None else start
    points, accepted = np.empty((n_steps, point.size)), np.empty(n_steps)
    for i in range(n_steps):
        new, log_ratio, state = langevin.propose(state, point, rng)
        log_target = 0.5 * float(point @ point - new @ new)
        accepts = expit(log_ratio + log_target)
        if langevin.gradients.decisions in {"metropolis", "poisson"}:
            accepts = math.exp(min(log_ratio + log_target, 0.0))
        if langevin.gradients.decisions == "none":
            accepts = 1.0
        accept = rng.random() < accepts
        following = new if accept else point
        if i < tune:
            state = langevin.tune(state, Outcome(point, following, accept, 0))
        if i == tune - 1:
            state = langevin.freeze(state)
        point = following
        points[i], accepted[i] = point, accept
    return points[tune:], accepted[tune:].mean(), state


class TestLogRatio:
    @pytest.mark.parametrize("matrix", [None, [0.5, 2.0], MATRIX], ids=["none", "diagonal", "full"])
    def test_is_that_of_the_normal_densities(self, matrix, rng):
        gradients, point, h = NoisyGradients(), rng.normal(size=2), 0.3
        langevin, state = bound(gradients, step_size=h, preconditioner=matrix)
        new, log_ratio, _ = langevin.propose(state, point, np.random.default_rng(7))
        m = np.eye(2) if matrix is None else np.asarray(matrix)
        m = np.diag(m) if m.ndim == 1 else m
        gradient = gradients.draw(np.random.default_rng(7))

        def log_q(to, start):
            return multivariate_normal(start + h / 2 * m @ gradient(start), h * m).logpdf(to)

        assert log_ratio == pytest.approx(log_q(point, new) - log_q(new, point), rel=1e-9)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
    @pytest.mark.parametrize("first_calls", [0, 1])
    def test_a_gradient_that_is_not_finite_rejects(self, bad, first_calls, rng):
        gradients = NoisyGradients()
        calls = []

        def gradient(point):
            calls.append(point)
            return np.full(2, bad) if len(calls) > first_calls else -point

        gradients.draw = lambda rng: gradient
        langevin, state = bound(gradients, step_size=4.0)
        _, log_ratio, _ = langevin.propose(state, np.ones(2), rng)
        assert log_ratio == -math.inf


class TestDistribution:
    def test_corrected_chains_have_the_target_at_large_step_sizes(self, rng):
        langevin, state = bound(NoisyGradients(noise=2.0), d=1, step_size=1.5)
        points, _, _ = chain(langevin, state, 60_000, rng)
        for power, expected in ((1, 0.0), (2, 1.0), (4, 3.0)):
            mean, error = mean_and_error(points[:, 0] ** power)
            assert abs(mean - expected) < 4 * error

    @pytest.mark.parametrize("h", [0.2, 1.0])
    def test_uncorrected_chains_have_the_variance_that_theory_gives_them(self, h, rng):
        """Of x' = (1 - h/2) x + (h/2) e + sqrt(h) xi, with e the error of the gradient."""
        noise = 1.5
        langevin, state = bound(NoisyGradients("none", noise), d=1, step_size=h)
        points, acceptance, _ = chain(langevin, state, 60_000, rng)
        variance = (1 + h * noise**2 / 4) / (1 - h / 4)
        mean, error = mean_and_error(points[:, 0] ** 2)
        assert acceptance == 1.0
        assert abs(mean - variance) < 4 * error


class TestStepSize:
    @pytest.mark.parametrize(("decisions", "aim"), _ACCEPTANCE.items())
    def test_is_tuned_to_the_usual_acceptance(self, decisions, aim, rng):
        langevin, state = bound(NoisyGradients(decisions), d=5)
        start = rng.standard_normal(5)
        _, acceptance, state = chain(langevin, state, 9_000, rng, tune=3_000, start=start)
        assert acceptance == pytest.approx(aim, abs=0.04)
        assert langevin.current_scaling(state) > 0.1  # it began at 1/1000 of what it was to be

    def test_usual_acceptance_makes_the_speed_largest(self):
        """Log-ratios of long chains are N(-s^2/2, s^2), and the step size goes as s^(2/3)."""

        def acceptance(rule, s):
            def density(z):
                return rule(-0.5 * s**2 + s * z) * math.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)

            return quad(density, -10, 10, points=[0.5 * s])[0]

        rules = {"metropolis": lambda z: math.exp(min(z, 0.0)), "barker": expit}
        for name, rule in rules.items():
            speed = minimize_scalar(
                lambda s, rule=rule: -(s ** (2 / 3)) * acceptance(rule, s), bounds=(0.1, 5)
            )
            assert _ACCEPTANCE[name] == pytest.approx(acceptance(rule, speed.x), abs=1e-3)

    def test_begins_in_units_of_the_preconditioner(self):
        approximation = GaussianApproximation(np.zeros(2), np.linalg.cholesky(MATRIX))
        usual = 1.65**2 / 2 ** (1 / 3)
        for settings, given, expected in (
            ({}, None, usual / N_ROWS),
            ({}, approximation, usual),
            ({"preconditioner": None}, approximation, usual / N_ROWS),
            ({"preconditioner": MATRIX}, None, usual),
            ({"step_size": 0.25}, approximation, 0.25),
        ):
            langevin, state = bound(approximation=given, **settings)
            assert langevin.current_scaling(state) == pytest.approx(expected)


class TestBadInput:
    def test_preconditioner_must_fit(self):
        with pytest.raises(SettingError, match=r"\(2, 2\).*3 entries"):
            bound(d=3, preconditioner=MATRIX)

    @pytest.mark.parametrize("root", [None, np.eye(2)])
    def test_gradients_must_come_from_a_step_method(self, root):
        approximation = None if root is None else GaussianApproximation(np.zeros(2), root)
        with pytest.raises(SettingError, match="by itself"):
            ProposalMixture(components=[LangevinProposal()]).init(
                Layout.continuous(2), approximation
            )
