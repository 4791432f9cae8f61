import numpy as np
import pytest
from scipy.stats import norm

from pymc_austerity.control_variates import (
    LargestScores,
    cheapest_first_look,
    influence_of_all,
    influence_scores,
)
from pymc_austerity.rows import ArrayRows
from pymc_austerity.rows.passes import LARGEST_BLOCK

SETTINGS = {"epsilon": 0.05, "n_strata": 10, "fewest_per_stratum": 12, "most": 20_000}


def by_hand(residuals):
    """Scores from residuals of shape (pairs, rows), all finite."""
    mean_squares = np.array([np.mean(row**2) for row in residuals])
    normalized = np.array(
        [row**2 / square for row, square in zip(residuals, mean_squares, strict=True) if square]
    )
    return np.sqrt(normalized.sum(axis=0) / len(residuals) * np.median(mean_squares))


def given(residuals):
    """Residuals of a pair are given by its number."""
    numbers = np.arange(residuals.shape[1])
    pairs = [(np.array([float(k)]), np.zeros(1)) for k in range(len(residuals))]

    def function(proposed, current, rows):
        return residuals[int(proposed[0])][rows]

    return function, pairs, ArrayRows([numbers])


def scores_of(residuals):
    return influence_scores(*given(residuals))


# ------------------------------------------------------------------ scores


@pytest.mark.parametrize("n_rows", [50, LARGEST_BLOCK + 3])
def test_scores_are_root_mean_squares_over_the_pairs(n_rows, rng):
    residuals = rng.standard_t(3, size=(5, n_rows)) * np.geomspace(1e-6, 1e3, 5)[:, None]
    np.testing.assert_allclose(scores_of(residuals), by_hand(residuals), rtol=1e-12)


def test_every_pair_counts_alike(rng):
    """A pair far apart must not drown the others."""
    residuals = np.zeros((3, 100))
    residuals[0, 3], residuals[1, 5], residuals[2, 7] = 1e6, 1.0, -1e-6
    scores = scores_of(residuals)
    assert scores[3] == pytest.approx(scores[5]) == pytest.approx(scores[7])
    assert np.count_nonzero(scores) == 3


def test_pairs_that_say_nothing(rng):
    residuals = rng.normal(size=(4, 100))
    residuals[2] = 0.0
    np.testing.assert_allclose(scores_of(residuals), by_hand(residuals), rtol=1e-12)
    np.testing.assert_array_equal(scores_of(np.zeros((3, 10))), np.zeros(10))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_come_first(bad, rng):
    residuals = rng.normal(size=(4, 100))
    residuals[1, 17] = bad
    scores = scores_of(residuals)
    assert np.isfinite(scores).all()
    assert scores[17] == scores.max()
    mean_squares = np.mean(np.delete(residuals, 17, axis=1) ** 2, axis=1)
    mean_squares[[0, 2, 3]] = np.mean(residuals[[0, 2, 3]] ** 2, axis=1)  # all rows are finite
    expected = (residuals**2 / mean_squares[:, None]).sum(axis=0) / 4 * np.median(mean_squares)
    others = np.delete(np.arange(100), 17)
    np.testing.assert_allclose(scores[others], np.sqrt(expected[others]), rtol=1e-12)


# ------------------------------------------------------------------ sizes


def first_look_sizes(scores, **settings):
    largest = LargestScores.of_all(scores, scores.size)
    n_take_all, _, per_stratum, _ = cheapest_first_look(largest, **settings)
    return n_take_all, per_stratum


def rows_of_decisions(scores):
    return cheapest_first_look(LargestScores.of_all(scores, scores.size), **SETTINGS).expected_rows


def standard_error(scores, n_take_all, n_sampled):
    """Of the sum, in nats, by Neyman's allocation among the rows that are not always taken."""
    return np.sort(scores)[: scores.size - n_take_all].sum() / np.sqrt(n_sampled)


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.05])
def test_the_first_look_leaves_the_error_that_was_aimed_for(epsilon, rng):
    """A look is wide enough if the quantile times its standard error is half a nat."""
    scores = 1e-5 * rng.pareto(1.2, size=200_000)
    n_take_all, per_stratum = first_look_sizes(scores, **SETTINGS | {"epsilon": epsilon})
    n_sampled, quantile = 10 * per_stratum, norm.isf(epsilon)
    assert quantile * standard_error(scores, n_take_all, n_sampled) <= 0.5
    # not with many more than it takes with the best number of rows to take always
    falling = np.sort(scores)[::-1]
    left = falling.sum() - np.concatenate([[0.0], np.cumsum(falling)])[:20_000]
    needed = np.arange(20_000) + np.maximum((quantile * left / 0.5) ** 2, 120)
    assert n_take_all + n_sampled <= 2 * needed.min()
    assert n_sampled <= max(needed[n_take_all] - n_take_all, 120) + 10  # rounded up in strata


