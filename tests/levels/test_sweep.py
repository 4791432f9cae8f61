"""Sweeps: names of their blocks, and what they learn of means."""

from types import SimpleNamespace

import numpy as np
import pytest

from pymc_austerity.levels import Shares, Sweep
from pymc_austerity.levels.learned import Center


def sweep_of(names, *, common=True):
    factors = tuple(SimpleNamespace(names=f"[{name}]") for name in names)
    posterior = SimpleNamespace(factors=factors, common=object() if common else None)
    return Sweep(posterior, object(), object(), (), Shares((), 1.0))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["county"], ["county"]),
        (["e", "e"], ["e", "e_2"]),
        (["e", "e", "e"], ["e", "e_2", "e_3"]),
        (["common", "a, b"], ["common_2", "a_b"]),
    ],
)
def test_every_block_has_a_name_of_its_own(names, expected):
    assert list(sweep_of(names).blocks) == ["untouched", *expected, "common", "joint"]


def test_a_mean_is_moved_by_what_is_known_of_it():
    """Noise in many entries would move their normal approximation away from the posterior."""
    rng, center = np.random.default_rng(4), Center(np.zeros(26), np.zeros(26))
    distance = np.append(np.zeros(25), 0.8)
    for _ in range(500):
        center = center.step(distance + rng.standard_normal(26))
    assert center.offset[-1] == pytest.approx(0.8, abs=0.2)
    assert (center.offset[:-1] ** 2).sum() < 0.1 * (center.mean[:-1] ** 2).sum()
