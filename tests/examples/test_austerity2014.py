"""The paper's experiments: their parts are right, and every one of them runs."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import ks_2samp

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from examples.austerity2014 import __main__ as command  # noqa: E402
from examples.austerity2014 import (  # noqa: E402
    intrusions_figure,
    marginals,
    random_walk,
    registry,
    report,
    risk,
    risk_figure,
    sgld_intrusions,
    sgld_pitfall,
)
from examples.austerity2014.experiment import Verdict  # noqa: E402
from examples.austerity2014.timed import Stopwatch, TimedRun  # noqa: E402
from examples.shared import datasets, digits  # noqa: E402


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
    np.savez(tmp_path / "kddcup99_10pct.npz", X_num=counts, label=attacks, label_names=names)
    return tmp_path


LONG = {"sgld_intrusions", "markov_field"}


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
        assert (output / f"{figure.name}.png").stat().st_size > 5_000
        verdict = figure.verdict(results)
        assert isinstance(verdict, Verdict)
        assert figure.claim in text and verdict.ours in text
        assert f"({'.'}/{figure.name}.png)" in text


def test_unknown_names_are_told(capsys):
    with pytest.raises(SystemExit):
        command.main(["no_such_experiment"])
    assert "no_such_experiment: not one of random_walk" in capsys.readouterr().err


class TestSite:
    SAVED = list(report.saved(command.RESULTS))

    def test_every_experiment_has_results(self):
        assert [e.name for e, _ in self.SAVED] == list(registry.NAMES)

    def test_readme_and_page_are_what_the_saved_results_say(self):
        pictures = "docs/_generated/austerity2014"
        assert command.README.read_text() == report.readme(command.RESULTS, f"../../{pictures}")
        page = report.page(command.RESULTS, "_generated/austerity2014")
        assert (command.SITE / "page.md").read_text() == page

    @pytest.mark.parametrize(("e", "results"), SAVED, ids=[e.name for e, _ in SAVED])
    def test_results_can_still_be_drawn(self, e, results):
        for figure in e.figures:
            assert (command.SITE / f"{figure.name}.png").is_file()
            assert figure.draw(results).axes
        plt.close("all")


class TestRisk:
    def test_is_the_squared_error_of_the_running_average(self, rng):
        draws, truth = rng.normal(size=(5_000, 2)), np.array([0.1, -0.2, 0.3])
        weights = rng.normal(size=(2, 3))
        counts = [1, 10, 4_500, 5_000]
        found = risk.squared_errors(draws, lambda x: np.tanh(x @ weights), truth, counts)
        values = np.tanh(draws @ weights)
        expected = [np.mean((values[:n].mean(axis=0) - truth) ** 2) for n in counts]
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_curve_has_the_time_and_the_rows_of_every_count(self):
        run = fake_run(n_chains=2, n_draws=100, seconds_per_draw=0.5, rows_per_draw=7)
        found = risk.curve(run, "beta", lambda x: x, np.zeros(3), n_points=5)
        assert found["rows"][-1] == 700.0 and found["seconds"][-1] == 50.0
        assert np.shape(found["risk"]) == (2, len(found["seconds"]))
        assert found["before"] == 3.0

    def test_falls_like_one_over_time_for_independent_draws(self):
        run = fake_run(n_chains=40, n_draws=2_000, seconds_per_draw=0.01, rows_per_draw=7)
        found = risk.curve(run, "beta", lambda x: x, np.zeros(3))
        mean = risk_figure.mean(found)
        seconds = np.array(found["seconds"])
        power = np.polyfit(np.log(seconds), np.log(mean), 1)[0]
        assert power == pytest.approx(-1.0, abs=0.15)


def fake_run(*, n_chains, n_draws, seconds_per_draw, rows_per_draw, shift=0.0):
    """Independent standard normal draws of three parameters."""

    def as_values(array):
        return SimpleNamespace(to_numpy=lambda: array)

    draws = np.random.default_rng(5).normal(shift, size=(n_chains, n_draws, 3))
    seconds = np.tile(seconds_per_draw * np.arange(1, n_draws + 1), (n_chains, 1))
    rows = np.full((n_chains, n_draws), rows_per_draw)
    idata = SimpleNamespace(
        posterior={"beta": as_values(draws)}, sample_stats={"n_rows_used": as_values(rows)}
    )
    return TimedRun(idata, seconds, before=3.0)


def test_stopwatch_counts_from_the_end_of_tuning(monkeypatch):
    clock = iter([0.0, 2.0, 10.0, 11.0, 12.0, 13.0])
    monkeypatch.setattr("time.process_time", lambda: next(clock))
    watch = Stopwatch()
    for tuning in (True, True, False, False, False, False):
        watch(None, SimpleNamespace(tuning=tuning, chain=0))
    assert watch.tuning_seconds == 2.0
    assert watch.seconds.tolist() == [[1.0, 2.0, 3.0, 4.0]]


class TestMarginals:
    def test_distances_are_in_posterior_standard_deviations(self, rng):
        true = rng.normal(size=(20_000, 3))
        settings = {"n_chains": 2, "n_draws": 4_000, "seconds_per_draw": 1.0, "rows_per_draw": 1}
        runs = {"epsilon = 0": fake_run(shift=0.5, **settings), "other": fake_run(**settings)}
        found = marginals.compare(runs, true)
        assert found["seconds"] == [200.0, 1_000.0, 4_000.0]
        assert np.mean(found["distance"]["epsilon = 0"][-1]) == pytest.approx(0.5, abs=0.05)
        assert np.mean(found["distance"]["other"][-1]) < 0.05

    def test_verdict_compares_all_three_times(self):
        closer, further = [[0.1, 0.1]] * 3, [[0.2, 0.2]] * 3
        distance = {"epsilon = 0": further, "epsilon = 0.1": closer, "defaults": closer}
        results = {"n_chains": 2, "before": 1.0, "seconds": [1.0, 2.0, 3.0], "distance": distance}
        assert marginals.EXPERIMENT.figures[0].verdict(results).agrees
        distance["epsilon = 0"] = [*further[:2], [0.05, 0.05]]
        agrees, ours = marginals.EXPERIMENT.figures[0].verdict(results)
        assert not agrees
        assert "Closer at 2 of the 3 times" in ours and "0.2, 0.2, 0.05 for the exact" in ours


class TestRandomWalk:
    @staticmethod
    def results(level, *, noise=0.05):
        """Risks that fall like 1/t, at some level relative to the exact sampler's."""

        def curve(level):
            seconds = np.array([1.0, 4.0, 16.0])
            risks = [(level * each / seconds).tolist() for each in (1.0 - noise, 1.0 + noise)]
            return {"seconds": seconds.tolist(), "risk": risks, "before": 1.0, "n_draws": 160}

        levels = {"epsilon = 0": 1.0, "epsilon = 0.1": level, "defaults": 0.01}
        spread = {"epsilon = 0": 1.0, "epsilon = 0.1": 1.3}
        curves = {name: curve(each) for name, each in levels.items()}
        return {"risk": curves, "steps_per_draw": 10, "spread": spread}

    def test_verdict_finds_the_lowest_risk(self):
        agrees, ours = risk_figure.verdict(self.results(0.25))
        assert agrees
        assert "is 4.00 ± 0.28 times the lowest (epsilon = 0.1), more than chance" in ours
        assert "t to the power 0: -1.0, 0.1: -1.0" in ours
        assert "0: 10,000, 0.1: 10,000 microseconds" in ours
        assert "over true ones are 0: 1.00, 0.1: 1.30" in ours

    def test_verdict_does_not_take_chance_for_an_effect(self):
        assert not risk_figure.verdict(self.results(2.0)).agrees
        agrees, ours = risk_figure.verdict(self.results(0.9, noise=0.3))
        assert not agrees and "not more than chance" in ours

    def test_spread_is_relative_to_the_truth(self, rng):
        run = fake_run(n_chains=3, n_draws=4_000, seconds_per_draw=1.0, rows_per_draw=1)
        found = random_walk.spread(run, rng.normal(scale=0.5, size=(4_000, 3)))
        assert found == pytest.approx(2.0, rel=0.05)

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
        batches = draws.reshape(20, -1).mean(axis=1)
        assert abs(draws.mean() - mean) < 4 * batches.std(ddof=1) / np.sqrt(20)


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

    def test_verdict_compares_with_exact_decisions(self):
        def sampler(distance):
            return {"total_variation": distance, "mean": 0.01, "shares": [0.0] * 70}

        names = ("uncorrected", "epsilon = 0.5", "exact")
        results = {"n_draws": 10, "mean": 0.01, "sd": 0.01, "truth": [0.0] * 70}
        for distances, agrees in (((0.33, 0.04, 0.02), True), ((0.33, 0.2, 0.02), False)):
            results["samplers"] = dict(zip(names, map(sampler, distances), strict=True))
            assert sgld_pitfall.verdict(results).agrees is agrees

    def test_without_a_test_the_draws_lie_too_far_to_the_right(self, line):
        _, mean, sd = sgld_pitfall.posterior(line)
        draws = sgld_pitfall.sample(line, 4_000, test=None)
        assert draws.mean() > mean + 0.5 * sd

    def test_exact_decisions_give_the_posterior(self, line, rng):
        draws = sgld_pitfall.sample(line, 6_000, epsilon=0.0)[::20]
        theta = np.linspace(-0.01, 0.06, 20_001)
        weights = np.exp(line.log_density(theta) - line.log_density(theta).max())
        exact = rng.choice(theta, size=20_000, p=weights / weights.sum())
        assert ks_2samp(draws, exact).pvalue > 1e-3
        bins, mean, sd = sgld_pitfall.posterior(line)
        assert bins.sum() == pytest.approx(1.0, abs=1e-4)
        assert exact.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(exact.size))
        assert exact.std() == pytest.approx(sd, rel=0.03)


