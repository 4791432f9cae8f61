"""The error of an acceptance probability relative to the probability itself."""

import math

from numba import types

from pymc_austerity.parts import part

__all__ = ["relative_excess"]

_ROOT_OF_HALF = math.sqrt(0.5)
_LARGE = 700.0
"""Its exponential is still a floating-point number."""


@part(types.float64)
def relative_excess(distance: float, standard_error: float) -> float:
    r"""Share by which a look raises small acceptance probabilities, if it accepts at this distance.

    Let the acceptance probability be :math:`\alpha = e^\Lambda < 1`, and let the estimate of the
    log-ratio :math:`\Lambda` be normal with standard error :math:`s`. A look that accepts
    wherever the estimate is at least :math:`c` above :math:`\log u` accepts wrongly with
    probability

    .. math::
        \int_\alpha^1 \Phi\left(\frac{\Lambda - \log u - c}{s}\right) du \le
        \alpha \left[ e^{s^2 / 2 - c} \, \Phi(s - c / s) - \Phi(-c / s) \right] ,

    by :math:`u = \alpha e^v`, the integral over all :math:`v > 0`, and integration by parts.

    Parameters
    ----------
    distance : float
        :math:`c`, nats, above 0.
    standard_error : float
        :math:`s`, nats, above 0.

    Returns
    -------
    float
        The factor of :math:`\alpha` in the bound.

    Notes
    -----
    (Derived here.) A wrong acceptance that is improbable by itself matters where the right one is
    even less probable. A chain in a tail makes many proposals that should be rejected, and one of
    them accepted by mistake ends its stay. The stationary distribution depends on the ratio of the
    acceptance probabilities of a move and of its reverse. Rejections need no such care:
    with probability :math:`\epsilon` of a wrong one, they lower :math:`\alpha` by a share of
    :math:`\epsilon` at most.

    Examples
    --------
    >>> [round(relative_excess(1.645 * s, s), 3) for s in (0.3, 1.0, 2.0)]
    [0.007, 0.033, 0.126]
    """
    exponent = min(0.5 * standard_error * standard_error - distance, _LARGE)
    statistic = distance / standard_error
    tilted = math.exp(exponent) * math.erfc((statistic - standard_error) * _ROOT_OF_HALF)
    return 0.5 * (tilted - math.erfc(statistic * _ROOT_OF_HALF))
