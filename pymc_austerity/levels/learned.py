"""What a chain learns, while it tunes, of the normal approximations of its blocks."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals.adaptation import linear_average

_NOISE = 10.0
"""Variance of a mean of n standardized distances in a chain, times n."""

_SECOND, _THIRD = 2.0, 6.0
"""Variance of a variance and of a skewness over that of a mean, for a normal distribution."""

_FEWEST, _EVERY = 50, 10
"""Distances before the shapes of levels are used, and between two times that they are computed."""

_WIDER, _NARROWEST, _MOST_SKEWED = 1.2, 0.05, 0.9
"""Of a shape: its variance over the one that was seen, as tails are heavier than those that a chain
has seen; the smallest variance, and the largest skewness: that of half a normal is 0.995."""

_MEAN, _NEWTON = math.sqrt(2.0 / math.pi), 5
"""Of half a standard normal distribution; and steps that solve a cubic equation."""


class Center(NamedTuple):
    """What a chain shows of the mean of a normal approximation, in its standard deviations.

    Attributes
    ----------
    mean : float array
        Of the distances so far, with linearly growing weights: the first ones count least.
    offset : float array
        The mean, shrunk by its noise: in many entries that would move the approximation away.
    n_steps : int
        Number of distances.
    """

    mean: NDArray[np.float64]
    offset: NDArray[np.float64]
    n_steps: int = 0

    def step(self, shown: NDArray[np.float64]) -> "Center":
        """The same after one more distance."""
        n_steps = self.n_steps + 1
        mean = linear_average(self.mean, shown, n_steps)
        return Center(mean, shrunk(mean, _NOISE / n_steps), n_steps)


def shrunk(values: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Values nearer to zero, by the share of noise in their squares."""
    squares = values**2
    known = np.maximum(squares - noise, 0.0)
    return np.asarray(values * known / np.maximum(squares, np.finfo(np.float64).tiny))


