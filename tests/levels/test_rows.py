"""Rows by level: bounds, and weights that stand for all of them."""

import numpy as np
import pytest

from pymc_austerity.exact import BoundViolatedError, candidates_of
from pymc_austerity.levels import LevelRows, Measured, Span
from tests.references import thinned

RNG = np.random.default_rng(1)
SIZES = np.array([3, 0, 5, 40])
STARTS = np.concatenate([[0], np.cumsum(SIZES)])
N_ROWS = int(SIZES.sum())
LEVEL = np.repeat(np.arange(4), SIZES)
NOTHING = Measured(np.empty((1, 0), dtype=int), np.empty((1, 0, 0)))


def rows_of(starts, radii, constants, positions=None):
    """Rows that read the entry of their level alone."""
    n = len(starts) - 1
    one = Measured(np.arange(n)[:, None], np.ones((n, 1, 1)))
    span = Span(one, np.ones(n), np.zeros(n))
    return LevelRows(starts, positions, span, np.array(radii), np.array(constants))


def bounds_of(rows, before, after):
    nowhere = np.zeros(before.size)
    return rows.candidates((nowhere, before, after), NOTHING, np.zeros(3)).bounds


def weights(rows, residuals, bounds, rng):
    return rows.weights(residuals, candidates_of(rows.starts, bounds), rng)


ONE_RADIUS = rows_of(STARTS, [10.0], np.ones((1, 4)))


def cubic(x):
    """A function whose third derivative is at most 1 in size, and 0 at the origin up to order 2."""
    return np.sin(x) - x


class TestBounds:
    def test_hold_for_a_function_of_one_predictor(self):
        u, v = RNG.uniform(-4.0, 4.0, size=(2, 20_000))
        rows = rows_of(np.arange(20_001), [8.0], np.ones((1, 20_000)))
        bounds = bounds_of(rows, u, v)
        change = abs(cubic(v) - cubic(u))
        assert (change <= np.where(np.isinf(bounds), np.inf, bounds) + 1e-12).all()
        assert np.isfinite(bounds).mean() > 0.1
        assert (change[np.isfinite(bounds)] / bounds[np.isfinite(bounds)]).max() > 0.5

    def test_are_the_same_when_points_are_exchanged(self):
        u, v = RNG.uniform(0.0, 1.0, size=(2, 4))
        np.testing.assert_array_equal(bounds_of(ONE_RADIUS, u, v), bounds_of(ONE_RADIUS, v, u))

    def test_take_the_smallest_radius_that_reaches(self):
        rows = rows_of(np.arange(4), [0.5, 1.0], [[1.0] * 3, [4.0] * 3])
        far = np.array([0.5, 0.6, 1.1])
        one, two, beyond = bounds_of(rows, far, far - 0.01)
        assert one == pytest.approx(0.01 * (0.5**2 + 0.5 * 0.49 + 0.49**2) / 6.0)
        assert two == pytest.approx(4.0 * 0.01 * (0.6**2 + 0.6 * 0.59 + 0.59**2) / 6.0)
        assert np.isinf(beyond)

    def test_no_move_needs_no_rows_even_without_a_bound(self):
        rows = rows_of(STARTS, [1.0], np.full((1, 4), np.inf))
        far = np.full(4, 5.0)
        assert bounds_of(rows, far, far + np.array([0.0, 1.0, 0.0, 1.0])).tolist() == [
            0.0, np.inf, 0.0, np.inf,
        ]  # fmt: skip

    def test_hold_for_rows_of_crossed_factors_that_read_common_entries(self):
        rng = np.random.default_rng(1)
        n, p, q = 300, 4, 2
        first, second = rng.integers(7, size=n), rng.integers(3, size=n)
        x, w, z = rng.normal(size=(n, p)), rng.normal(size=(n, q)), rng.normal(size=n)
        entries = np.arange(14).reshape(7, 2), np.arange(14, 17).reshape(3, 1)
        root = np.tril(rng.normal(size=(p, p))) + 3.0 * np.eye(p)
        scales = np.tril(rng.normal(size=(7, q, q))) + 2.0 * np.eye(q)
        common = Measured(np.arange(17, 21)[None], np.linalg.inv(root)[None])

        def largest(norms, levels, n_levels):
            return np.array([norms[levels == g].max() for g in range(n_levels)])

        def by_level(levels, n_levels, inverse_roots, own, number):
            order = np.argsort(levels, kind="stable")
            starts = np.concatenate([[0], np.bincount(levels, minlength=n_levels).cumsum()])
            lengths = largest(np.linalg.norm(x @ root, axis=1), levels, n_levels)
            measured = Measured(entries[number], inverse_roots)
            span = Span(measured, largest(own, levels, n_levels), lengths)
            constants = np.ones((1, n_levels))
            return LevelRows(starts, order, span, np.array([100.0]), constants)

        own = np.linalg.norm(np.einsum("iq,iqr->ir", w, scales[first]), axis=1)
        factors = (
            by_level(first, 7, np.linalg.inv(scales), own, 0),
            by_level(second, 3, np.ones((3, 1, 1)), abs(z), 1),
        )

        def predictor(moves):
            own, other = moves[entries[0][first]], moves[entries[1][second, 0]]
            return (w * own).sum(axis=1) + z * other + x @ moves[common.entries[0]]

        n_bounded = 0
        for _ in range(50):
            anchor, *ends = rng.normal(size=(3, 21))
            points = (anchor, *(anchor + 0.03 * (end - anchor) for end in ends))
            u, v = (predictor(point - anchor) for point in points[1:])
            for rows, other in (factors, factors[::-1]):
                its = rows.candidates(points, common, other.largest_reach(points))
                of_rows = np.repeat(its.bounds, np.diff(rows.starts))
                change = abs(cubic(v) - cubic(u))[rows.positions]
                assert (change <= of_rows + 1e-12).all()
                n_bounded += np.isfinite(of_rows).sum()
        assert n_bounded > 0


