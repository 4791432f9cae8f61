"""Predictors of a row move by no more than the reach of its level."""

import numpy as np

from pymc_austerity.levels import Reach, Span


def test_no_row_moves_farther():
    rng = np.random.default_rng(1)
    n, p, q = 300, 4, 2
    first, second = rng.integers(7, size=n), rng.integers(3, size=n)
    x, w, z = rng.normal(size=(n, p)), rng.normal(size=(n, q)), rng.normal(size=(n, 1))
    entries = np.arange(14).reshape(7, 2), np.arange(14, 17).reshape(3, 1)
    common = np.arange(17, 21)
    root = np.tril(rng.normal(size=(p, p))) + 3.0 * np.eye(p)
    scales = np.tril(rng.normal(size=(7, q, q))) + 2.0 * np.eye(q)

    def largest(norms, levels, n_levels):
        return np.array([norms[levels == g].max() for g in range(n_levels)])

    own = np.sqrt((np.einsum("iq,iqr->ir", w, scales[first]) ** 2).sum(axis=1))
    lengths = np.sqrt(((x @ root) ** 2).sum(axis=1))
    spans = (
        Span(entries[0], np.linalg.inv(scales), largest(own, first, 7), largest(lengths, first, 7)),
        Span(
            entries[1],
            np.ones((3, 1, 1)),
            largest(abs(z[:, 0]), second, 3),
            largest(lengths, second, 3),
        ),
    )
    reach = Reach(common, np.linalg.inv(root), spans)
    for _ in range(50):
        moves = rng.normal(size=21)
        moved = (
            (w * moves[entries[0][first]]).sum(axis=1)
            + z[:, 0] * moves[entries[1][second, 0]]
            + x @ moves[common]
        )
        assert (abs(moved) <= reach.of_levels(0, moves)[first] + 1e-12).all()
        assert (abs(moved) <= reach.of_levels(1, moves)[second] + 1e-12).all()
    only = np.zeros(21)
    only[0] = 1.0
    assert (reach.of_levels(0, only)[1:] == 0.0).all()
