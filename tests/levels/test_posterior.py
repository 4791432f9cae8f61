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

    def moved(moves):
        return (
            (w * moves[entries[0][first]]).sum(axis=1)
            + z[:, 0] * moves[entries[1][second, 0]]
            + x @ moves[common]
        )

    for _ in range(50):
        anchor, before, after = rng.normal(size=(3, 21))
        differences = (before - anchor, after - anchor, after - before)
        for factor, levels in enumerate((first, second)):
            reaches = reach.of_levels(factor, anchor, before, after)
            for moves, own in zip(differences, reaches, strict=True):
                assert (abs(moved(moves)) <= own[levels] + 1e-12).all()
    nowhere, only = np.zeros((2, 21))
    only[0] = 1.0
    reaches = reach.of_levels(0, nowhere, nowhere, only)
    assert (reaches[:, 1:] == 0.0).all() and (reaches[0] == 0.0).all()
    np.testing.assert_array_equal(reaches[1], reaches[2])
    assert reaches[1, 0] > 0.0
