"""How rows are divided into strata, from their influence alone."""

import numpy as np
import pytest

from pymc_austerity.control_variates import LargestScores
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.setup.strata import has_room_for_strata, stratify
from pymc_austerity.setup.strata_of_sample import first_look_of_sample, thresholds_of_sample


@pytest.fixture
def scores(rng):
    return 2e-5 * np.exp(0.5 * rng.standard_normal(50_000))


def test_differences_that_are_not_finite_get_all_the_strata(scores, rng):
    differences = scores * rng.standard_normal(scores.size)
    differences[7] = -np.inf
    _, strata, _ = stratify(scores, [differences], Settings(), rng)
    assert strata.sizes.size == 32


def test_every_row_is_in_one_stratum_and_strata_are_ordered_by_influence(scores, rng):
    order, strata, _ = stratify(scores, [scores * rng.standard_normal(50_000)], Settings(), rng)
    np.testing.assert_array_equal(np.sort(order), np.arange(50_000))
    means = [part.mean() for part in np.split(scores[order], np.cumsum(strata.sizes)[:-1])]
    assert (np.diff(means) < 0).all()


def test_rows_of_great_influence_are_always_read(rng):
    scores = np.full(10_000, 1e-5)
    scores[:20] = 1.0
    order, strata, n_take_all = stratify(scores, [scores], Settings(), rng)
    assert n_take_all >= 20
    assert strata.first_counts[0] == strata.sizes[0] == n_take_all
    assert set(range(20)) <= set(order[:n_take_all])


@pytest.mark.parametrize(("batch_size", "room"), [(None, True), (40, True), (39, False)])
def test_room_for_strata(batch_size, room):
    assert has_room_for_strata(Settings(batch_size=batch_size)) is room


class TestSample:
    """Strata from a sample, for rows that are elsewhere."""

    @staticmethod
    def largest(scores, n_scores=20_001):
        found = LargestScores(n_scores)
        for block in np.split(scores, 10):
            found.add(block)
        return found

    def test_of_all_rows_are_the_strata_of_rows_in_memory(self, scores, rng):
        scores[:20] = 1.0 + np.arange(20)
        differences = [scores * rng.standard_normal(50_000)]
        order, strata, n_take_all = stratify(scores, differences, Settings(), rng)
        known = thresholds_of_sample(self.largest(scores), scores, differences, Settings(), rng)
        labels = known.labels(scores)
        found = known.strata(np.bincount(labels))
        assert known.n_take_all == n_take_all >= 20
        np.testing.assert_array_equal(found.sizes, strata.sizes)
        np.testing.assert_array_equal(found.first_counts, strata.first_counts)
        own = np.repeat(np.arange(strata.sizes.size), strata.sizes)
        np.testing.assert_array_equal(labels[order], own)

    def test_rows_of_great_influence_need_not_be_in_it(self, scores, rng):
        scores[:20] = 1.0 + np.arange(20)
        some = rng.choice(np.arange(20, 50_000), 4_000, replace=False)
        differences = [scores[some] * rng.standard_normal(4_000)]
        known = thresholds_of_sample(
            self.largest(scores), scores[some], differences, Settings(), rng
        )
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
        known = thresholds_of_sample(self.largest(scores), few, differences, Settings(), rng)
        assert known.ascending.size >= 31

    def test_rows_of_a_first_look(self, scores, rng):
        _, strata, _ = stratify(scores, [scores * rng.normal(size=50_000)], Settings(), rng)
        some = rng.choice(scores, 5_000, replace=False)
        assert first_look_of_sample(some, 50_000, Settings()) == pytest.approx(
            strata.n_first, rel=0.1
        )
