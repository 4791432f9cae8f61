"""How far from the threshold a sequential test stops, look by look."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pymc_austerity.design.looks import Looks
from pymc_austerity.errors import SettingError

__all__ = ["Boundary"]


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
        if not 0.0 <= self.epsilon <= 0.5:
            raise SettingError(f"epsilon is {self.epsilon}: it must lie in [0, 0.5]")
        if not np.isfinite(self.alpha):
            raise SettingError(f"alpha is {self.alpha}: it must be a finite number")

    def at(self, looks: Looks) -> NDArray[np.float64]:
        """Boundaries at every look but the last, at which all rows are read; shape (J - 1,)."""
        shares = np.asarray(looks.shares)[:-1]
        return abs(ndtri(self.epsilon)) * shares ** (self.alpha - 0.5)
