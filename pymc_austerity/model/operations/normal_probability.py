r"""The logarithm of the probability that a standard normal variable falls into an interval.

With the center m and the width w of the interval

.. math::
    \log(\Phi(m + w/2) - \Phi(m - w/2))
    = \log w - \tfrac12 m^2 - \tfrac12 \log 2 \pi + K(m w, \tfrac12 w^2)

where the derivatives of K are bounded (`normal_integral`).
"""

from math import log, pi

import numpy as np

from pymc_austerity._pymc import BinaryScalarOp, Elemwise, upgrade_to_float
from pymc_austerity.model.operations import functions, jets
from pymc_austerity.model.operations.intervals import scale
from pymc_austerity.model.operations.jets import Jet, constant_jet
from pymc_austerity.model.operations.normal_integral import taylor_coefficients

__all__ = ["LogNormalProbability", "log_normal_probability", "log_normal_probability_jet"]


class LogNormalProbability(BinaryScalarOp):
    """Of the center and the width of an interval; NaN for widths below zero."""

    def impl(self, center: float, width: float) -> float:
        """Value for two numbers."""
        m, w = (constant_jet(np.asarray(x, dtype=np.float64), 1) for x in (center, width))
        return float(log_normal_probability_jet(m, w, 0)[0,].lower)


log_normal_probability = Elemwise(LogNormalProbability(upgrade_to_float))
"""From centers and widths to nats."""


@np.errstate(all="ignore")
def log_normal_probability_jet(center: Jet, width: Jet, order: int) -> Jet:
    """Taylor coefficients from those of the center and the width of the interval.

    Examples
    --------
    >>> from pymc_austerity.model.operations.intervals import point
    >>> center = {(0,): point(np.zeros(1)), (1,): point(np.ones(1))}
    >>> jet = log_normal_probability_jet(center, {(0,): point(np.ones(1))}, 2)
    >>> round(float(jet[0,].lower[0]), 4), round(float(jet[2,].lower[0]), 4)
    (-0.9599, -0.4597)
    """
    zero = (0,) * len(next(iter(center)))
    p = jets.cauchy_product(center, width, order)
    square, logarithm = (
        jets.compose(width, f(width[zero], order)) for f in (functions.power(2), functions.log)
    )
    q = {m: scale(x, 0.5) for m, x in square.items()}
    total = jets.jet_sum(
        logarithm, jets.compose_two(p, q, taylor_coefficients(p[zero], q[zero], order), order)
    )
    normal = jets.compose(center, functions.power(2)(center[zero], order))
    total = jets.jet_sum(total, {m: scale(x, -0.5) for m, x in normal.items()})
    return jets.jet_sum(total, constant_jet(np.asarray(-0.5 * log(2.0 * pi)), len(zero)))
