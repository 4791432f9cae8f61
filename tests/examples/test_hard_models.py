import math

import numpy as np
import pytest
from scipy import stats

from examples.hard_models import cell, tables
from examples.hard_models.__main__ import RESULTS
from examples.hard_models.horseshoe import horseshoe_moments
from examples.hard_models.moments import Moments, gaussian, quadrature
from examples.hard_models.references import read
from examples.hard_models.registry import HARD_MODELS
from examples.hard_models.verdicts import Found, Record, errors_of, verdict_of

REFERENCE = {"a": Moments(1.0, 2.0)}


def record(mean=1.0, sd=2.0, mean_error=0.0, sd_error=0.0, r_hat=1.0, **words):
    return Record({"a": Found(Moments(mean, sd, mean_error, sd_error), r_hat, 1e3)}, **words)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("run", "verdict"),
        [
            (record(), "right"),
            (record(said=["a warning that was not needed"]), "right"),
            (record(mean=1.19), "right"),
            (record(mean=1.21), "WRONG"),
            (record(sd=2.19), "right"),
            (record(sd=1.79), "WRONG"),
            (record(sd=math.nan), "WRONG"),
            (record(r_hat=1.04), "right"),
            (record(r_hat=1.7), "WRONG"),
            (record(mean=9.0, said=["we are sorry"]), "warned"),
            (record(mean=9.0, foreign=["overflow"]), "WRONG"),
            (record(foreign=["overflow"]), "foreign"),
            (Record(error="DataError: no", refused=True), "refused"),
            (Record(error="LinAlgError: no"), "foreign"),
        ],
    )
    def test_each(self, run, verdict):
        assert verdict_of(run, REFERENCE) == verdict

    def test_without_a_posterior_no_answer_is_right(self):
        assert verdict_of(record(), None) == "WRONG"
        assert verdict_of(record(said=["there is no posterior"]), None) == "warned"

    def test_a_correct_run_is_seldom_wrong(self, rng):
        """400 independent draws of a normal distribution, against bounds without the 0.1."""
        draws = rng.normal(1.0, 2.0, size=(2_000, 400))
        wrong = 0
        for values in draws:
            errors = (2.0 / 20.0, 2.0 / math.sqrt(800.0))
            found = {"a": Found(Moments(values.mean(), values.std(ddof=1), *errors), 1.0, 400.0)}
            (each,) = errors_of(found, REFERENCE).values()
            wrong += abs(each.mean) > each.mean_bound - 0.1
            wrong += abs(each.spread) > each.spread_bound - 0.1
        assert wrong <= stats.binom.isf(1e-4, 2_000, 0.001)


class TestReferences:
    def test_quadrature_of_two_dimensions(self):
        found = quadrature(
            lambda x, y: (-0.5 * ((x - 5.0) / 1e-3) ** 2 - y)[:, 0],
            {"x": (-100.0, 100.0), "y": (0.0, 1e3)},
        )
        assert found["x"].mean == pytest.approx(5.0) and found["x"].sd == pytest.approx(1e-3)
        assert found["y"].mean == pytest.approx(1.0, rel=2e-2)
        assert found["y"].sd == pytest.approx(1.0, rel=2e-2)

    def test_gaussian(self, rng):
        x = rng.normal(size=(50, 1))
        y = x[:, 0] + rng.normal(size=50)

        def log_density(b):
            return -0.5 * ((y - b * x[:, 0]) ** 2).sum(axis=1) - 0.5 * b[:, 0] ** 2 / 4.0

        expected = quadrature(log_density, {"b[0]": (-3.0, 3.0)})["b[0]"]
        found = gaussian("b", x, y, prior_sd=2.0)["b[0]"]
        np.testing.assert_allclose([found.mean, found.sd], [expected.mean, expected.sd], rtol=1e-3)

    def test_horseshoe(self, rng):
        """One coefficient, against quadrature over it and the product of the two scales."""
        x = rng.normal(size=(20, 1))
        y = 0.4 * x[:, 0] + rng.normal(size=20)
        grid = np.linspace(-15.0, 15.0, 1_201)
        log_1, log_2 = grid[:, None], grid[None, :]
        # both logs of half-Cauchy variables have density exp(t) / (1 + exp(2 t))
        log_prior = log_1 + log_2 - np.logaddexp(0, 2 * log_1) - np.logaddexp(0, 2 * log_2)
        spread = np.exp(log_1 + log_2)
        square, cross = x[:, 0] @ x[:, 0], x[:, 0] @ y
        precision = square + spread**-2.0
        log_weight = log_prior - np.log(spread * np.sqrt(precision)) + cross**2 / precision / 2.0
        weight = np.exp(log_weight - log_weight.max())
        mean = (weight * cross / precision).sum() / weight.sum()
        second = (weight * (1 / precision + (cross / precision) ** 2)).sum() / weight.sum()
        found = horseshoe_moments(x, y, n_draws=20_000)["beta[0]"]
        assert abs(found.mean - mean) < 4.0 * found.mean_error < 0.1
        assert abs(found.sd - math.sqrt(second - mean**2)) < 4.0 * found.sd_error < 0.1

    QUICK = ("square", "tiny_responses", "change_point", "posterior_at_a_bound", "unscaled_columns")

    @pytest.mark.parametrize("name", QUICK)
    def test_those_in_the_repository_are_found_again(self, name):
        found = HARD_MODELS[name].answer()
        kept = read(RESULTS / "references" / f"{name}.json")
        assert found.keys() == kept.keys()
        for key, moments in kept.items():
            numbers = [found[key].mean, found[key].sd]
            np.testing.assert_allclose(numbers, [moments.mean, moments.sd], 1e-6, 1e-9)


class TestModels:
    def test_there_are_enough(self):
        assert len(HARD_MODELS) >= 30

    @pytest.mark.parametrize("name", HARD_MODELS)
    def test_each_has_a_right_answer_about_its_variables(self, name):
        each = HARD_MODELS[name]
        right = read(RESULTS / "references" / f"{name}.json")
        assert (right is None) == (each.answer is None)
        variables = {variable.name for variable in each.build().free_RVs}
        assert {key.partition("[")[0] for key in right or {}} <= variables


class TestRuns:
    def test_a_run_is_kept_and_shown(self, tmp_path):
        two = HARD_MODELS["two_rows"]
        done = cell.run(two, {"draws": 200, "tune": 200, "chains": 2})
        assert not done.error and set(done.found) == {"mu", "sigma"}
        cell.write(tmp_path / "two.json", done)
        kept = cell.read(tmp_path / "two.json")
        assert kept.found == done.found and kept.said == done.said
        right = read(RESULTS / "references" / "two_rows.json")
        text = tables.table({"two_rows": kept}, {"two_rows": right})
        assert "| `two_rows`: Mean and spread of two rows. |" in text and "Of 1 models" in text
