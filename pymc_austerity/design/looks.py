"""When a sequential test looks at the data, how precise it is by then, and where it stops."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from pymc_austerity.arguments import checked_number, checked_tail
from pymc_austerity.errors import SettingError
from pymc_austerity.sequential import further_counts, weight_of_variance
from pymc_austerity.strata import Strata

_NOTHING = 1e-12
"""Variance of an estimate, in squares of the spread, that is due to rounding."""


@dataclass(frozen=True, eq=False)
class Looks:
    r"""Shares of the rows seen at each look of a sequential test.

    Parameters
    ----------
    shares : float array, shape (J,)
        :math:`\pi_j = n_j / N`, increasing; the last one is 1. They are the cost up to a look,
        and a Wang-Tsiatis boundary depends on them.
    effective_shares : float array, shape (J,), optional
        Share of a uniform sample that would estimate the sum as precisely as the rows read so far.
        They determine the error of the test. By default equal to `shares`, as for uniform samples;
        see `effective_shares` for stratified ones.

    Attributes
    ----------
    information : float array, shape (J - 1,)
        :math:`\tau_j = \pi_j / (1 - \pi_j)` of the effective shares at every look but the last:
        the squared reciprocal of the estimate's standard error, in units of `Estimate.spread`.

    Raises
    ------
    SettingError
        If shares do not increase from above 0 to 1.

    Examples
    --------
    >>> from pymc_austerity.design import Looks
    >>> Looks([0.2, 0.5, 1.0]).information
    array([0.25, 1.  ])
    """

    shares: ArrayLike
    effective_shares: ArrayLike | None = None

    def __post_init__(self) -> None:
        shares = _checked(self.shares)
        effective = shares if self.effective_shares is None else _checked(self.effective_shares)
        if effective.shape != shares.shape:
            raise SettingError(
                f"there are {shares.size} shares and {effective.size} effective shares: give one "
                "of each per look."
            )
        object.__setattr__(self, "shares", shares)
        object.__setattr__(self, "effective_shares", effective)

    def __len__(self) -> int:
        return int(np.size(self.shares))

    @property
    def information(self) -> NDArray[np.float64]:
        """Precision of the estimate at every look but the last, in units of 1 / spread squared."""
        effective = np.asarray(self.effective_shares)[:-1]
        return effective / (1.0 - effective)


def _checked(shares: ArrayLike) -> NDArray[np.float64]:
    values = np.array(shares, dtype=np.float64, ndmin=1)
    increasing = values.ndim == 1 and bool(np.all(np.diff(values, prepend=0.0) > 0.0))
    if not (increasing and values.size and values[-1] == 1.0):
        raise SettingError("shares of the rows must increase from above 0 to 1, one per look.")
    values.flags.writeable = False
    return values


def constant_looks(batch_size: int, n_rows: int) -> Looks:
    """Looks of a test that adds the same number of rows each time.

    Parameters
    ----------
    batch_size : int
        Rows added at each look, m.
    n_rows : int
        Number of all rows, N.

    Returns
    -------
    Looks
        The last look reads the remaining rows.

    Examples
    --------
    >>> from pymc_austerity.design import constant_looks
    >>> constant_looks(400, 1_000).shares
    array([0.4, 0.8, 1. ])
    """
    _check_sizes(batch_size, n_rows)
    counts = np.arange(1, -(-n_rows // batch_size) + 1) * batch_size
    return Looks(np.minimum(counts, n_rows) / n_rows)


def doubling_looks(batch_size: int, n_rows: int) -> Looks:
    """Looks of a test that doubles its sample each time.

    Parameters
    ----------
    batch_size : int
        Rows read at the first look, m.
    n_rows : int
        Number of all rows, N.

    Returns
    -------
    Looks
        The last look reads the remaining rows.

    Examples
    --------
    >>> from pymc_austerity.design import doubling_looks
    >>> doubling_looks(200, 1_000).shares
    array([0.2, 0.4, 0.8, 1. ])
    """
    _check_sizes(batch_size, n_rows)
    counts = [batch_size]
    while counts[-1] < n_rows:
        counts.append(2 * counts[-1])
    return Looks(np.minimum(counts, n_rows) / n_rows)


def _check_sizes(batch_size: int, n_rows: int) -> None:
    if not 1 <= batch_size <= n_rows:
        raise SettingError(f"batch_size={batch_size} must lie between 1 and n_rows={n_rows}.")


def effective_shares(variances: ArrayLike, spread: float) -> NDArray[np.float64]:
    r"""Shares of a uniform sample that are equivalent to given looks at a stratified one.

    A uniform sample of a share :math:`\pi` has variance :math:`s^2 (1 - \pi) / \pi`, where
    :math:`s` is `spread`. A look with variance :math:`V_j` is therefore equivalent to a share
    of :math:`\pi_j = s^2 / (s^2 + V_j)`.

    Parameters
    ----------
    variances : float array, shape (J,), nats squared
        Variance of the estimated sum at each look (`Estimate.variance`), falling to 0.
    spread : float
        The unit of :math:`\mu_{std}` (`Estimate.spread`), nats.

    Returns
    -------
    float array, shape (J,)
        For `Looks`. The increments of a stratified estimate are not exactly those of a uniform one,
        but the precision at every look, which is what counts, is the same.

    Examples
    --------
    >>> from pymc_austerity.design import effective_shares
    >>> effective_shares([8.0, 2.0, 0.0], spread=2.0)
    array([0.33333333, 0.66666667, 1.        ])
    """
    squared_spread = spread * spread
    return squared_spread / (squared_spread + np.asarray(variances, dtype=np.float64))


def stratified_spread(strata: Strata, deviations: ArrayLike) -> NDArray[np.float64]:
    r"""The unit of :math:`\mu_{std}` for a stratified sample (`Estimate.spread` at the first look).

    Parameters
    ----------
    strata : Strata
        Sizes of the strata and of the first look.
    deviations : float array, shape (..., H), nats
        Standard deviation of the differences within each stratum.

    Returns
    -------
    float array, shape (...,), nats
    """
    n_seen = strata.n_first
    variance = _variance(strata, strata.first_counts, np.asarray(deviations, dtype=np.float64))
    return np.sqrt(variance * n_seen / (strata.n_rows - n_seen))


def stratified_looks(strata: Strata, deviations: ArrayLike) -> Looks:
    """Looks of a stratified test when the spread of every stratum is known.

    Parameters
    ----------
    strata : Strata
        Sizes of the strata and of the first look.
    deviations : float array, shape (H,), nats
        Standard deviation of the differences within each stratum.

    Returns
    -------
    Looks
        In units of `stratified_spread`. A look after which only rows of strata without spread
        remain is the last, and counts as one at all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.design import stratified_looks
    >>> from pymc_austerity.strata import Strata
    >>> strata = Strata(np.array([10, 990]), np.array([10, 90]))
    >>> stratified_looks(strata, [2.0, 1.0]).shares
    array([0.1 , 0.19, 0.37, 0.73, 1.  ])
    """
    spreads = np.asarray(deviations, dtype=np.float64)
    spread = float(stratified_spread(strata, spreads))
    counts, n_seen, variances = strata.first_counts, [], []
    while (variance := float(_variance(strata, counts, spreads))) > _NOTHING * spread**2:
        n_seen.append(int(counts.sum()))
        variances.append(variance)
        counts = counts + further_counts(strata, counts, spreads)
    effective = effective_shares([*variances, 0.0], spread)
    return Looks(np.array([*n_seen, strata.n_rows]) / strata.n_rows, effective)


def _variance(
    strata: Strata, counts: NDArray[np.int64], deviations: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Variance of the estimated sum, nats squared."""
    weights = map(weight_of_variance, strata.sizes.tolist(), counts.tolist())
    return (deviations**2).dot(list(weights))


