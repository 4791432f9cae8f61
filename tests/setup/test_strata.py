"""How rows are divided into strata, from their influence alone."""

import itertools

import numpy as np
import pytest

from pymc_austerity.control_variates import LargestScores, find_anchor, influence_scores
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.rows import ArrayRows, in_random_order
from pymc_austerity.setup.by_influence import (
    cheapest_sizes,
    expected_first_look,
    has_room_for_strata,
    strata_by_score,
)
from tests.control_variates.brute_force import taylor_differences
from tests.control_variates.regressions import logistic, simulate


@pytest.fixture
def scores(rng):
    return 2e-5 * np.exp(0.5 * rng.standard_normal(50_000))


def largest_of(scores, n_scores=20_001):
    found = LargestScores(n_scores)
    for block in np.array_split(scores, 10):
        found.add(block)
    return found


def divided(scores, differences, rng, **settings):
    """Strata of all rows, and the stratum of each."""
    known = strata_by_score(largest_of(scores), scores, differences, Settings(**settings), rng)
    labels = known.labels(scores)
    return known.strata(np.bincount(labels, minlength=known.first_counts.size)), labels, known


def test_differences_that_are_not_finite_get_all_the_strata(scores, rng):
    differences = scores * rng.standard_normal(scores.size)
    differences[7] = -np.inf
    strata, *_ = divided(scores, [differences], rng)
    assert strata.sizes.size == 32


def test_strata_are_ranges_of_falling_scores_with_equal_totals(scores, rng):
    strata, labels, known = divided(scores, [scores * rng.standard_normal(50_000)], rng)
    assert strata.n_rows == 50_000 and known.n_take_all == 0
    pieces = [scores[labels == k] for k in range(strata.sizes.size)]
    for higher, lower in itertools.pairwise(pieces):
        assert higher.min() > lower.max()
    totals = np.array([piece.sum() for piece in pieces])
    assert abs(totals / totals.mean() - 1.0).max() < 0.01
    np.testing.assert_array_equal(strata.first_counts, np.full(16, 10))


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 5.0]])
def test_a_stratum_of_equal_scores_is_sampled_like_the_ones_that_it_stands_for(values, rng):
    scores = 1e-5 * rng.choice(values, size=20_000)
    strata, labels, _ = divided(scores, [scores * rng.standard_normal(20_000)], rng)
    assert strata.sizes.size == len(values)
    shares = np.bincount(labels, scores) / scores.sum()
    np.testing.assert_allclose(strata.first_counts, 160 * shares[shares > 0], atol=6)


@pytest.mark.parametrize("scores", [np.zeros(50), np.r_[1.0, np.zeros(49)], np.full(50, 3.0)])
def test_degenerate_scores(scores, rng):
    strata, *_ = divided(scores, [scores], rng)
    assert strata.sizes.sum() == 50
    assert (strata.sizes > 0).all()
    assert (strata.first_counts >= np.minimum(2, strata.sizes)).all()


@pytest.mark.parametrize(("batch_size", "room"), [(None, True), (40, True), (39, False)])
def test_room_for_strata(batch_size, room):
    assert has_room_for_strata(Settings(batch_size=batch_size)) is room


class TestSample:
    """Strata from a sample, for rows that are elsewhere."""

    def test_rows_of_great_influence_need_not_be_in_it(self, scores, rng):
        scores[:20] = 1.0 + np.arange(20)
        some = rng.choice(np.arange(20, 50_000), 4_000, replace=False)
        differences = [scores[some] * rng.standard_normal(4_000)]
        known = strata_by_score(largest_of(scores), scores[some], differences, Settings(), rng)
        labels = known.labels(scores)
        strata = known.strata(np.bincount(labels))
        assert strata.first_counts[0] == strata.sizes[0] == known.n_take_all >= 20
        assert (labels[:20] == 0).all()
        means = [scores[labels == k].mean() for k in range(1, strata.sizes.size)]
        assert (np.diff(means) < 0).all()
        totals = np.bincount(labels, scores)[1:]
        assert (abs(totals / totals.mean() - 1.0) < 0.3).all()

    def test_many_strata_where_it_is_too_small_to_tell(self, scores, rng):
        few, differences = scores[:200], [scores[:200] * rng.standard_normal(200)]
        known = strata_by_score(largest_of(scores), few, differences, Settings(), rng)
        assert known.ascending.size >= 31

    def test_rows_of_a_first_look(self, scores, rng):
        expected = cheapest_sizes(largest_of(scores), Settings(), 16)
        found = expected_first_look(rng.choice(scores, 5_000, replace=False), 50_000, Settings())
        assert found.expected_rows == pytest.approx(expected.expected_rows, rel=0.1)
        assert found.n_rows == pytest.approx(expected.n_rows, rel=0.1)


def test_one_row_in_a_thousand_carries_the_error_and_is_always_taken(rng):
    """Ten coefficients of which six rows each know."""
    n_rows, n_rare = 60_000, 60
    X = np.zeros((n_rows, 12))
    X[:, :2] = rng.normal(size=(n_rows, 2))
    rare = rng.choice(n_rows, n_rare, replace=False)
    X[rare, 2 + np.arange(n_rare) % 10] = 2 * rng.normal(size=n_rare)
    model = simulate(logistic, n_rows, rng, np.r_[0.2, -0.1, rng.normal(size=10)], X)
    model.prior_precision = 0.1
    anchor = find_anchor(*model.known, rng=rng)
    g, H = model.row_gradients(anchor.point), model.row_hessians(anchor.point)

    def residuals(proposed, current, rows):
        differences = model.differences(proposed, current, X, model.y)
        return (differences - taylor_differences(g, H, anchor.point, proposed, current))[rows]

    def pairs(n):
        draws = anchor.point + rng.standard_normal((2 * n, 12)) @ anchor.root.T
        return list(zip(draws[:n], draws[n:], strict=True))

    scores = influence_scores(residuals, pairs(8), ArrayRows([np.arange(n_rows)]))
    assert np.isin(np.argsort(-scores)[:n_rare], rare).mean() > 0.9
    largest = LargestScores.of_all(scores, 20_000)
    checked = [residuals(*pair, np.arange(n_rows)) for pair in pairs(2)]
    by_score = strata_by_score(largest, scores, checked, Settings(), rng)
    labels = by_score.labels(scores)
    order, strata = in_random_order(labels, rng), by_score.strata(np.bincount(labels))
    assert by_score.n_take_all >= 20
    assert strata.first_counts[0] == strata.sizes[0] == by_score.n_take_all
    assert strata.first_counts.sum() < 500
    n_always = strata.sizes[strata.first_counts == strata.sizes].sum()  # also the smallest strata
    assert n_always < 100
    for proposed, current in pairs(20):  # others than those that the scores are made of
        signed = residuals(proposed, current, order)
        squares = signed**2
        assert squares[:n_always].sum() > 0.99 * squares.sum()
        pieces = np.split(signed, np.cumsum(strata.sizes)[:-1])
        stratified = sum(
            N**2 * piece.var() / n * (1 - n / N)
            for piece, N, n in zip(pieces, strata.sizes, strata.first_counts, strict=True)
        )
        uniform = n_rows**2 * signed.var() / strata.first_counts.sum()
        assert stratified < 0.01 * uniform
