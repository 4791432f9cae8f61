"""The example simulates the test faithfully, and what it designs is ordered as it should be."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from examples import design_of_tests as example
from examples.average_and_worst_case_designs import decisions, designs, shown
from examples.shared import mixed_signals, random_orders
from pymc_austerity.design import Boundary, TestDesign
from pymc_austerity.sequential import StudentTTest, exceeds
from tests.streams import survey_of


def test_the_simulation_is_the_test_of_the_package(rng):
    rows, n_orders, epsilon = example.populations(rng)["normal rows"], 40, example.EPSILONS[1]
    observed = example.simulate(rows, n_orders, np.random.default_rng(8))
    order, shuffles = rows.copy(), np.random.default_rng(8)
    wrong, used = np.zeros(example.MU_STD.size), np.zeros(example.MU_STD.size)
    for _ in range(n_orders):
        shuffles.shuffle(order)
        for j, mu_std in enumerate(example.MU_STD):
            survey = survey_of(order + mu_std / np.sqrt(rows.size - 1), example.BATCH_SIZE)
            decision = exceeds(survey, 0.0, rule=StudentTTest(epsilon))
            used[j] += decision.n_rows_used / rows.size
            wrong[j] += not decision.accept and not decision.exact
    np.testing.assert_allclose(observed.error[1], wrong / n_orders, atol=1e-12)
    np.testing.assert_allclose(observed.data_fraction[1], used / n_orders, rtol=1e-12)


def test_simulation_and_theory_agree_on_normal_rows_and_not_on_skewed_ones(rng):
    theory, gaps = example.expected(), {}
    for name, rows in example.populations(rng).items():
        gaps[name] = example.largest_gap(example.simulate(rows, 2_000, rng), theory, 2_000)
    assert gaps["normal rows"] < 3.5  # the largest of 32, many of them of the same orders
    assert gaps["skewed rows"] > 5.0


def test_stricter_promises_read_more_rows(rng, monkeypatch):
    monkeypatch.setattr(example, "TARGETS", (0.01, 0.05))
    monkeypatch.setattr(example, "BATCH_SIZES", (500, 1_000))
    acceptance, decision, worst = example.designs(example.trial_run(100, rng)).values()
    for loose, strict in ((acceptance, decision), (decision, worst)):
        for a, b in zip(loose, strict, strict=True):
            assert a.expected_data_fraction < b.expected_data_fraction
    for each in (acceptance, decision, worst):
        assert each[1].expected_data_fraction < each[0].expected_data_fraction


def test_pictures_and_tables(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "TARGETS", (0.1,))
    monkeypatch.setattr(example, "BATCH_SIZES", (1_000,))
    observed = {"normal rows": example.expected(), "skewed rows": example.expected()}
    found = example.designs(example.trial_run(50, rng))
    example.picture_of_errors(observed, 10, tmp_path / "errors.png")
    example.picture_of_designs(found, tmp_path / "designs.png")
    assert all((tmp_path / name).stat().st_size > 5_000 for name in ("errors.png", "designs.png"))
    assert "| 0.05 | 0 | 28.20% | 28.20% | 28.20% |" in example.table_of_errors(
        observed, example.expected(), 10
    )
    assert example.table_of_designs(found).count("| 10.0% |") >= 3


class TestRandomOrders:
    @pytest.mark.parametrize("alpha", [0.5, 0.2])
    def test_decisions_are_those_of_the_package(self, rng, alpha):
        rows, n_orders, boundary = rng.normal(0.01, 1.0, size=1_050), 30, Boundary(0.05, alpha)
        seen = random_orders.OrderedRows.draw(rows, 50, n_orders, np.random.default_rng(8)).every(2)
        limits = random_orders.quantiles(seen.counts, rows.size, boundary)
        accepted, at = random_orders.ask_test(seen.statistics(), limits, rows.mean())
        order, shuffles = rows.copy(), np.random.default_rng(8)
        for i in range(n_orders):
            shuffles.shuffle(order)
            survey = survey_of(order, 100)
            decision = exceeds(survey, 0.0, rule=StudentTTest(0.05, alpha=alpha))
            assert decision.accept == accepted[i]
            assert decision.n_looks == at[i] + 1


class TestMixedSignals:
    def test_log_likelihood_is_that_of_the_paper(self, rng):
        signals = rng.normal(size=(5, 4))
        weights = mixed_signals.rotate(np.eye(4), 1.0, rng)
        density = np.prod(1.0 / (4.0 * np.cosh(signals @ weights.T / 2.0) ** 2), axis=1)
        found = mixed_signals.log_likelihood(weights, signals)
        np.testing.assert_allclose(found, np.log(density), rtol=1e-12)


@pytest.fixture(scope="module")
def sets():
    """Decisions to design tests on, and others to ask them about."""
    return decisions.of_signals(4_000, 40, thin=3)


class TestAverageAndWorst:
    def test_questions_and_rows_belong_together(self, sets):
        training, test = sets
        assert len(training.rows) == len(test.rows) == training.trial.mean.size == 40
        np.testing.assert_allclose(training.trial.mean, [r.mean() for r in training.rows])

    def test_the_worst_case_design_errs_less_and_reads_more(self, sets, rng, monkeypatch):
        for module in (designs, shown):
            monkeypatch.setattr(module, "TARGETS", (0.03,))
        training, test = sets
        found = designs.measure(designs.designs(training.trial), test, 40, rng)
        (average,), (worst,) = found["average"], found["worst case"]
        assert worst.data_fraction > average.data_fraction
        assert worst.wrong < average.wrong
        assert abs(average.error - 0.03) < 0.03 + 4 * average.standard_error
        assert isinstance(average.design, TestDesign)
        text = shown.verdict({"signals": found})
        assert f"at most {worst.error / 0.03:.2f} times" in text
        assert shown.table({"signals": found}).count("| signals |") == 4
        figure = shown.picture({"one": found, "two": found})
        assert len(figure.axes) == 4
        plt.close(figure)
