"""Rows grouped by their constants and by the directions of their whitened data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.directions import Directions
from pymc_austerity.exact.thin import ROUNDING

__all__ = ["Groups", "group_rows"]

_LEVEL = 2.0
_SHELLS = 6


@dataclass(frozen=True, eq=False)
class Groups:
    r"""Rows stored group by group, with bounds for the rows of each. All arrays are contiguous.

    Attributes
    ----------
    starts : int array, shape (G + 1,)
        Where the rows of each group begin in storage.
    radii : float array, shape (R,)
        Radii of the balls on which the constants hold, ascending.
    largest : float array, shape (R, G)
        The largest constant of each group, a bound on the third derivatives of its rows; infinite
        for none.
    directions : float array, shape (C, d)
        Unit vectors in whitened coordinates; none where rows have several predictors.
    direction : int array, shape (G,)
        Direction of each group.
    cosines, sines : float array, shape (G,)
        Of the largest angle between a group's direction and the whitened data of a row in it; the
        angle is at most a right one.
    rounding : float
        Nats by which rounding may take a row beyond its bound.
    """

    starts: NDArray[np.int64]
    radii: NDArray[np.float64]
    largest: NDArray[np.float64]
    directions: NDArray[np.float64]
    direction: NDArray[np.int64]
    cosines: NDArray[np.float64]
    sines: NDArray[np.float64]
    rounding: float = ROUNDING

    @property
    def n_rows(self) -> int:
        """Rows in all groups."""
        return int(self.starts[-1])

    @property
    def is_single(self) -> bool:
        """Whether groups have directions, as those of rows with one predictor have."""
        return len(self.directions) > 0

    @property
    def n_groups(self) -> int:
        """Number of groups, G."""
        return self.direction.size


def group_rows(
    constants: NDArray[np.float64],
    radii: NDArray[np.float64],
    directions: Directions | None = None,
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
    directions : Directions, optional
        For rows with one predictor.

    Returns
    -------
    order : int array, shape (N,)
        Rows in storage order.
    groups : Groups

    Examples
    --------
    >>> order, groups = group_rows(np.array([[1.0, 9.0, 1.1]]), np.array([3.0]))
    >>> order, groups.starts, groups.largest
    (array([1, 0, 2]), array([0, 1, 3]), array([[9. , 1.1]]))
    """
    n_rows = constants.shape[1]
    keys = [_levels(constants[len(radii) // 2])]
    if directions is not None:
        shells = (directions.angles / (np.pi / 2) * _SHELLS).astype(np.int16)
        keys += [shells, directions.nearest.astype(np.int16)]
    order = np.lexsort(keys)
    differs = np.zeros(order.size - 1, dtype=bool)
    for key in keys:
        differs |= np.diff(key[order]) != 0
    changes = np.flatnonzero(differs) + 1
    starts = np.concatenate([[0], changes, [n_rows]]).astype(np.int64)
    largest = np.array([np.maximum.reduceat(c[order], starts[:-1]) for c in constants])
    radii = np.asarray(radii, dtype=np.float64)
    if directions is None:
        nowhere, flat = np.empty((0, 0)), np.zeros(starts.size - 1)
        return order, Groups(starts, radii, largest, nowhere, flat.astype(np.int64), flat, flat + 1)
    angles = np.maximum.reduceat(directions.angles[order], starts[:-1])
    return order, Groups(
        starts,
        radii,
        largest,
        directions.vectors,
        directions.nearest[order][starts[:-1]].astype(np.int64),
        np.cos(angles),
        np.sin(angles),
    )


def _levels(constants: NDArray[np.float64]) -> NDArray[np.int16]:
    """Powers of two, descending; the first level holds what is infinite, the last one zeros."""
    finite = constants[np.isfinite(constants) & (constants > 0.0)]
    top = finite.max() if finite.size else 1.0
    with np.errstate(divide="ignore"):
        levels = np.floor(np.log(top / constants) / np.log(_LEVEL))
    return np.clip(levels, -1, 64).astype(np.int16)
