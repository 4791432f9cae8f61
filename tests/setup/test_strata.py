"""How rows are divided into strata, from their influence alone."""

import numpy as np
import pytest

from pymc_austerity.deciding.settings import Settings
from pymc_austerity.setup.strata import has_room_for_strata, stratify


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
