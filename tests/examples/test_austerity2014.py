"""The paper's experiments: their parts are right, and every one of them runs."""

import json
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import ks_2samp

from examples.austerity2014 import __main__ as command
from examples.austerity2014 import (
    marginals,
    random_walk,
    registry,
    report,
    risk,
    sgld_intrusions,
    sgld_pitfall,
)
from examples.austerity2014.budgets import label
from examples.austerity2014.experiment import Verdict
from examples.austerity2014.parts import Parts
from examples.austerity2014.timed import TimedRun, sample_chain
from examples.shared import datasets, digits
from tests.references import mean_and_error


@pytest.fixture
def data(tmp_path, rng):
    """A folder with data sets that are smaller than the real ones."""
    labels = rng.integers(0, 2, size=1_300).astype("uint8")
    pixels = rng.integers(0, 200, size=(1_300, 60)) + 20 * labels[:, None] * (np.arange(60) < 5)
    images = pixels.astype("uint8")
    arrays = {"X_train": images[:1_200], "y_train": labels[:1_200]}
    np.savez(tmp_path / "mnist_7v9.npz", X_test=images[1_200:], y_test=labels[1_200:], **arrays)
    x = rng.normal(size=(1_300, 5))
    y = (rng.random(1_300) < expit(x[:, 0] - 0.5 * x[:, 1])).astype("uint8")
    np.savez(
        tmp_path / "ijcnn1.npz",
        X_train=x[:1_200],
        y_train=y[:1_200],
        X_test=x[1_200:],
        y_test=y[1_200:],
    )
    counts = rng.poisson(np.exp(rng.normal(size=(12_000, 5)))).astype("float32")
    attacks = (counts[:, 0] + rng.normal(size=12_000) > 1.5).astype("uint8")
    names = np.array(["normal", "smurf"])
    kinds = rng.integers(0, 3, size=(12_000, 3)).astype("uint8")
    np.savez(
        tmp_path / "kddcup99_10pct.npz", X_num=counts, X_cat=kinds, label=attacks, label_names=names
    )
    return tmp_path


LONG = {"sgld_intrusions", "markov_field", "random_walk", "ica", "shrinking_epsilon"}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.exhaustive] if name in LONG else [])
        for name in registry.NAMES
    ],
)
def test_every_experiment_runs(name, data, tmp_path, monkeypatch):
    output = tmp_path / "output"
    command.main([name, "--quick", "--data", str(data), "--output", str(output)])
    e = registry.experiment(name)
    results = json.loads((output / f"{name}.json").read_text())
    assert e.name == name
    assert results["made"]["seconds"] > 0.0
    text = (output / "README.md").read_text()
    for figure in e.figures:
        for picture in (figure.name, f"{figure.name}_defaults"):
            assert (output / f"{picture}.png").stat().st_size > 5_000
            assert f"({'.'}/{picture}.png)" in text
        verdict = figure.verdict(results)
        assert isinstance(verdict, Verdict)
        assert figure.claim in text and verdict.ours in text
        assert verdict.numbers.caption in text
        widths = {len(row) for row in verdict.numbers.rows}
        assert widths == {len(verdict.numbers.header)}


class TestSite:
    SAVED = list(report.saved(command.RESULTS))

    def test_every_experiment_has_results(self):
        assert [e.name for e, _ in self.SAVED] == list(registry.NAMES)

    def test_readme_and_page_are_what_the_saved_results_say(self):
        pictures = "docs/_generated/austerity2014"
        assert command.README.read_text() == report.readme(command.RESULTS, f"../../{pictures}")
        page = report.page(command.RESULTS, "_generated/austerity2014")
        assert (command.SITE / "page.md").read_text() == page

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(("e", "results"), SAVED, ids=[e.name for e, _ in SAVED])
    def test_results_can_still_be_drawn(self, e, results):
        for figure in e.figures:
            for picture in (figure.name, f"{figure.name}_defaults"):
                assert (command.SITE / f"{picture}.png").is_file()
            assert figure.draw(results).axes and figure.beside(results).axes
        plt.close("all")


