"""Linear predictors of levels, all of them by one loop."""

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.predictors import Design, GatheredRows

__all__ = ["LevelPredictors"]


@dataclass(frozen=True, eq=False)
class LevelPredictors:
    """Sums of a few entries of a point with coefficients: k predictors of each of G levels.

    Attributes
    ----------
    starts : int array, shape (k G + 1,)
        Where the terms of each predictor begin; predictors of one kind are next to each other.
    entries : int array, shape (n,)
        Entries of the point.
    coefficients : float array, shape (n,)
    offsets : float array, shape (k, G)
    """

    starts: NDArray[np.int64]
    entries: NDArray[np.int64]
    coefficients: NDArray[np.float64]
    offsets: NDArray[np.float64]

    @classmethod
    def of(cls, designs: Sequence[Design]) -> "LevelPredictors":
        """Put the terms of k predictors in the order in which they are summed up.

        Examples
        --------
        >>> second = GatheredRows(np.array([1, 0]), np.array([2.0, 3.0]))
        >>> predictors = LevelPredictors.of([Design((second,), np.array([0.5, 0.0]), 2)])
        >>> predictors(np.array([1.0, 10.0]))
        array([[20.5,  3. ]])
        """
        counts, entries, coefficients, offsets = [], [], [], []
        for design in designs:
            n_levels = design.n_rows
            own, factors = [np.empty((n_levels, 0), np.int64)], [np.empty((n_levels, 0))]
            for term in design.terms:
                if isinstance(term, GatheredRows):
                    own.append(term.entries[:, None])
                    factors.append(term.coefficient[:, None])
                else:
                    own.append(np.broadcast_to(term.entries, term.data.shape))
                    factors.append(term.data)
            entries.append(np.hstack(own).astype(np.int64))
            coefficients.append(np.hstack(factors))
            counts += [entries[-1].shape[1]] * n_levels
            offset = 0.0 if design.offset is None else design.offset
            offsets.append(np.broadcast_to(offset, n_levels).astype(np.float64))
        return cls(
            np.cumsum([0, *counts], dtype=np.int64),
            np.concatenate([part.ravel() for part in entries]),
            np.concatenate([part.ravel() for part in coefficients]),
            np.stack(offsets),
        )

    def __call__(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """All predictors at a point of shape (d,), shape (k, G)."""
        etas = np.empty_like(self.offsets)
        _fill_predictors(
            point, self.starts, self.entries, self.coefficients, self.offsets.ravel(), etas.ravel()
        )
        return etas


@numba.njit(cache=True)
def _fill_predictors(
    point: NDArray[np.float64],
    starts: NDArray[np.int64],
    entries: NDArray[np.int64],
    coefficients: NDArray[np.float64],
    offsets: NDArray[np.float64],
    etas: NDArray[np.float64],
) -> None:
    for k in range(etas.size):
        total = offsets[k]
        for term in range(starts[k], starts[k + 1]):
            total += coefficients[term] * point[entries[term]]
        etas[k] = total