class TestIntrusions:
    SIZES = {"n_rows": 300, "gradient_rows": 50, "n_coefficients": 8}
    NOISE = 5**0.5

    @pytest.mark.parametrize("size", [0.05, 0.5])
    def test_spread_without_correction_is_that_of_a_simulation(self, size, rng):
        theta = np.zeros(100_000)
        for _ in range(int(8 / size)):
            e = self.NOISE * rng.standard_normal(theta.size)
            theta += 0.5 * size * (e - theta) + np.sqrt(size) * rng.standard_normal(theta.size)
        spread, _ = intrusions_figure.in_theory(size, self.SIZES)
        assert theta.std() == pytest.approx(spread, rel=0.01)

    @pytest.mark.parametrize("size", [0.002, 0.02])
    def test_acceptance_is_that_of_a_simulation(self, size, rng):
        theta, e = rng.standard_normal((2, 100_000, 8))
        ahead = theta + 0.5 * size * (self.NOISE * e - theta)
        new = ahead + np.sqrt(size) * rng.standard_normal(theta.shape)
        back = new + 0.5 * size * (self.NOISE * e - new)
        log_ratio = 0.5 * (theta**2 - new**2 + ((new - ahead) ** 2 - (theta - back) ** 2) / size)
        found = np.exp(np.minimum(log_ratio.sum(axis=1), 0.0)).mean()
        _, acceptance = intrusions_figure.in_theory(size, self.SIZES)
        assert found == pytest.approx(acceptance, rel=0.05)

    def test_connections_are_standardized(self, data):
        design, attack = sgld_intrusions.connections(datasets.load("kddcup99_10pct", data))
        assert design.shape == (12_000, 6) and (design[:, 0] == 1.0).all()
        np.testing.assert_allclose(design[:, 1:].mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(design[:, 1:].std(axis=0), 1.0)
        assert 0.1 < attack.mean() < 0.9

    def test_symbolic_features_of_a_download_are_left_out(self):
        table = np.array([[0, b"tcp", b"http", b"SF", 181], [1, b"udp", b"x", b"SF", 5]], object)
        found = datasets.numerical_features(table, np.array([b"normal.", b"back."], object))
        assert found["X_num"].tolist() == [[0, 181], [1, 5]]
        assert [found["label_names"][code] for code in found["label"]] == ["normal", "back"]

    def test_distance_is_in_posterior_standard_deviations(self, rng):
        true = rng.normal(scale=[1.0, 10.0], size=(20_000, 2))
        shifted = rng.normal([0.5, 5.0], scale=[1.0, 10.0], size=(20_000, 2))
        assert sgld_intrusions.distance(shifted, true) == pytest.approx(0.5, abs=0.06)
        assert sgld_intrusions.distance(true[1::2], true) < 0.1

    @pytest.mark.parametrize(
        ("distances", "agrees"), [((0.5, 0.9, 0.1), True), ((0.5, 0.9, 1.0), False)]
    )
    def test_verdict_wants_the_test_to_be_closest(self, distances, agrees):
        def found(distance, spread=1.2):
            numbers = {"acceptance": 0.5, "n_steps": 1_000, "before": 3.0, "seconds": [20.0]}
            return {"distance": [[distance]], "spread": spread} | numbers

        samplers = dict(zip(sgld_intrusions.SAMPLERS, map(found, distances), strict=True))
        results = {"samplers": {"0.001": samplers, "0.01": samplers}, "ours": found(0.05)}
        sizes = {"n_rows": 10_000, "gradient_rows": 500, "n_coefficients": 8}
        verdict, ours = intrusions_figure.verdict(results | sizes)
        assert verdict is agrees
        assert f"epsilon = 0.05 {distances[2]:.2g} (spread 1.20, acceptance 0.5" in ours


def test_the_command_stands_on_its_own(tmp_path):
    command_line = [sys.executable, "-m", "examples.austerity2014", "--report", "--output"]
    run = subprocess.run(
        [*command_line, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "README.md").read_text().startswith("# Austerity in MCMC Land, run again")