class TestWeights:
    def test_follow_the_positions_of_rows_in_storage(self):
        order = RNG.permutation(N_ROWS)
        residuals = np.empty(N_ROWS)
        residuals[order] = np.arange(N_ROWS)
        rows = rows_of(STARTS, [1.0], np.ones((1, 4)), order)
        made = weights(rows, lambda at: residuals[at], np.full(4, np.inf), RNG)
        np.testing.assert_allclose(
            made.log_weight, np.bincount(LEVEL, np.arange(N_ROWS), minlength=4)
        )

    def test_estimate_the_likelihood_ratio_of_each_level_without_bias(self):
        rng, n = np.random.default_rng(2), 20_000
        residuals = rng.uniform(-0.05, 0.05, size=N_ROWS)
        bounds = np.array([0.06, 0.06, 0.08, np.inf])
        ratios = np.exp(
            [weights(ONE_RADIUS, lambda at: residuals[at], bounds, rng)[0] for _ in range(n)]
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
        made = weights(ONE_RADIUS, lambda at: residuals[at], bounds, rng)

        again = np.random.default_rng(seed)
        totals = np.where(np.isinf(bounds), 0.0, SIZES * bounds).cumsum()
        shares = np.sort(again.random(again.poisson(totals[-1]))) * totals[-1]
        levels = totals.searchsorted(shares, side="right")
        before = np.concatenate([[0.0], totals])[levels]
        within = (shares - before) / (totals[levels] - before)
        places = STARTS[levels] + (within * SIZES[levels]).astype(int)
        added = thinned(residuals[places], bounds[levels], again)
        expected = np.bincount(levels, added, minlength=4)
        is_read = np.isinf(bounds[LEVEL])
        expected += np.bincount(LEVEL[is_read], residuals[is_read], minlength=4)
        np.testing.assert_allclose(made.log_weight, expected, atol=1e-12)
        np.testing.assert_array_equal(made.ratios, residuals[places] / bounds[levels])
        assert made.n_rows == places.size + is_read.sum()
        assert rng.random() == again.random()

    def test_name_the_row_that_exceeds_its_bound(self):
        residuals = np.zeros(N_ROWS)
        residuals[4] = 0.6
        bounds = np.array([0.0, 0.0, 0.5, 0.0])

        def read():
            for _ in range(200):
                weights(ONE_RADIUS, lambda at: residuals[at], bounds, RNG)

        with pytest.raises(BoundViolatedError) as found:
            read()
        assert found.value.row == 4
