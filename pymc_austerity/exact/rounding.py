"""How far rounding can take a row beyond its bound, measured."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.groups import ROUNDING

_STEP = 1e-4
_SAFETY = 8.0
"""Largest rounding expected in a run over the largest one that was measured."""


def measured_rounding(
    residuals: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
    start: NDArray[np.float64],
    direction: NDArray[np.float64],
) -> float:
    r"""Nats by which rounding may take a residual beyond its bound, at least 1e-9.

    Third differences of the residuals :math:`r(s)` between a point and those at :math:`s` times a
    direction from it,

    .. math:: r(3h) - 3 r(2h) + 3 r(h), \qquad h = 10^{-4},

    are :math:`h^3` times a third derivative, so only rounding remains. This cannot hide rows that
    violate their bounds: their change over the whole direction is multiplied by :math:`h^3`, too.

    Parameters
    ----------
    residuals : callable
        From two points to the residuals of some rows between them, nats; rows with large third
        derivatives, which are always read, should not be among them.
    start, direction : float array, shape (d,)
        A point where a chain may be, and a move of usual size.

    Examples
    --------
    Terms of the size of 10\ :sup:`8` leave a rounding of about :math:`10^{-8}`:

    >>> import numpy as np
    >>> size = np.array([1.0, 1e8])
    >>> def residuals(new, old):
    ...     return (size + new[0] ** 3) - (size + old[0] ** 3)
    >>> one, move = np.array([1.0]), np.array([1.0])
    >>> measured_rounding(lambda new, old: residuals(new, old)[:1], one, move)
    1e-09
    >>> 1e-8 < measured_rounding(residuals, one, move) < 1e-6
    True
    """
    first, second, third = (residuals(start + k * _STEP * direction, start) for k in (1, 2, 3))
    found = abs(third - 3.0 * second + 3.0 * first)
    return max(ROUNDING, _SAFETY * float(found.max(initial=0.0, where=np.isfinite(found))))
