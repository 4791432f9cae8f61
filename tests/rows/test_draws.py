import numpy as np
import pytest
from scipy import stats

from pymc_austerity.rows import (
    AllRows,
    ArrayRows,
    FreshRows,
    StratifiedWindows,
    Windows,
    in_order,
    in_random_order,
)
from pymc_austerity.strata import Strata


class Positions:
    """A source whose rows are their own positions; counts what it hands out."""

    def __init__(self, n_rows):
        self.n_rows = n_rows

    def window(self, start, stop):
        assert 0 <= start < stop <= self.n_rows
        return (np.arange(start, stop),)

    def take(self, indices):
        return (np.asarray(indices),)


def read(stream, n_rows):
    return np.concatenate([block[0] for block in stream.read(n_rows)])


@pytest.mark.parametrize("draw", [Windows, FreshRows, AllRows])
@pytest.mark.parametrize("n_rows", [5, 1_000, 30_000])
@pytest.mark.parametrize("sizes", [(0.01,) * 5, (0.3, 0.3), (0.6,), (1.0,), (0.45, 0.1, 0.3)])
def test_every_row_at_most_once_and_all_in_the_end(draw, n_rows, sizes, rng):
    stream = draw(Positions(n_rows)).begin(rng)
    counts = [max(1, int(size * n_rows)) for size in sizes]
    counts.append(n_rows - sum(counts))
    pieces = [read(stream, count) for count in counts if count > 0]
    assert [piece.size for piece in pieces] == [count for count in counts if count > 0]
    assert sorted(np.concatenate(pieces)) == list(range(n_rows))


@pytest.mark.parametrize("draw", [Windows, FreshRows])
@pytest.mark.parametrize("look", [0, 1, 2])
def test_every_row_is_as_likely_at_every_look(draw, look, rng):
    n_rows, n_repeats, size = 20, 4_000, 5
    counts = np.zeros(n_rows)
    for _ in range(n_repeats):
        stream = draw(Positions(n_rows)).begin(rng)
        for _ in range(look):
            read(stream, size)
        counts[read(stream, size)] += 1
    expected = n_repeats * size / n_rows
    # without replacement: each row's count is binomial with probability 1/4
    statistic = ((counts - expected) ** 2 / (expected * (1 - size / n_rows))).sum()
    assert stats.chi2.sf(statistic, df=n_rows - 1) > 1e-4


def test_fresh_rows_pair_every_two_rows_as_often(rng):
    n_rows, n_repeats = 8, 6_000
    pairs = np.zeros((n_rows, n_rows))
    for _ in range(n_repeats):
        stream = FreshRows(Positions(n_rows)).begin(rng)
        first, second = read(stream, 1)[0], read(stream, 1)[0]
        pairs[first, second] += 1
    assert not pairs.diagonal().any()
    observed = pairs[~np.eye(n_rows, dtype=bool)]
    assert stats.chisquare(observed).pvalue > 1e-4


def test_windows_are_runs_that_wrap_around(rng):
    rows = read(Windows(Positions(50_000)).begin(rng), 1_600).reshape(100, 16)
    assert (np.diff(rows, axis=1) % 50_000 == 1).all()
    assert (np.diff(rows[:, 0]) % 50_000 != 16).all()


def test_reads_of_any_size_go_on_where_the_one_before_ended(rng):
    draw, sizes = Windows(Positions(50_000)), (7, 16, 33, 1, 500)
    at_once = read(draw.begin(np.random.default_rng(3)), sum(sizes))
    stream = draw.begin(np.random.default_rng(3))
    pieces = [read(stream, size) for size in sizes]
    np.testing.assert_array_equal(np.concatenate(pieces), at_once)


def chances_to_err(make, n_orders=10, n_repeats=1_000, n_rows=20_000, size=500):
    """For some stored orders, how often the mean of a sample lies beyond a threshold."""
    rng = np.random.default_rng(6)
    values = rng.normal(size=n_rows)
    threshold = values.mean() + values.std() / np.sqrt(size)
    counts = np.zeros(n_orders)
    for order in range(n_orders):
        draw = make(ArrayRows([rng.permutation(values)]))
        for _ in range(n_repeats):
            counts[order] += read(draw.begin(rng), size).mean() > threshold
    return counts, n_repeats


def test_samples_of_windows_are_like_fresh_ones_in_every_stored_order():
    """The spread over orders of how often decisions err is that of the binomial distribution."""
    counts, n_repeats = chances_to_err(Windows)
    fresh, _ = chances_to_err(FreshRows, n_orders=3)
    share = counts.mean() / n_repeats
    spread = n_repeats * share * (1 - share)
    statistic = ((counts - counts.mean()) ** 2).sum() / spread
    assert stats.chi2.sf(statistic, df=counts.size - 1) > 1e-3
    noise = np.sqrt(spread / counts.size + spread / fresh.size)
    assert abs(counts.mean() - fresh.mean()) < 4 * noise


def test_all_rows_use_no_random_number():
    rng = np.random.default_rng(3)
    AllRows(Positions(10)).begin(rng)
    assert rng.random() == np.random.default_rng(3).random()


def test_large_reads_come_in_blocks_that_fit_the_cache(rng):
    for draw in (Windows, FreshRows, AllRows):
        blocks = list(draw(Positions(50_000)).begin(rng).read(50_000))
        assert max(block[0].size for block in blocks) <= 8_192


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
