"""Distributions of new coefficients, learned while a chain is tuning."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Births"]

_SHARE_OF_WIDE = 0.2
_LONG_ENOUGH = 100
_WIDENING = 1.5
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class Births:
    """Distributions of new coefficients: a wide normal mixed with a narrow one.

    Four draws out of five come from the narrow one. For a coefficient that was in the model for
    100 tuning steps or more, it has the mean and 1.5 times the standard deviation of its values;
    for others, its mean is 0 and its standard deviation a usual step of the random walk, which is
    about twice the width of their posterior. The wide one keeps the tails from being too light (a
    defensive mixture; Hesterberg 1995).

    Attributes
    ----------
    wide : float
        Standard deviation of the wide normal, about 0.
    usual_step : float
        Standard deviation of a usual step; 0 if none is known, in which case all draws are from the
        wide normal.
    n_steps : int array, shape (n,)
        Tuning steps for which each coefficient was in the model.
    means, variances : float arrays, shape (n,)
        Moments of its values during these steps, with weights that grow with the cube of the number
        of the step, so that the way to the posterior does not count as spread.
    """

    wide: float
    usual_step: float
    n_steps: NDArray[np.int64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]

    @classmethod
    def begin(cls, n_coefficients: int, wide: float) -> "Births":
        """Initial state, before anything is learned."""
        zeros = np.zeros(n_coefficients)
        return cls(wide, 0.0, zeros.astype(np.int64), zeros, zeros)

    def learn(
        self, active: NDArray[np.int64], values: NDArray, usual_step: float | None = None
    ) -> "Births":
        """The distributions after one more step, with these values in the model.

        `usual_step` is the new one; by default it stays.
        """
        n_steps, means, variances = self.n_steps.copy(), self.means.copy(), self.variances.copy()
        n_steps[active] += 1
        weights = 4.0 / (n_steps[active] + 3)
        distances = values - means[active]
        means[active] += weights * distances
        rest = distances * (values - means[active])
        variances[active] += weights * (rest - variances[active])
        step = self.usual_step if usual_step is None else usual_step
        return Births(self.wide, step, n_steps, means, variances)

    def draw(self, j: int, rng: np.random.Generator) -> float:
        """Value of a new coefficient."""
        normal = rng.standard_normal()
        mean, sd = self._narrow(j)
        if sd == 0.0 or rng.random() < _SHARE_OF_WIDE:
            return self.wide * normal
        return mean + sd * normal

    def log_density(self, j: int, value: float) -> float:
        """Log-density of what `draw` returns, nats."""
        log_wide = _log_normal(value, self.wide)
        mean, sd = self._narrow(j)
        if sd == 0.0:
            return log_wide
        log_narrow = _log_normal(value - mean, sd)
        parts = (log_wide + math.log(_SHARE_OF_WIDE), log_narrow + math.log1p(-_SHARE_OF_WIDE))
        return float(np.logaddexp(*parts))

    def _narrow(self, j: int) -> tuple[float, float]:
        """Mean and standard deviation."""
        if self.n_steps[j] >= _LONG_ENOUGH and self.variances[j] > 0.0:
            return float(self.means[j]), _WIDENING * math.sqrt(self.variances[j])
        return 0.0, self.usual_step


def _log_normal(distance: float, sd: float) -> float:
    return -0.5 * (distance / sd) ** 2 - math.log(sd) - _LOG_ROOT_TWO_PI
