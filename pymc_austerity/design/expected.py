"""How often a test will err, before any decision is known."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import expon, exponnorm

from pymc_austerity.design.boundaries import Boundary
from pymc_austerity.design.error import operating_characteristic
from pymc_austerity.design.looks import Looks

__all__ = ["expected_characteristic", "expected_error"]

_NODES = 257
_REACH = 40.0
"""Distances beyond this many standard errors of the first look are never decided wrongly, and those
beyond this many nats never occur."""

_SMALL = 1e-3
"""Standard deviation of the log-ratio, nats, below which it is treated as constant."""


def expected_error(
    looks: Looks, boundary: Boundary, spread: float, *, acceptance: float = 1.0
) -> float:
    r"""Expected share of wrong decisions of a chain in equilibrium.

    A decision at distance :math:`x = \Delta - \log u` from the threshold is wrong with probability
    :math:`E(x / s)`. For a reversible kernel with a normal log-ratio :math:`\Delta`, its mean is
    :math:`-v / 2` where :math:`v` is its variance, and the acceptance rate is
    :math:`a = 2 \Phi(-\sqrt v / 2)`. As :math:`-\log u` is exponential, :math:`x` has the density
    :math:`f` of a normal plus an exponential variable, and the expected error is

    .. math:: \int E(x / s) \, f(x) \, dx .

    Parameters
    ----------
    looks : Looks
        When the test looks.
    boundary : Boundary
        At which distance it stops.
    spread : float
        Unit :math:`s` of :math:`\mu_{std}`, nats.
    acceptance : float
        Acceptance rate of the proposals, in (0, 1].

    Returns
    -------
    float
        Not above the worst-case error.

    Notes
    -----
    (Derived here.) Without control variates, random-walk steps of :math:`2.38 / \sqrt d` posterior
    standard deviations in each of d directions have :math:`s \approx 2.38` nats: the sum of the
    squared differences is the step's squared length in the metric of the Fisher information.

    Examples
    --------
    >>> from pymc_austerity.design import Boundary, constant_looks, expected_error
    >>> round(expected_error(constant_looks(500, 10_000), Boundary(0.05), 0.1, acceptance=0.5), 3)
    0.012
    """
    return expected_characteristic(looks, boundary, spread, acceptance=acceptance)[0]


def expected_characteristic(
    looks: Looks, boundary: Boundary, spread: float, *, acceptance: float = 1.0
) -> tuple[float, float]:
    """Expected share of wrong decisions, and expected share of the rows that a decision reads.

    Parameters
    ----------
    looks, boundary, spread, acceptance
        As for `expected_error`.
    """
    first = float(np.asarray(looks.shares)[0])
    if len(looks) == 1:
        return 0.0, first
    fine = np.linspace(0.0, 1.0, _NODES) ** 3  # near the threshold
    nearest = _REACH * spread / math.sqrt(looks.information[0])
    nats = np.unique(np.concatenate([nearest * fine, _REACH * fine]))  # of error, and of density
    error, read = operating_characteristic(nats / spread, looks, boundary)
    density = _density(nats, acceptance) + _density(-nats, acceptance)
    wrong = min(np.trapezoid(error * density, nats), error[0])
    return float(wrong), first + float(np.trapezoid((read - first) * density, nats))


def _density(distance: NDArray[np.float64], acceptance: float) -> NDArray[np.float64]:
    """Density of the distance from the threshold, nats."""
    deviation = -2.0 * float(ndtri(acceptance / 2.0))
    if deviation < _SMALL:
        return np.asarray(expon.pdf(distance))
    mean = -0.5 * deviation**2
    return np.asarray(exponnorm.pdf(distance, 1.0 / deviation, loc=mean, scale=deviation))