class TestParts:
    def test_what_is_finished_is_not_run_again(self, tmp_path):
        parts, made = Parts(tmp_path / "some.parts", 1), []

        def make(name):
            made.append(name)
            return {"draws": [parts.rng(name).random(), parts.seed(name)]}

        first = {name: parts(name, lambda name=name: make(name)) for name in "ab"}
        first["a"].clear()  # what is given away is a copy
        again = Parts(tmp_path / "some.parts", 1)
        found = {name: again(name, lambda name=name: make(name)) for name in "abc"}
        assert made == ["a", "b", "c"]
        assert found["b"] == first["b"] and found["a"] != found["b"]
        assert again.seconds >= 0.0
        again.remove()
        assert not list(tmp_path.iterdir())


class TestRisk:
    def test_is_the_squared_error_of_the_running_average(self, rng):
        draws, truth = rng.normal(size=(5_000, 2)), np.array([0.1, -0.2, 0.3])
        weights = rng.normal(size=(2, 3))
        counts = [1, 10, 4_500, 5_000]
        found = risk.squared_errors(draws, lambda x: np.tanh(x @ weights), truth, counts)
        values = np.tanh(draws @ weights)
        expected = [np.mean((values[:n].mean(axis=0) - truth) ** 2) for n in counts]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def fake_run(*, n_chains, n_draws, seconds_per_draw, rows_per_draw, shift=0.0):
    """Independent standard normal draws of three parameters."""

    def as_values(array):
        return SimpleNamespace(to_numpy=lambda: array)

    draws = np.random.default_rng(5).normal(shift, size=(n_chains, n_draws, 3))
    seconds = np.tile(seconds_per_draw * np.arange(1, n_draws + 1), (n_chains, 1))
    rows = np.full((n_chains, n_draws), rows_per_draw)
    statistics = Statistics(n_rows_used=as_values(rows))
    idata = SimpleNamespace(posterior={"beta": as_values(draws)}, sample_stats=statistics)
    return TimedRun(idata, seconds, before=3.0)


class Statistics(dict):
    """With the attributes of a run."""

    attrs = {"steps_per_draw": 10}


class TestMarginals:
    def test_distances_are_in_posterior_standard_deviations(self, rng):
        truth = marginals.facts(rng.normal(size=(20_000, 3)))
        settings = {"n_chains": 1, "n_draws": 4_000, "seconds_per_draw": 1.0, "rows_per_draw": 1}
        shifted = marginals.describe(fake_run(shift=0.5, **settings), truth)
        right = marginals.describe(fake_run(**settings), truth)
        assert len(shifted) == len(marginals.SHARES)
        assert shifted[-1]["distance"] == pytest.approx(0.5, abs=0.05)
        assert right[-1]["distance"] < 0.05
        width = np.diff(truth[0]["edges"])
        assert right[-1]["density"][0] @ width == pytest.approx(1.0, abs=1e-3)


class TestRandomWalk:
    def test_chains_start_at_zero(self, data):
        few = digits.Digits.of(datasets.load("mnist_7v9", data), 3)
        mode, _ = digits.posterior_mode(few.design, few.labels)
        with digits.logistic_regression(few.design, few.labels):
            step = random_walk.papers_step(few, label(0.1), mode)
            run = sample_chain(5, step, {"beta": np.zeros(4)}, seed=1)
        farthest = 10 * 6 * digits.PROPOSAL_SD  # ten steps
        assert np.abs(run.draws("beta")[0, 0]).max() < farthest < np.abs(mode).max()

    def test_the_truth_is_the_posterior(self, rng):
        """One coefficient, against quadrature."""
        x = np.ones((400, 1))
        y = (rng.random(400) < 0.7).astype("uint8")
        with digits.logistic_regression(x, y):
            draws = random_walk.exact_run(digits.Digits(x, y, x, y), 4_000)[:, 0]

        def density(beta):
            p = expit(beta)
            return p ** y.sum() * (1 - p) ** (400 - y.sum()) * np.exp(-5.0 * beta**2) * 1e110

        total = quad(density, 0.2, 1.4)[0]
        mean = quad(lambda b: b * density(b), 0.2, 1.4)[0] / total
        found, error = mean_and_error(draws)
        assert abs(found - mean) < 4 * error


