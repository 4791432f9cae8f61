"""Gradients from mini-batches, on a function that is made up."""

import numpy as np
import pytest

from pymc_austerity.control_variates import Anchor
from pymc_austerity.rows import AllRows, ArrayRows
from pymc_austerity.setup.gradients import IndependentRows, RowGradients

N_ROWS = 20_000
CENTERS = np.random.default_rng(1).normal(1.0, 2.0, size=N_ROWS)


def gradient(point, about, row_weight, row_free_weight, centers):
    """Of a normal log-density with a cubic term, less its value at the anchor; no prior."""

    def at(x):
        return (centers - x + 0.01 * x**2).sum()

    anchored = (
        0.0 if about is point else at(about) + centers.size * (0.02 * about - 1) * (point - about)
    )
    return row_weight * (at(point) - anchored)


ANCHOR = Anchor(
    np.array([0.9]),
    np.array([CENTERS.sum() - N_ROWS * 0.9 + N_ROWS * 0.01 * 0.81]),
    np.array([[N_ROWS * (0.02 * 0.9 - 1)]]),
    np.eye(1),
)


def gradients(rows, batch_size, anchor=None):
    return RowGradients(
        gradient, rows, anchor, N_ROWS, batch_size, 1, "metropolis", np.dtype("float64")
    )


def exact(point):
    return (CENTERS - point + 0.01 * point**2).sum()


def test_all_rows_give_the_gradient_itself(rng):
    of_all = gradients(AllRows(ArrayRows([CENTERS])), N_ROWS).draw(rng)
    point = np.array([1.2])
    assert of_all(point) == pytest.approx(exact(point))


@pytest.mark.parametrize("anchor", [None, ANCHOR])
def test_mini_batches_are_right_on_average(anchor, rng):
    batches = gradients(IndependentRows(ArrayRows([CENTERS])), 200, anchor)
    point = np.array([1.2])
    draws = np.array([float(np.ravel(batches.draw(rng)(point))[0]) for _ in range(400)])
    error = draws.std() / np.sqrt(draws.size)
    assert draws.mean() == pytest.approx(exact(point), abs=4 * error + 1e-6 * N_ROWS)


def test_an_anchor_makes_them_far_more_exact(rng):
    point, spreads = np.array([1.2]), []
    for anchor in (None, ANCHOR):
        batches = gradients(IndependentRows(ArrayRows([CENTERS])), 200, anchor)
        spreads.append(np.std([batches.draw(rng)(point) for _ in range(50)]))
    assert spreads[1] < 0.01 * spreads[0]


def test_one_mini_batch_is_one_function_of_the_point(rng):
    batch = gradients(IndependentRows(ArrayRows([CENTERS])), 50).draw(rng)
    assert batch(np.array([0.3])) == batch(np.array([0.3]))


def test_rows_are_drawn_independently_in_blocks(rng):
    blocks = list(IndependentRows(ArrayRows([CENTERS])).begin(rng).read(20_000))
    assert [len(block) for (block,) in blocks] == [8_192, 8_192, 3_616]
    drawn = np.concatenate([block for (block,) in blocks])
    assert 0.6 < len(np.unique(drawn)) / N_ROWS < 0.66  # 1 - 1/e of them