@dataclass(frozen=True)
class Boundary:
    r"""Wang-Tsiatis boundary of the standardized distance from the threshold.

    .. math:: G_j = G_0 \, \pi_j^{\alpha - 1/2}, \qquad G_0 = \Phi^{-1}(1 - \epsilon)

    Parameters
    ----------
    epsilon : float
        Tail probability of the normal distribution beyond the boundary as :math:`\pi_j \to 1`, in
        [0, 0.5]; for Pocock boundaries, that of every look.
    alpha : float
        Shape: 1/2 is Pocock's boundary, the same at every look; 0 is O'Brien and Fleming's, which
        hardly ever stops early.

    Raises
    ------
    SettingError
        If `epsilon` lies outside [0, 0.5] or `alpha` is not finite.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 5.1 and supplement.
    Wang, S. K. and Tsiatis, A. A. (1987). Approximately optimal one-parameter boundaries for group
    sequential trials. Biometrics 43(1), 193-199.

    Examples
    --------
    >>> from pymc_austerity.design import Boundary, Looks
    >>> Boundary(epsilon=0.025, alpha=0.0).at(Looks([0.25, 1.0])).round(2)
    array([3.92])
    """

    epsilon: float
    alpha: float = 0.5

    def __post_init__(self) -> None:
        checked_tail("epsilon", self.epsilon)
        checked_number("alpha", self.alpha, np.isfinite, "an exponent", "a finite number")

    def at(self, looks: Looks) -> NDArray[np.float64]:
        """Boundaries at every look but the last, at which all rows are read; shape (J - 1,)."""
        shares = np.asarray(looks.shares)[:-1]
        return abs(ndtri(self.epsilon)) * shares ** (self.alpha - 0.5)
