"""The factor of the bounds of exact decisions, tuned while a chain is tuning."""

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from pymc_austerity.parts import part

_LEAST_ACCEPTANCE = 0.985
"""Share of the acceptance of all rows; by default a little above 0.95, which is the aim."""

_ROWS_OF_A_STEP = 50.0
"""Number of rows that take as long as the rest of a step."""

_FACTORS = np.geomspace(1.0, 64.0, 19)
_FIRST_WINDOW = 50
MOST_RATIOS = 1_000
"""Candidates of a decision whose residuals enter the estimate of its noise."""
_ALMOST = 0.999
"""Ratios of residual and bound beyond which the variance of a logarithm has no estimate."""


@part(types.int64)
def thinning(n_candidates: int, most: int) -> int:
    """One in how many candidates is looked at, if at most so many are."""
    return max(1, -(-n_candidates // most))


def noise_variance(
    ratios: NDArray[np.float64], inflation: float, factors: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Estimated variance of the log weight of a decision for other inflations of its bounds.

    A row with residual r and bound B contributes :math:`\phi \log^2(\psi / \phi)` with
    :math:`\phi = B - \max(0, r)` and :math:`\psi = \phi + r`, about :math:`r^2 / B`. The
    candidates of a decision are Poisson variables with rates B, so the sum of these contributions
    over B, over candidates, is an unbiased estimate.

    Parameters
    ----------
    ratios : float array, shape (m,)
        :math:`r / B` of the candidates.
    inflation : float
        Of their bounds.
    factors : float array, shape (k,)
        Inflations to estimate the variance for.

    Returns
    -------
    float array, shape (k,), nats squared

    Examples
    --------
    >>> noise_variance(np.array([0.01, -0.02]), 1.0, np.array([1.0, 2.0])).round(4)
    array([0.0005, 0.0003])
    """
    shrunk = np.clip(ratios * (inflation / factors[:, None]), -_ALMOST, _ALMOST)
    phi = 1.0 - np.maximum(0.0, shrunk)
    return factors / inflation * np.sum(phi * np.log1p(shrunk / phi) ** 2, axis=1)


class Inflation(NamedTuple):
    r"""Estimates of the noise of decisions, and the inflation that is chosen from them.

    Where the log-ratio of all rows is normal with variance :math:`s^2` and mean
    :math:`-s^2 / 2`, as it is for reversible moves, and the noise adds a variance v in the same
    way, the acceptance rate is :math:`2 \Phi(-\sqrt{s^2 + v} / 2)`. The acceptance rate of the run
    gives :math:`s^2`. Of the inflations whose v leaves enough of the acceptance, the one with the
    most acceptance for its cost is used. Decisions are weighted by their probability of acceptance,
    because noise does not matter for proposals that are certain to be rejected.

    Attributes
    ----------
    value : float
        Factor of the bounds.
    n_decisions : int
        Decisions in the current window.
    window : int
        Its length.
    tries, acceptance, n_read, n_candidates : float
        Decisions, the sum of their probabilities of acceptance, and rows read, always or as
        candidates at an inflation of 1; older decisions have less weight.
    variances : float array, shape (19,)
        Sums of the variances of the noise for each inflation that is considered, weighted by these
        probabilities.
    least : float
        Smallest acceptable share of the acceptance of all rows.

    Examples
    --------
    >>> start = Inflation.begin(1.0)
    >>> for _ in range(50):
    ...     start = start.after(np.full(40, 0.02), n_rows=40, log_ratio=0.0)
    >>> round(start.value, 1)
    12.7
    """

    value: float
    n_decisions: int
    window: int
    tries: float
    acceptance: float
    n_read: float
    n_candidates: float
    variances: NDArray[np.float64]
    least: float

    @classmethod
    def begin(cls, value: float, least: float = _LEAST_ACCEPTANCE) -> "Inflation":
        """Nothing is known yet."""
        nothing = (0.0, 0.0, 0.0, 0.0, np.zeros(_FACTORS.size))
        return cls(value, 0, _FIRST_WINDOW, *nothing, least)

    def after(
        self,
        ratios: NDArray[np.float64],
        n_rows: int,
        log_ratio: float,
        n_candidates: int | None = None,
    ) -> "Inflation":
        """The state after one more decision; at the end of a window, with a new value.

        Parameters
        ----------
        ratios : float array, shape (m,)
            Residuals of the candidates over their bounds.
        n_rows : int
            Rows read, including those that are always read.
        log_ratio : float
            Log acceptance ratio of the decision, nats.
        n_candidates : int, optional
            If there were more of them than ratios: every so many are given.
        """
        n = ratios.size if n_candidates is None else n_candidates
        probability = float(np.exp(min(0.0, log_ratio)))
        variances = self.variances
        if ratios.size:
            some = ratios[:: thinning(ratios.size, MOST_RATIOS)]
            noise = noise_variance(some, self.value, _FACTORS) * (n / some.size)
            variances = variances + probability * noise
        updated = self._replace(
            n_decisions=self.n_decisions + 1,
            tries=self.tries + 1.0,
            acceptance=self.acceptance + probability,
            n_read=self.n_read + n_rows - n,
            n_candidates=self.n_candidates + n / self.value,
            variances=variances,
        )
        return updated if updated.n_decisions < self.window else updated._next_window()

    def _next_window(self) -> "Inflation":
        return Inflation(
            self._best(),
            0,
            2 * self.window,
            0.5 * self.tries,
            0.5 * self.acceptance,
            0.5 * self.n_read,
            0.5 * self.n_candidates,
            0.5 * self.variances,
            self.least,
        )

    def _best(self) -> float:
        """The cheapest inflation, of those at which acceptance is close to that of all rows."""
        if not self.acceptance > 0.0:
            return self.value
        variances = self.variances / self.acceptance
        total = float(4.0 * ndtri(0.5 * min(1.0, self.acceptance / self.tries)) ** 2)
        now = float(np.interp(np.log(self.value), np.log(_FACTORS), variances))
        without = max(0.0, total - now)
        shares = ndtr(-0.5 * np.sqrt(without + variances)) / ndtr(-0.5 * np.sqrt(without))
        rows = (self.n_read + self.n_candidates * _FACTORS) / self.tries
        gains = np.where(shares >= self.least, shares / (_ROWS_OF_A_STEP + rows), 0.0)
        return float(_FACTORS[np.argmax(gains)] if gains.any() else _FACTORS[-1])
