"""Rows by level: bounds, and weights that stand for all of them."""

import numpy as np
import pytest

from pymc_austerity.exact import BoundViolatedError, thinned
from pymc_austerity.levels import LevelRows

RNG = np.random.default_rng(1)
SIZES = np.array([3, 0, 5, 40])
STARTS = np.concatenate([[0], np.cumsum(SIZES)])
N_ROWS = int(SIZES.sum())
LEVEL = np.repeat(np.arange(4), SIZES)
ONE_RADIUS = LevelRows(STARTS, None, np.array([10.0]), np.ones((1, 4)))


def cubic(x):
    """A function whose third derivative is at most 1 in size, and 0 at the origin up to order 2."""
    return np.sin(x) - x


class TestBounds:
    def test_hold_for_a_function_of_one_predictor(self):
        u, v = RNG.uniform(-4.0, 4.0, size=(2, 20_000))
        rows = LevelRows(np.arange(20_001), None, np.array([8.0]), np.ones((1, 20_000)))
        bounds = rows.bounds(abs(u), abs(v), abs(v - u))
        change = abs(cubic(v) - cubic(u))
        assert (change <= np.where(np.isinf(bounds), np.inf, bounds) + 1e-12).all()
        assert np.isfinite(bounds).mean() > 0.1
        assert (change[np.isfinite(bounds)] / bounds[np.isfinite(bounds)]).max() > 0.5

    def test_are_the_same_when_points_are_exchanged(self):
        u, v, d = RNG.uniform(0.0, 1.0, size=(3, 4))
        np.testing.assert_array_equal(ONE_RADIUS.bounds(u, v, d), ONE_RADIUS.bounds(v, u, d))

    def test_take_the_smallest_radius_that_reaches(self):
        rows = LevelRows(np.arange(4), None, np.array([0.5, 1.0]), np.array([[1.0] * 3, [4.0] * 3]))
        far = np.array([0.5, 0.6, 1.1])
        moved = np.full(3, 0.01)
        one, two, beyond = rows.bounds(far, far, moved)
        assert one == pytest.approx(0.01 * 3 * 0.25 / 6.0)
        assert two == pytest.approx(4.0 * 0.01 * 3 * 0.36 / 6.0)
        assert np.isinf(beyond)

    def test_no_move_needs_no_rows_even_without_a_bound(self):
        rows = LevelRows(STARTS, None, np.ones(1), np.full((1, 4), np.inf))
        far = np.full(4, 5.0)
        assert rows.bounds(far, far, np.array([0.0, 1.0, 0.0, 1.0])).tolist() == [
            0.0, np.inf, 0.0, np.inf,
        ]  # fmt: skip


class TestWeights:
    def test_without_bounds_are_the_sums_of_residuals(self):
        residuals = RNG.normal(size=N_ROWS)
        made = ONE_RADIUS.weights(lambda at: residuals[at], np.full(4, np.inf), RNG)
        np.testing.assert_allclose(made.log_weight, np.bincount(LEVEL, residuals, minlength=4))
        assert made.n_rows == N_ROWS

    def test_follow_the_positions_of_rows_in_storage(self):
        order = RNG.permutation(N_ROWS)
        residuals = np.empty(N_ROWS)
        residuals[order] = np.arange(N_ROWS)
        rows = LevelRows(STARTS, order, np.ones(1), np.ones((1, 4)))
        made = rows.weights(lambda at: residuals[at], np.full(4, np.inf), RNG)
        np.testing.assert_allclose(
            made.log_weight, np.bincount(LEVEL, np.arange(N_ROWS), minlength=4)
        )

    def test_estimate_the_likelihood_ratio_of_each_level_without_bias(self):
        rng, n = np.random.default_rng(2), 20_000
        residuals = rng.uniform(-0.05, 0.05, size=N_ROWS)
        bounds = np.array([0.06, 0.06, 0.08, np.inf])
        ratios = np.exp(
            [ONE_RADIUS.weights(lambda at: residuals[at], bounds, rng)[0] for _ in range(n)]
        )
        expected = np.exp(np.bincount(LEVEL, residuals, minlength=4))
        error = 4.5 * ratios.std(axis=0) / np.sqrt(n) + 1e-12
        assert (abs(ratios.mean(axis=0) - expected) <= error).all()
        assert ratios.std(axis=0)[[0, 2]].min() > 0.01  # rows were drawn at random
        np.testing.assert_allclose(ratios[:, [1, 3]], expected[[1, 3]] * np.ones((n, 1)))

    @pytest.mark.parametrize("seed", range(20))
    def test_are_those_of_the_formulas_with_the_same_random_numbers(self, seed):
        residuals = np.random.default_rng(seed).uniform(-0.5, 0.5, size=N_ROWS)
        bounds = np.array([0.6, 0.5, np.inf, 0.7]) if seed % 2 else np.array([0.0, 0.9, 0.5, 0.0])
        rng = np.random.default_rng(seed)
        made = ONE_RADIUS.weights(lambda at: residuals[at], bounds, rng)

        again = np.random.default_rng(seed)
        totals = np.where(np.isinf(bounds), 0.0, SIZES * bounds).cumsum()
        uniform = again.random((2, again.poisson(totals[-1])))
        levels = totals.searchsorted(uniform[0] * totals[-1], side="right")
        places = STARTS[levels] + (uniform[1] * SIZES[levels]).astype(int)
        added = thinned(residuals[places], bounds[levels], again)
        expected = np.bincount(levels, added, minlength=4)
        is_read = np.isinf(bounds[LEVEL])
        expected += np.bincount(LEVEL[is_read], residuals[is_read], minlength=4)
        np.testing.assert_allclose(made.log_weight, expected, atol=1e-12)
        np.testing.assert_array_equal(made.ratios, residuals[places] / bounds[levels])
        assert made.n_rows == places.size + is_read.sum()
        assert rng.random() == again.random()

    def test_read_as_many_rows_as_bounds_ask_for(self):
        rng, n = np.random.default_rng(3), 4_000
        bounds = np.array([0.1, 0.1, 0.2, 0.05])
        read = [
            ONE_RADIUS.weights(lambda at: np.zeros(at.size), bounds, rng).n_rows for _ in range(n)
        ]
        expected = float(SIZES @ bounds)
        assert abs(np.mean(read) - expected) < 4.5 * np.sqrt(expected / n)

    def test_zero_bounds_read_nothing(self):
        made = ONE_RADIUS.weights(lambda at: 1 / 0, np.zeros(4), RNG)
        assert made.n_rows == 0 and not made.log_weight.any()

    def test_name_the_row_that_exceeds_its_bound(self):
        residuals = np.zeros(N_ROWS)
        residuals[4] = 0.6
        bounds = np.array([0.0, 0.0, 0.5, 0.0])

        def read():
            for _ in range(200):
                ONE_RADIUS.weights(lambda at: residuals[at], bounds, RNG)

        with pytest.raises(BoundViolatedError) as found:
            read()
        assert found.value.row == 4
