"""A bound on the distance of the sampled distribution from the posterior."""

from pymc_austerity.errors import SettingError

__all__ = ["total_variation_bound"]


def total_variation_bound(acceptance_error: float, contraction: float) -> float:
    r"""Bound on the distance between the sampled distribution and the posterior.

    If the exact kernel brings any two distributions closer by a factor :math:`\eta < 1` in total
    variation, and acceptance probabilities are off by at most :math:`\Delta_{max}`, then

    .. math:: d_{TV}(S_0, S_\epsilon) \le \frac{\Delta_{max}}{1 - \eta} .

    Parameters
    ----------
    acceptance_error : float
        :math:`\Delta_{max}`: largest absolute error of the acceptance probability over all pairs
        of points, in [0, 1]. `worst_error` is a bound on it.
    contraction : float
        :math:`\eta` of one step of the exact kernel, in [0, 1).

    Returns
    -------
    float
        Bound on the total variation distance (half the L1 distance of densities), at most 1.

    Raises
    ------
    SettingError
        If an argument is out of range.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, theorem 1.

    Examples
    --------
    >>> from pymc_austerity.design import total_variation_bound
    >>> total_variation_bound(acceptance_error=0.01, contraction=0.75)
    0.04
    """
    if not 0.0 <= acceptance_error <= 1.0:
        raise SettingError(f"acceptance_error is {acceptance_error}: it must lie in [0, 1]")
    if not 0.0 <= contraction < 1.0:
        raise SettingError(f"contraction is {contraction}: it must lie in [0, 1)")
    return min(1.0, acceptance_error / (1.0 - contraction))
