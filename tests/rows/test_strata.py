import itertools

import numpy as np
import pytest
from scipy import stats

from pymc_austerity.rows import StratifiedWindows, strata_by_score
from pymc_austerity.strata import Strata


class Positions:
    def __init__(self, n_rows):
        self.n_rows = n_rows

    def take(self, indices):
        return (np.asarray(indices),)


def test_strata_are_stretches_of_falling_score(rng):
    scores = rng.pareto(1.5, size=5_000)
    order, strata = strata_by_score(scores, n_take_all=40, n_strata=8, per_stratum=25, rng=rng)
    assert sorted(order) == list(range(5_000))
    assert strata.n_rows == 5_000
    assert strata.sizes[0] == 40
    pieces = np.split(scores[order], np.cumsum(strata.sizes)[:-1])
    for higher, lower in itertools.pairwise(pieces):
        assert higher.min() >= lower.max()
    totals = np.array([piece.sum() for piece in pieces[1:]])
    assert totals.max() < 1.5 * totals.mean()
    np.testing.assert_array_equal(strata.first_counts[1:], np.minimum(25, strata.sizes[1:]))
    assert strata.first_counts[0] == 40


def test_order_within_strata_is_random(rng):
    _, strata = strata_by_score(np.ones(1_000), n_take_all=0, n_strata=1, per_stratum=10, rng=rng)
    assert list(strata.sizes) == [1_000]
    ranks = np.zeros(20)
    for _ in range(2_000):
        order, _ = strata_by_score(np.ones(20), n_take_all=0, n_strata=1, per_stratum=4, rng=rng)
        ranks[order[0]] += 1
    assert stats.chisquare(ranks).pvalue > 1e-4


@pytest.mark.parametrize("scores", [np.zeros(50), np.r_[1.0, np.zeros(49)], np.full(50, 3.0)])
def test_degenerate_scores(scores, rng):
    order, strata = strata_by_score(scores, n_take_all=2, n_strata=5, per_stratum=2, rng=rng)
    assert sorted(order) == list(range(50))
    assert strata.sizes.sum() == 50
    assert (strata.sizes > 0).all()
    assert (strata.first_counts >= np.minimum(2, strata.sizes)).all()


def test_windows_stay_within_their_stratum_and_never_repeat(rng):
    strata = Strata(np.array([5, 100, 1_000]), np.array([5, 10, 20]))
    for _ in range(50):
        stream = StratifiedWindows(Positions(1_105), strata).begin(rng)
        seen = [np.empty(0, dtype=int)] * 3
        for counts in ([5, 10, 20], [0, 50, 3], [0, 40, 977]):
            ((indices,),) = stream.read(np.array(counts))
            for h, piece in enumerate(np.split(indices, np.cumsum(counts)[:-1])):
                assert (piece >= strata.offsets[h]).all()
                assert (piece < strata.offsets[h] + strata.sizes[h]).all()
                seen[h] = np.concatenate([seen[h], piece])
        assert [np.unique(rows).size for rows in seen] == [5, 100, 1_000]
