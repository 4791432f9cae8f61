"""Fingerprints differ where data do."""

import numpy as np
import pytest

from pymc_austerity.model.row_likelihood import fingerprint


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_copies_and_other_layouts_are_the_same(rng, size):
    array = rng.normal(size=(size // 2, 2))
    assert fingerprint([array]) == fingerprint([array.copy()])
    assert fingerprint([array]) == fingerprint([np.asfortranarray(array)])


def test_one_entry_of_small_data_counts(rng):
    array = rng.normal(size=100_000)
    before = fingerprint([array])
    for position in rng.integers(array.size, size=20):
        array[position] += 1e-9
        assert fingerprint([array]) != before
        before = fingerprint([array])


def test_one_entry_in_ten_thousand_of_large_data_counts(rng):
    array = rng.normal(size=2_000_000)
    before = fingerprint([array])
    array[rng.integers(array.size, size=array.size // 10_000)] += 1e-9
    assert fingerprint([array]) != before


def test_shapes_and_types_count():
    zeros = [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(6), np.zeros(6, dtype=np.float32)]
    assert len({fingerprint([array]) for array in zeros}) == 4


def test_nothing_of_no_data():
    assert fingerprint([np.zeros((0, 3))]) == fingerprint([np.zeros((0, 3))])
