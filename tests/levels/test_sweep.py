"""Sweeps: names of their blocks, and walks that are shortened where they are refused."""

from types import SimpleNamespace

import pytest

from pymc_austerity.levels import Shares, Sweep


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
