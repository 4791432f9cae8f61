"""How strict the test is at each draw."""

import numpy as np

from pymc_austerity.sequential import Tightening


def test_it_tightens_in_a_straight_line_and_stays():
    schedule = Tightening(0.05, loosest=0.2, n_draws=300)
    values = np.array([schedule(draw) for draw in range(1_000)])
    assert values[0] == 0.2
    np.testing.assert_allclose(np.diff(values[:301]), -0.15 / 300)
    assert (values[300:] == 0.05).all()


def test_a_loose_test_is_not_tightened():
    schedule = Tightening(0.3, loosest=0.2)
    assert {schedule(draw) for draw in range(1_000)} == {0.3}
