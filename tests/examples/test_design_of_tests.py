"""The example simulates the test faithfully, and what it designs is ordered as it should be."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from pymc_austerity.sequential import StudentT, UniformSurvey, decide


def load_example():
    """The example is a script, not a part of the package."""
    path = Path(__file__).parents[2] / "examples" / "design_of_tests.py"
    spec = importlib.util.spec_from_file_location("design_of_tests", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


example = load_example()


class Stream:
    def __init__(self, values):
        self.values, self.n_read = values, 0

    def read(self, n_rows):
        self.n_read += n_rows
        yield self.values[self.n_read - n_rows : self.n_read]


def test_the_simulation_is_the_test_of_the_package(rng):
    rows, n_orders, epsilon = example.populations(rng)["normal rows"], 40, example.EPSILONS[1]
    observed = example.simulate(rows, n_orders, np.random.default_rng(8))
    order, shuffles = rows.copy(), np.random.default_rng(8)
    wrong, used = np.zeros(example.MU_STD.size), np.zeros(example.MU_STD.size)
    for _ in range(n_orders):
        shuffles.shuffle(order)
        for j, mu_std in enumerate(example.MU_STD):
            stream = Stream(order + mu_std / np.sqrt(rows.size - 1))
            survey = UniformSurvey(stream, n_rows=rows.size, batch_size=example.BATCH_SIZE)
            decision = decide(survey, 0.0, rule=StudentT(epsilon))
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
    pytest.importorskip("matplotlib").use("Agg")
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