class SplitNormals(NamedTuple):
    r"""Distributions with two halves of normal densities, which meet at the mode.

    The density is proportional to :math:`\exp(-(z - m)^2 / 2 s^2)`, where s is one number below m
    and another one above.

    Attributes
    ----------
    mode, below, above : float arrays, of one shape

    References
    ----------
    Wallis, K. F. (2014). The two-piece normal, binormal, or double Gaussian distribution.
    Statistical Science 29(1), 106-112.
    """

    mode: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]

    @classmethod
    @lru_cache(8)
    def standard(cls, shape: tuple[int, ...]) -> "SplitNormals":
        """Standard normal distributions."""
        return cls(np.zeros(shape), np.ones(shape), np.ones(shape))

    def drawn(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """A draw of each."""
        is_below = rng.random(self.mode.shape) * (self.below + self.above) < self.below
        away = np.abs(rng.standard_normal(self.mode.shape))
        return self.mode + np.where(is_below, -self.below, self.above) * away

    @classmethod
    def of_moments(
        cls,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        skewness: NDArray[np.float64],
    ) -> "SplitNormals":
        r"""The distributions with given moments.

        With :math:`d = s_2 - s_1` in standard deviations and :math:`c = \sqrt{2 / \pi}`, the mean
        is :math:`m + c d`, the variance :math:`(1 - c^2) d^2 + s_1 s_2 = 1`, and the skewness
        :math:`c d (1 - (2 - 3 c^2) d^2)`.

        Examples
        --------
        >>> import numpy as np
        >>> from pymc_austerity.levels.learned import SplitNormals
        >>> mean, variance, skewness = np.zeros(1), np.ones(1), np.array([0.5])
        >>> split = SplitNormals.of_moments(mean, variance, skewness)
        >>> [np.round(its, 2).tolist() for its in split]
        [[-0.52], [0.65], [1.3]]
        """
        aim = np.clip(skewness, -_MOST_SKEWED, _MOST_SKEWED) / _MEAN
        curve, apart = 2.0 - 3.0 * _MEAN**2, aim
        for _ in range(_NEWTON):
            squares = curve * apart**2
            apart = apart - (apart * (1.0 - squares) - aim) / (1.0 - 3.0 * squares)
        product = 1.0 - (1.0 - _MEAN**2) * apart**2
        below = 0.5 * (np.sqrt(apart**2 + 4.0 * product) - apart)
        sd = np.sqrt(variance)
        return cls(mean - _MEAN * apart * sd, below * sd, (below + apart) * sd)


class LevelShapes(NamedTuple):
    """What a chain shows of the levels of a factor, in coordinates that were standard normal.

    Levels with few rows are skewed, and their normal approximations are those at the mode.

    Attributes
    ----------
    moments : float array, shape (3, G, q)
        Means of the coordinates, of their squares and of their cubes, with linearly growing
        weights: the first ones count least.
    split : SplitNormals
        Distributions like those that were seen, of shape (G, q).
    n_steps : int
        Number of points that were seen.
    """

    moments: NDArray[np.float64]
    split: SplitNormals
    n_steps: int = 0

    @classmethod
    def begin(cls, shape: tuple[int, ...]) -> "LevelShapes":
        """Nothing has been seen."""
        return cls(np.zeros((3, *shape)), SplitNormals.standard(shape))

    def step(self, shown: NDArray[np.float64]) -> "LevelShapes":
        """The same after one more point."""
        n_steps, powers = self.n_steps + 1, np.stack([shown, shown**2, shown**3])
        known = LevelShapes(linear_average(self.moments, powers, n_steps), self.split, n_steps)
        return known if n_steps < _FEWEST or n_steps % _EVERY else known.end()

    def end(self) -> "LevelShapes":
        """The same with distributions that have the moments, shrunk by their noise."""
        if self.n_steps < _FEWEST:
            return self
        first, second, third = self.moments
        noise = _NOISE / self.n_steps
        variance = np.maximum(second - first**2, _NARROWEST)
        skewness = (third - 3.0 * first * second + 2.0 * first**3) / variance**1.5
        split = SplitNormals.of_moments(
            shrunk(first, noise),
            _WIDER * np.exp(shrunk(np.log(variance), _SECOND * noise)),
            shrunk(skewness, _THIRD * noise),
        )
        return self._replace(split=split)


_UNKNOWN = Center(np.zeros(()), np.zeros(()))


class Learned(NamedTuple):
    """What chains know of the normal approximations of their blocks, by the kind of move.

    Attributes
    ----------
    centers : dict of str to Center
        The means. Shared entries have many rows, whose expansion at the modes of levels with few
        rows is off by more than the spread of the shared entries.
    shapes : dict of str to LevelShapes
        Of the levels of each factor.
    """

    centers: dict[str, Center]
    shapes: dict[str, LevelShapes]

    def offset(self, kind: str) -> NDArray[np.float64] | float:
        """What is added to the mean of the normal approximation for a kind of move."""
        return self.centers.get(kind, _UNKNOWN).offset

    def split(self, kind: str) -> SplitNormals | None:
        """Distributions of the levels of a factor; None where nothing is known."""
        return self.shapes[kind].split if kind in self.shapes else None

    def centered(self, kind: str, distance: NDArray[np.float64]) -> "Learned":
        """The same after one more distance from the mean, for a kind of move."""
        center = self.centers.get(kind, _UNKNOWN).step(distance)
        return self._replace(centers=self.centers | {kind: center})

    def shaped(self, kind: str, distance: NDArray[np.float64]) -> "Learned":
        """The same after one more point of the levels of a factor, for a kind of move."""
        shapes = self.shapes.get(kind) or LevelShapes.begin(distance.shape)
        return self._replace(shapes=self.shapes | {kind: shapes.step(distance)})

    def end(self) -> "Learned":
        """What is known at the end of tuning."""
        return self._replace(shapes={kind: each.end() for kind, each in self.shapes.items()})
