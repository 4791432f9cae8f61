"""Which decisions are checked, and how many of them by default."""

import numpy as np
import pytest

from pymc_austerity.deciding.decider import RandomAudits, affordable_share
from pymc_austerity.deciding.sampling import UniformSampling


def test_a_share_of_the_decisions():
    audits = RandomAudits(0.2)
    audits.begin(np.random.default_rng(4))
    n_checks = sum(audits.wants() for _ in range(10_000))
    assert abs(n_checks - 2_000) < 4 * np.sqrt(1_600)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_none_and_all_of_them(share):
    audits = RandomAudits(share)
    assert [audits.wants() for _ in range(100)] == [share == 1.0] * 100


@pytest.mark.parametrize(
    ("n_rows", "batch_size", "share"),
    [(50, 50, 1.0), (10_000, 500, 0.0075), (100_000, 1_000, 0.001), (10**8, 500, 7.5e-7)],
)
def test_the_usual_share_is_a_twentieth_of_the_cost(n_rows, batch_size, share):
    sampling = UniformSampling(None, None, n_rows=n_rows, batch_size=batch_size)
    assert affordable_share(sampling) == pytest.approx(share)
