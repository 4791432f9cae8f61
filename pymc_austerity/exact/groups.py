"""Rows grouped by their constants and by the directions of their whitened data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Groups", "group_rows"]

_LEVEL = 2.0
_SHELLS = 6
_ROUNDS = 8
_SAMPLE = 20_000


@dataclass(frozen=True, eq=False)
class Groups:
    r"""Rows stored group by group, with what bounds the rows of each.

    Attributes
    ----------
    starts : int array, shape (G + 1,)
        Where the rows of each group begin in storage.
    radii : float array, shape (R,)
        Radii of the balls on which the constants hold, ascending.
    constants : float array, shape (R, N)
        Bounds on the third derivatives of each row, in storage order; infinite for none.
    largest : float array, shape (R, G)
        The largest constant of each group.
    directions : float array, shape (C, d)
        Unit vectors in whitened coordinates; empty where directions are not used.
    direction : int array, shape (G,)
        Direction that each group is about.
    angles : float array, shape (G,)
        Largest angle between a group's direction and the whitened data of a row in it, radians.
    """

    starts: NDArray[np.int64]
    radii: NDArray[np.float64]
    constants: NDArray[np.float64]
    largest: NDArray[np.float64]
    directions: NDArray[np.float64]
    direction: NDArray[np.int64]
    angles: NDArray[np.float64]

    @property
    def n_rows(self) -> int:
        """Rows in all groups."""
        return int(self.starts[-1])


def group_rows(
    constants: NDArray[np.float64],
    radii: NDArray[np.float64],
    rng: np.random.Generator,
    *,
    whitened: NDArray[np.float64] | None = None,
    n_directions: int = 1,
) -> tuple[NDArray[np.intp], Groups]:
    r"""Order in which to store rows, and their groups.

    Rows of a group have constants within a factor of two of each other. With one predictor a row
    depends on :math:`z_i \cdot u` alone, and rows are grouped by the direction of :math:`z_i`
    too: then the largest :math:`|z_i \cdot u|` of a group is known without its rows, and is
    far below :math:`|z_i| |u|` for most.

    Parameters
    ----------
    constants : float array, shape (R, N)
        Bounds on the third derivatives of each row, for each radius.
    radii : float array, shape (R,)
        Radii of the balls on which they hold, ascending.
    rng : numpy.random.Generator
        Source of the first directions.
    whitened : float array, shape (N, d), optional
        For rows with one predictor, :math:`z_i`: gradients of the predictor in whitened
        coordinates.
    n_directions : int
        Number of directions; ignored without `whitened`.

    Returns
    -------
    order : int array, shape (N,)
        Rows in storage order.
    groups : Groups

    Examples
    --------
    >>> order, groups = group_rows(
    ...     np.array([[1.0, 9.0, 1.1]]), np.array([3.0]), np.random.default_rng(0))
    >>> order, groups.starts, groups.largest
    (array([1, 0, 2]), array([0, 1, 3]), array([[9. , 1.1]]))
    """
    n_rows = constants.shape[1]
    keys = [_levels(constants[-1])]
    directions, angles = np.empty((0, 0)), np.full(n_rows, np.pi / 2)
    nearest = np.zeros(n_rows, dtype=np.int64)
    if whitened is not None:
        weights = np.where(np.isfinite(constants[-1]), constants[-1], 0.0)
        directions = _directions(whitened, weights, n_directions, rng)
        nearest, angles = _nearest(whitened, directions)
        keys += [(angles / (np.pi / 2) * _SHELLS).astype(np.int64), nearest]
    order = np.lexsort(keys)
    sorted_keys = np.stack(keys)[:, order]
    changes = np.flatnonzero((sorted_keys[:, 1:] != sorted_keys[:, :-1]).any(axis=0)) + 1
    starts = np.concatenate([[0], changes, [n_rows]]).astype(np.int64)
    stored = np.ascontiguousarray(constants[:, order])
    groups = Groups(
        starts,
        np.asarray(radii, dtype=np.float64),
        stored,
        np.maximum.reduceat(stored, starts[:-1], axis=1),
        directions,
        nearest[order][starts[:-1]],
        np.maximum.reduceat(angles[order], starts[:-1]),
    )
    return order, groups


def _levels(constants: NDArray[np.float64]) -> NDArray[np.int64]:
    """Powers of two, descending; the first level holds what is infinite, the last one zeros."""
    finite = constants[np.isfinite(constants) & (constants > 0.0)]
    top = finite.max() if finite.size else 1.0
    with np.errstate(divide="ignore"):
        levels = np.floor(np.log(top / constants) / np.log(_LEVEL))
    return np.clip(levels, -1, 64).astype(np.int64)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)


def _nearest(
    whitened: NDArray[np.float64], directions: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nearest direction of each row, up to its sign, and the angle to it."""
    nearest = np.empty(len(whitened), dtype=np.int64)
    angles = np.empty(len(whitened))
    for start in range(0, len(whitened), _SAMPLE):
        rows = slice(start, start + _SAMPLE)
        cosines = abs(_unit(whitened[rows]) @ directions.T)
        nearest[rows] = np.argmax(cosines, axis=1)
        angles[rows] = np.arccos(np.clip(cosines.max(axis=1), 0.0, 1.0))
    return nearest, np.minimum(angles + 1e-7, np.pi / 2)  # arccos is inexact near one


def _directions(
    whitened: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_directions: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Spherical k-means, blind to signs, on rows drawn in proportion to their weights."""
    shares = (weights + 1e-3 * weights.mean() + np.finfo(float).tiny).astype(np.float64)
    sample = _unit(whitened[rng.choice(len(whitened), _SAMPLE, p=shares / shares.sum())])
    directions = sample[rng.choice(_SAMPLE, n_directions, replace=False)]
    for _ in range(_ROUNDS):
        cosines = sample @ directions.T
        nearest = np.argmax(abs(cosines), axis=1)
        signs = np.sign(cosines[np.arange(_SAMPLE), nearest])
        sums = np.zeros_like(directions)
        np.add.at(sums, nearest, signs[:, None] * sample)
        found = np.linalg.norm(sums, axis=1) > 0.0
        directions = np.where(found[:, None], _unit(sums), directions)
    return directions