class TestPitfall:
    @pytest.fixture
    def line(self, rng):
        return sgld_pitfall.Line.draw(rng)

    def test_density_and_gradient_are_those_of_the_model(self, line):
        logp, at = line.model().compile_logp(), [0.004, 0.011]
        log_density = [float(logp({"theta": np.array(t)})) for t in at]
        expected = np.diff(line.log_density(np.array(at)))
        np.testing.assert_allclose(np.diff(log_density), expected, rtol=1e-8)
        numeric = (line.log_density(0.01 + 1e-7) - line.log_density(0.01 - 1e-7)) / 2e-7
        assert line.gradient(0.01) == pytest.approx(numeric, rel=1e-4)
        assert line.gradient(sgld_pitfall.mode(line)) == pytest.approx(0.0, abs=1e-6)

    def test_without_a_test_the_draws_lie_too_far_to_the_right(self, line):
        _, mean, sd = sgld_pitfall.posterior(line)
        draws = sgld_pitfall.sample(line, 4_000, **sgld_pitfall.papers_settings(test=None))
        assert draws.mean() > mean + 0.5 * sd

    @pytest.mark.exhaustive
    def test_exact_decisions_give_the_posterior(self, line, rng):
        settings = sgld_pitfall.papers_settings(epsilon=0.0)
        draws = sgld_pitfall.sample(line, 6_000, **settings)[::20]
        theta = np.linspace(-0.01, 0.06, 20_001)
        weights = np.exp(line.log_density(theta) - line.log_density(theta).max())
        exact = rng.choice(theta, size=20_000, p=weights / weights.sum())
        assert ks_2samp(draws, exact).pvalue > 1e-3
        bins, mean, sd = sgld_pitfall.posterior(line)
        assert bins.sum() == pytest.approx(1.0, abs=1e-4)
        assert exact.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(exact.size))
        assert exact.std() == pytest.approx(sd, rel=0.03)


class TestIntrusions:
    def test_widening_is_that_of_a_simulation(self, rng):
        """Two correlated coefficients; the noise of the gradients is in one direction."""
        covariance = np.array([[2.0, 0.8], [0.8, 1.0]])
        size, n_rows = 0.2, 20 * sgld_intrusions.BATCH_SIZE
        noise = np.outer([1.0, -0.5], [1.0, -0.5])
        x, root = np.zeros((2, 100_000)), np.linalg.cholesky(covariance)
        for _ in range(100):
            e = 19**0.5 * np.outer([1.0, -0.5], rng.standard_normal(x.shape[1]))
            x = x + 0.5 * size * (covariance @ e - x)
            x += size**0.5 * root @ rng.standard_normal(x.shape)
        found = sgld_intrusions.widening(noise, covariance, size, n_rows)
        assert found.max() > 1.3
        np.testing.assert_allclose(x.var(axis=1) / np.diag(covariance), found, rtol=0.02)

    def test_noise_of_rows_is_a_sum_over_them(self, rng):
        design, labels = rng.normal(size=(300, 2)), rng.integers(0, 2, size=300)
        design[:10] *= 30.0
        mode, information = digits.posterior_mode(design, labels)
        noise, share = sgld_intrusions.row_noise(design, labels, mode)
        total, traces, inverse = np.zeros((2, 2)), [], np.linalg.inv(information)
        for x, y in zip(design, labels, strict=True):
            gradient = x * (y - expit(x @ mode))
            total += np.outer(gradient, gradient)
            traces.append(gradient @ inverse @ gradient)
        np.testing.assert_allclose(noise, total)
        assert share == pytest.approx(sum(sorted(traces)[-10:]) / sum(traces))