def test_a_few_influential_rows_are_always_taken(rng):
    scores = np.full(100_000, 1e-6)
    scores[rng.choice(100_000, 100, replace=False)] = 1.0
    n_take_all, per_stratum = first_look_sizes(scores, **SETTINGS)
    assert 100 <= n_take_all < 150
    assert per_stratum == 12


def test_quiet_rows_need_the_fewest(rng):
    assert first_look_sizes(np.full(50_000, 1e-9), **SETTINGS) == (0, 12)
    assert first_look_sizes(np.zeros(50_000), **SETTINGS) == (0, 12)


@pytest.mark.parametrize("most", [100, 1_000, 5_000])
@pytest.mark.parametrize("shape", ["equal", "heavy"])
def test_wild_rows_stay_below_the_cap_and_use_it_well(most, shape, rng):
    scores = np.full(10_000, 10.0) if shape == "equal" else 10.0 * rng.pareto(0.7, size=10_000)
    n_take_all, per_stratum = first_look_sizes(scores, **SETTINGS | {"most": most})
    assert n_take_all + 10 * per_stratum <= max(most, n_take_all + 120) + 10
    assert per_stratum >= 12
    if most > 120:
        error = standard_error(scores, n_take_all, 10 * per_stratum)
        others = [standard_error(scores, n, most - n) for n in range(0, most - 120, 10)]
        assert error <= 1.05 * min(others)


def test_expected_rows(rng):
    """The first look, and what close decisions go on to: in proportion to what is left."""
    assert rows_of_decisions(np.zeros(50_000)) == 120.0
    scores = np.full(100_000, 1e-6)  # far too small for another first look
    further = [rows_of_decisions(k * scores) - 120.0 for k in (1.0, 2.0)]
    assert further[1] == pytest.approx(2.0 * further[0])
    assert further[0] == pytest.approx(0.2 * norm.isf(0.05) * np.sqrt(100_000) * 0.1)
    wild = 1e-5 * rng.pareto(1.2, size=100_000)
    n_take_all, per_stratum = first_look_sizes(wild, **SETTINGS)
    assert rows_of_decisions(wild) > n_take_all + 10 * (per_stratum - 1)


def test_smaller_epsilon_and_wilder_rows_take_more(rng):
    scores = 1e-5 * rng.pareto(1.2, size=100_000)

    def total(scores, **other):
        n_take_all, per_stratum = first_look_sizes(scores, **SETTINGS | other)
        return n_take_all + 10 * per_stratum

    assert total(scores) < total(scores, epsilon=0.001)
    assert total(scores) < total(2 * scores)
    assert total(scores, epsilon=0.0) >= total(scores, epsilon=1e-6)


# ------------------------------------------------------------------ block by block


def test_scores_of_blocks_are_those_of_all_rows(rng):
    residuals = rng.standard_t(3, size=(5, 900)) * np.geomspace(1e-6, 1e3, 5)[:, None]
    residuals[2] = 0.0

    _, influence = influence_of_all(*given(residuals))
    found = [influence((rows,)) for rows in np.split(np.arange(900), 3)]
    np.testing.assert_allclose(np.concatenate(found), scores_of(residuals), rtol=1e-12)
    residuals[1, 5] = -np.inf
    assert influence((np.arange(900),))[5] == np.inf


@pytest.mark.parametrize("most", [3, 100, 5_000])
def test_the_largest_scores_choose_what_all_of_them_do(most, rng):
    scores = rng.lognormal(-6.0, 2.0, size=2_000)
    largest = LargestScores(most + 1)
    for block in np.split(scores, 8):
        largest.add(block)
    falling = np.sort(scores)[::-1]
    np.testing.assert_array_equal(largest.falling, falling[: most + 1])
    assert largest.total == pytest.approx(scores.sum(), rel=1e-12)
    settings = SETTINGS | {"most": most}
    found = cheapest_first_look(largest, **settings)
    assert (found.n_take_all, found.per_stratum) == first_look_sizes(scores, **settings)
