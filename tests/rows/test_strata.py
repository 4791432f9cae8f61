import numpy as np
import pytest
from scipy import stats

from pymc_austerity.rows import StratifiedWindows, in_order, in_random_order
from pymc_austerity.strata import Strata


class Positions:
    def __init__(self, n_rows):
        self.n_rows = n_rows

    def take(self, indices):
        return (np.asarray(indices),)


def test_rows_are_in_random_order_within_their_labels(rng):
    labels = np.repeat([2, 0, 1], [3, 20, 5])
    ranks = np.zeros(20)
    for _ in range(2_000):
        order = in_random_order(labels, rng)
        np.testing.assert_array_equal(labels[order], np.sort(labels))
        assert sorted(order) == list(range(28))
        ranks[order[0] - 3] += 1
    assert stats.chisquare(ranks).pvalue > 1e-4


@pytest.mark.parametrize("largest", [3, 2**16 - 1, 2**16 + 5])
def test_rows_of_a_label_stay_in_their_order(largest):
    labels = np.array([largest, 0, largest, 1, 0])
    np.testing.assert_array_equal(in_order(labels), [1, 4, 3, 0, 2])


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
