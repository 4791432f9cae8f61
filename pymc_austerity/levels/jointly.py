"""Common entries and levels of smaller factors, moved at once together with the largest factor."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.along import AlongWithLevels
from pymc_austerity.levels.decide import Moved
from pymc_austerity.levels.moves import crank_nicolson
from pymc_austerity.levels.normals import LevelNormals, normals_of
from pymc_austerity.levels.posterior import GroupedPosterior

__all__ = ["JointBlock", "move_jointly"]

_MOST_WORK = 1e8
"""Most multiplications in a sweep, on average."""


@dataclass(frozen=True, eq=False)
class JointBlock:
    """Constants of the joint normal approximation of some blocks.

    Levels of crossed factors and common entries depend on each other: if every row reads one of
    each, one can rise and the other fall. Moves of one block at a time are slow in this direction.

    Attributes
    ----------
    entries : int array, shape (s,)
        Common entries, if any, and levels of smaller factors than the first.
    precision : float array, shape (s, s)
        Precision of the rows, and of the exact part for the common entries, at the anchor.
    between : float array, shape (G, q, s)
        Precision between the levels of the first factor and the entries.
    shift : float array, shape (s,)
        Average change of the gradient of the rows due to the uncertainty of these levels.
    common : int array, shape (p,)
        Which of `entries` are common.
    factors : sequence of (int, int array of shape (G, q))
        Numbers of the factors, and which of `entries` are their levels.
    """

    entries: NDArray[np.int64]
    precision: NDArray[np.float64]
    between: NDArray[np.float64]
    shift: NDArray[np.float64]
    common: NDArray[np.int64]
    factors: Sequence[tuple[int, NDArray[np.int64]]]

    @property
    def affordable(self) -> float:
        """Share of the sweeps that can include this move, which is slow with many entries."""
        work = self.between.size * self.entries.size + self.entries.size**3
        return min(1.0, _MOST_WORK / work)

    @property
    def blocks(self) -> list[NDArray[np.int64]]:
        """Entries that other moves take one after the other, each of shape (n, size)."""
        common = [self.common[None]] if self.common.size else []
        return [*common, *(own for _, own in self.factors)]

    def given_levels(
        self, posterior: GroupedPosterior, theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Precision, and slope at the anchor, given the levels of the first factor there."""
        at_anchor = self._at_anchor(posterior, theta)
        slope = posterior.expansion.slope(at_anchor, self.entries) + self.shift
        precision = self.precision.copy()
        for number, own in self.factors:
            gradients, curvatures = posterior.factors[number].prior_derivatives(at_anchor)
            slope[own] += gradients
            precision[own[:, :, None], own[:, None, :]] -= curvatures
        if posterior.common is not None:
            slope[self.common] += posterior.common.prior_gradient(at_anchor)
        return precision, slope

    def normal(self, posterior: GroupedPosterior, theta: NDArray[np.float64]) -> LevelNormals:
        """Distribution of the entries minus their anchor, given those of other blocks.

        The levels of the first factor are integrated out.
        """
        precision, slope = self.given_levels(posterior, theta)
        _, levels = posterior.level_normals(0, self._at_anchor(posterior, theta))
        flat = (-1, self.entries.size)
        if self.between.shape[1] == 1:
            half = levels.inverse_root[:, 0] * self.between[:, 0]
        else:
            half = np.matmul(levels.inverse_root, self.between).reshape(flat)
        precision -= half.T @ half
        slope -= levels.mean.ravel() @ self.between.reshape(flat)
        return normals_of(precision[None], slope[None])

    def _at_anchor(
        self, posterior: GroupedPosterior, theta: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The point with the entries and the levels of the first factor at the anchor."""
        first, there = posterior.factors[0], theta.copy()
        there[self.entries] = posterior.anchor[self.entries]
        there[first.entries] = first.anchor
        return there


def move_jointly(
    posterior: GroupedPosterior,
    block: JointBlock,
    theta: NDArray[np.float64],
    correlation: float,
    rng: np.random.Generator,
    inflation: float = 1.0,
) -> Moved:
    r"""Move common entries and levels of smaller factors at once, together with the largest factor.

    Parameters
    ----------
    posterior : GroupedPosterior
    block : JointBlock
    theta : float array, shape (d,)
    correlation : float
        Correlation of the proposal with the current position, in coordinates in which the normal
        approximation is standard.
    rng : numpy.random.Generator
    inflation : float
        Factor of the bounds of rows.
    """
    normal, anchor = block.normal(posterior, theta), posterior.anchor[block.entries]
    z = normal.standard((theta[block.entries] - anchor)[None])
    there, log_ratio = crank_nicolson(z, correlation, rng)
    along = AlongWithLevels(posterior, 0, theta, block.entries, inflation=inflation)
    return along.jump(anchor + normal.values(there)[0], float(log_ratio[0]), rng)
