"""The paper's experiments: their parts are right, and every one of them runs."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
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
    papers_chains,
    random_walk,
    registry,
    report,
    risk,
    risk_figure,
    sgld_intrusions,
    sgld_pitfall,
)
from examples.austerity2014.budgets import Budget, epsilon_of, label  # noqa: E402
from examples.austerity2014.experiment import Verdict  # noqa: E402
from examples.austerity2014.parts import Parts  # noqa: E402
from examples.austerity2014.timed import Stopwatch, TimedRun, sample_chain  # noqa: E402
from examples.shared import datasets, digits  # noqa: E402
from pymc_austerity import AusterityMH  # noqa: E402
from pymc_austerity.proposals import RandomWalkProposal  # noqa: E402


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
        tmp_path / "kddcup99_10pct.npz",
        X_num=counts,
        X_cat=kinds,
        label=attacks,
        label_names=names,
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

    def test_an_error_leaves_what_was_finished(self, tmp_path):
        parts = Parts(tmp_path / "some.parts", 1)
        parts("a", lambda: 1)
        with pytest.raises(ZeroDivisionError):
            parts("b", lambda: 1 / 0)
        assert Parts(tmp_path / "some.parts", 1)("a", lambda: 2) == 1

    def test_an_experiment_with_results_is_left(self, tmp_path, monkeypatch):
        runs = []

        def run(e, options, parts):
            runs.append(e.name)
            return json.loads((command.RESULTS / f"{e.name}.json").read_text())

        monkeypatch.setattr(command, "run", run)
        monkeypatch.setattr(command, "draw", lambda *_: None)
        for more in ([], [], ["--again"]):
            command.main(["variable_selection", "--output", str(tmp_path), *more])
        assert runs == ["variable_selection"] * 2


class TestBudget:
    def test_all_samplers_get_the_same_share(self):
        budget = Budget(400.0, {label(0.0): 1_000, label(0.2): 5_000})
        assert budget.steps_at(0.1) == {"epsilon = 0": 100, "epsilon = 0.2": 500}
        assert [epsilon_of(name) for name in budget.steps] == [0.0, 0.2]

    def test_chains_have_their_own_numbers_of_steps_and_starts(self, tmp_path):
        with pm.Model():
            beta = pm.Normal("beta", shape=2)
            pm.Normal("y", beta.sum(), 1.0, observed=np.zeros(300))

            def make():
                walk = RandomWalkProposal(covariance=np.full(2, 1e-4), scaling=1.0)
                settings = {"control_variates": None, "tune": False, "steps_per_draw": 2}
                return AusterityMH(epsilon=0.1, proposal=walk, **settings)

            found = papers_chains.papers_chains(
                Parts(tmp_path / "some.parts", 1),
                {"a": make, "b": make},
                [{"beta": np.full(2, 3.0)}, {"beta": np.full(2, -3.0)}],
                {"a": 8, "b": 20},
                lambda run: {"beta": run.draws("beta")[0].tolist(), "per": run.steps_per_draw},
            )
        assert [[len(c["beta"]) for c in chains] for chains in found.values()] == [[4, 4], [10, 10]]
        assert found["a"][0]["per"] == 2
        first = np.array([chain["beta"][0] for chain in found["a"]])
        np.testing.assert_allclose(first, [[3.0, 3.0], [-3.0, -3.0]], atol=0.15)


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
        assert found["steps"][-1] == 1_000 and found["before"] == 3.0

    def test_chains_are_put_together(self):
        both = fake_run(n_chains=2, n_draws=50, seconds_per_draw=0.5, rows_per_draw=7)
        whole = risk.curve(both, "beta", lambda x: x, np.zeros(3))
        assert risk.together([whole]) == whole
        assert len(risk.together([whole, whole])["risk"]) == 4

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
    statistics = Statistics(n_rows_used=as_values(rows))
    idata = SimpleNamespace(posterior={"beta": as_values(draws)}, sample_stats=statistics)
    return TimedRun(idata, seconds, before=3.0)


class Statistics(dict):
    """With the attributes of a run."""

    attrs = {"steps_per_draw": 10}


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
        truth = marginals.facts(rng.normal(size=(20_000, 3)))
        settings = {"n_chains": 1, "n_draws": 4_000, "seconds_per_draw": 1.0, "rows_per_draw": 1}
        shifted = marginals.describe(fake_run(shift=0.5, **settings), truth)
        right = marginals.describe(fake_run(**settings), truth)
        assert len(shifted) == len(marginals.SHARES)
        assert shifted[-1]["distance"] == pytest.approx(0.5, abs=0.05)
        assert right[-1]["distance"] < 0.05
        width = np.diff(truth[0]["edges"])
        assert right[-1]["density"][0] @ width == pytest.approx(1.0, abs=1e-3)

    def test_verdict_compares_all_three_times(self):
        closer, further = [[0.1, 0.1]] * 3, [[0.2, 0.2]] * 3
        distance = {"epsilon = 0": further, "epsilon = 0.01": closer, "defaults": closer}
        results = {"marginals": {"seconds": [1.0, 2.0, 3.0], "distance": distance}}
        assert marginals.verdict(results).agrees
        distance["epsilon = 0"] = [*further[:2], [0.05, 0.05]]
        agrees, ours, numbers = marginals.verdict(results)
        assert not agrees
        assert "closer to the truth at 2 of 3 times" in ours
        assert numbers.header == ("epsilon", "0 (exact)", "0.01", "defaults")
        assert numbers.rows[2] == ("after 3 seconds", "0.05", "0.1", "0.1")


class TestRandomWalk:
    @staticmethod
    def results(level, *, noise=0.05):
        """Risks that fall like 1/t, at some level relative to the exact sampler's."""

        def curve(level, n_steps):
            seconds = np.array([1.0, 4.0, 16.0])
            risks = [(level * each / seconds).tolist() for each in (1.0 - noise, 1.0 + noise)]
            steps = (seconds / 16.0 * n_steps).astype(int).tolist()
            return {"seconds": seconds.tolist(), "risk": risks, "before": 1.0, "steps": steps}

        levels = {"epsilon = 0": (1.0, 1_600), "epsilon = 0.1": (level, 3_200)}
        curves = {name: curve(*each) for name, each in levels.items()}
        budget = {"seconds": 400.0, "ratio": 0.1}
        budget["steps"] = {"epsilon = 0": 16_000, "epsilon = 0.1": 32_000}
        return {"risk": curves | {"defaults": curve(0.01, 100)}, "budget": budget}

    def test_verdict_finds_the_lowest_risk(self):
        agrees, ours, numbers = risk_figure.verdict(self.results(0.25))
        assert agrees
        assert "epsilon = 0.1 has the lowest risk" in ours
        assert "is 4 times as large (a difference of 14.6 standard errors)" in ours
        rows = {quantity: values for quantity, *values in numbers.rows}
        assert rows["slope at the end"] == ["-1.0", "-1.0", "–"]
        assert rows["microseconds per step"] == ["10,000", "5,000", "160,000"]
        assert rows["steps"] == ["1,600", "3,200", "100"]
        assert rows["processor time, seconds"] == ["17", "17", "17"]
        assert "0.1 times the papers' steps, which took the papers 40 seconds" in numbers.caption

    def test_what_was_not_recorded_has_no_number(self):
        results = self.results(0.25)
        for curve in results["risk"].values():  # as if the first quarter had no record
            for name in ("steps", "seconds"):
                curve[name] = curve[name][1:]
            curve["risk"] = [risks[1:] for risks in curve["risk"]]
        rows = {quantity: values for quantity, *values in risk_figure.numbers(results).rows}
        assert rows["risk at an eighth of the steps"] == ["–"] * 3
        assert rows["slope at the end"] == ["-1.0", "-1.0", "–"]

    def test_verdict_does_not_take_chance_for_an_effect(self):
        assert not risk_figure.verdict(self.results(2.0)).agrees
        agrees, ours, _ = risk_figure.verdict(self.results(0.9, noise=0.3))
        assert not agrees and "a difference of 0.2 standard errors, which may be chance" in ours

    def test_time_is_that_in_which_the_papers_made_as_many_steps(self):
        results = self.results(1.0)
        for name in risk_figure.papers(results):
            np.testing.assert_allclose(risk_figure.papers_seconds(results, name), [2.5, 10, 40])

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

        names = ("uncorrected", "epsilon = 0.5", "exact", "defaults")
        results = {"n_draws": 10, "mean": 0.01, "sd": 0.01, "truth": [0.0] * 70}
        for distances, agrees in (
            ((0.33, 0.04, 0.02, 0.01), True),
            ((0.33, 0.2, 0.02, 0.01), False),
        ):
            results["samplers"] = dict(zip(names, map(sampler, distances), strict=True))
            found = sgld_pitfall.verdict(results)
            assert found.agrees is agrees
            assert found.numbers.header[1:] == ("uncorrected", "0.5", "0 (exact)", "defaults")
            assert found.numbers.rows[0][1:] == tuple(f"{each:.3f}" for each in distances)

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

    def test_connections_are_standardized(self, data):
        arrays = datasets.load("kddcup99_10pct", data)
        arrays["X_num"][:, 4] = 7.0
        design, attack = sgld_intrusions.connections(arrays)
        assert design.shape == (12_000, 8) and (design[:, 4] == 0.0).all()
        np.testing.assert_allclose(design.mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(np.delete(design, 4, axis=1).std(axis=0), 1.0)
        assert 0.1 < attack.mean() < 0.9

    def test_symbolic_features_of_a_download_are_numbered(self):
        table = np.array([[0, b"udp", b"http", b"SF", 181], [1, b"tcp", b"x", b"SF", 5]], object)
        found = datasets.coded_features(table, np.array([b"normal.", b"back."], object))
        assert found["X_num"].tolist() == [[0, 181], [1, 5]]
        assert found["X_cat"].tolist() == [[1, 0, 0], [0, 1, 0]]
        assert [found["label_names"][code] for code in found["label"]] == ["normal", "back"]

    def test_errors_are_those_of_variances(self, rng):
        draws = rng.normal(scale=[1.0, 10.0], size=(200_000, 2))
        relative, absolute = sgld_intrusions.errors(draws, np.array([2.0, 100.0]))
        assert relative == pytest.approx(0.25, abs=0.02)
        assert absolute == pytest.approx(1.0 / 102.0, abs=0.01)

    @pytest.mark.parametrize(
        ("errors", "spread", "agrees"),
        [
            ((0.5, 0.9, 0.1), 0.02, True),
            ((0.5, 0.9, 0.6), 0.02, False),
            ((0.5, 0.9, 0.1), 0.4, False),
        ],
    )
    def test_verdict_wants_the_test_to_be_closest(self, errors, spread, agrees):
        def found(error):
            curve = {"absolute": [1.0, 0.3], "seconds": [1.0, 20.0], "steps": [10, 1_000]}
            ends = (error - spread, error + spread)
            curves = [{**curve, "acceptance": 0.5, "before": 3.0} for _ in ends]
            return [{**c, "relative": [1.0, end]} for c, end in zip(curves, ends, strict=True)]

        names = ("uncorrected", "epsilon = 0", "epsilon = 0.05")
        samplers = dict(zip(names, map(found, errors), strict=True))
        results = {
            "samplers": {"0.001": found_all(found), "0.01": samplers},
            "ratios": {"0.001": 0.1, "0.01": 0.5},
            "in_theory": {"0.001": 0.2, "0.01": 0.6},
            "defaults": found(0.05),
            "concentration": 0.5,
            "truth": {"error": 0.01},
        }
        verdict, ours, numbers = intrusions_figure.verdict(results)
        assert verdict is agrees
        assert f"{errors[2]:.2g} with the best test (epsilon = 0.05)" in ours
        end = f"{errors[2]:.2g}"
        row = ("0.01", "0.05", "1,000", "2.5", "0.5", end, end, "0.3", "23")
        assert row in numbers.rows
        assert all(len(each) == len(numbers.header) for each in numbers.rows)


def found_all(found):
    """All samplers of a step size with the same error."""
    return {name: found(0.7) for name in ("uncorrected", "epsilon = 0", "epsilon = 0.05")}


def test_the_command_stands_on_its_own(tmp_path):
    command_line = [sys.executable, "-m", "examples.austerity2014", "--report", "--output"]
    run = subprocess.run(
        [*command_line, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "README.md").read_text().startswith("# Austerity in MCMC Land, run again")
