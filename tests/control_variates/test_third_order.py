"""The third-order terms of all rows, against the sum of the terms of each of them."""

import numpy as np
import pytest

from pymc_austerity.control_variates import Anchor, ThirdOrder
from tests.control_variates.brute_force import taylor_differences

N_ROWS = 200


def of_rows(size, rng):
    """Gradients, Hessians and third derivatives of rows, symmetric."""
    x, f = rng.normal(size=(2, N_ROWS, size)), rng.normal(size=(2, N_ROWS))
    thirds = sum(np.einsum("n,nj,nk,nl->njkl", w, v, v, v) for w, v in zip(f, x, strict=True))
    hessians = sum(np.einsum("n,nj,nk->njk", w, v, v) for w, v in zip(f, x, strict=True))
    return rng.normal(size=(N_ROWS, size)), hessians, thirds


def packed(thirds):
    """The sum, by an entry and a pair of entries."""
    first, second = np.triu_indices(thirds.shape[-1])
    return ThirdOrder(thirds.sum(axis=0)[:, first, second])


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
def test_the_contraction_is_the_sum_of_the_terms_of_all_rows(size, spread, rng):
    _, _, thirds = of_rows(size, rng)
    new, old = spread * rng.normal(size=(2, size))

    def terms(x):
        return np.einsum("njkl,j,k,l->n", thirds, x, x, x) / 6.0

    expected = terms(new) - terms(old)
    scale = np.abs(expected).sum()
    assert packed(thirds).difference(new, old) == pytest.approx(expected.sum(), abs=1e-11 * scale)
    assert packed(thirds).difference(old, new) == -packed(thirds).difference(new, old)


def test_the_expansion_of_an_anchor(rng):
    gradients, hessians, thirds = of_rows(4, rng)
    point, proposed, current = rng.normal(size=(3, 4))
    anchor = Anchor(point, gradients.sum(0), hessians.sum(0), np.eye(4))
    cubic = anchor.to_third_order(packed(thirds))
    terms = taylor_differences(gradients, hessians, point, proposed, current)
    assert (anchor.order, cubic.order) == (2, 3)
    assert anchor.expansion(proposed, current) == pytest.approx(terms.sum(), rel=1e-10)
    terms = taylor_differences(gradients, hessians, point, proposed, current, thirds=thirds)
    assert cubic.expansion(proposed, current) == pytest.approx(terms.sum(), rel=1e-10)


def test_close_points_are_told_apart(rng):
    """Far from the anchor, the difference has the precision of the step."""
    _, _, thirds = of_rows(3, rng)
    old, step = 1e3 * rng.normal(size=3), 1e-6 * rng.normal(size=3)
    total = thirds.sum(axis=0)
    expected = np.einsum("jkl,j,k,l", total, old, old, step) / 2.0
    assert packed(thirds).difference(old + step, old) == pytest.approx(expected, rel=1e-5)
