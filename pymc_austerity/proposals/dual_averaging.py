"""The step size of Hamiltonian trajectories, learned while a chain is tuning."""

import math
from typing import NamedTuple

__all__ = ["DualAveraging"]

_SHRINKAGE, _OFFSET, _FORGETTING = 0.05, 10.0, 0.75
"""Gamma, t0 and kappa of Hoffman and Gelman (2014), section 3.2.1."""


class DualAveraging(NamedTuple):
    r"""Stochastic approximation of the step size with a given mean acceptance probability.

    .. math::
        \log \epsilon_{t+1} = \mu - \frac{\sqrt t}{\gamma} \frac{1}{t + t_0}
        \sum_{i \le t} (\delta - \alpha_i)

    with :math:`\mu = \log(10 \epsilon_1)`, and finally an average of :math:`\log \epsilon_t` whose
    weights favor late steps.

    Attributes
    ----------
    log_size, mean_log_size : float
        Current value, and the average of past values.
    about : float
        :math:`\mu`.
    deficit : float
        Average shortfall of the acceptance probability.
    n_steps : int
        :math:`t`.

    References
    ----------
    Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. JMLR 15, 1593-1623, section 3.2.

    Examples
    --------
    >>> search = DualAveraging.begin(1.0)
    >>> for _ in range(500):  # acceptance falls with the step size
    ...     search = search.after(1.0 - 0.4 * min(search.size, 2.0), target=0.8)
    >>> round(search.end().size, 1)
    0.5
    """

    log_size: float
    mean_log_size: float
    about: float
    deficit: float = 0.0
    n_steps: int = 0

    @classmethod
    def begin(cls, size: float) -> "DualAveraging":
        """Search that starts at a given step size."""
        return cls(math.log(size), math.log(size), math.log(10.0 * size))

    @property
    def size(self) -> float:
        """Step size to use now."""
        return math.exp(self.log_size)

    def after(self, acceptance: float, target: float) -> "DualAveraging":
        """The search after one more acceptance probability."""
        n = self.n_steps + 1
        deficit = self.deficit + (target - acceptance - self.deficit) / (n + _OFFSET)
        log_size = self.about - math.sqrt(n) / _SHRINKAGE * deficit
        weight = n**-_FORGETTING
        mean = weight * log_size + (1.0 - weight) * self.mean_log_size
        return DualAveraging(log_size, mean, self.about, deficit, n)

    def end(self) -> "DualAveraging":
        """Replace the step size by the average."""
        return self._replace(log_size=self.mean_log_size)
