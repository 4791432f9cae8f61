"""R-hat and effective draws of short chains, for all entries at once."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["effective_draws", "largest_r_hat"]


def largest_r_hat(chains: NDArray) -> float:
    """Largest r_hat of any entry (Gelman and Rubin 1992), infinite if chains stand still apart.

    Parameters
    ----------
    chains : float array, shape (m, n, d)
        Draws of m chains.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.diagnostics.short_chains import largest_r_hat
    >>> chains = np.random.default_rng(1).normal(size=(4, 200, 3))
    >>> bool(largest_r_hat(chains) < 1.1)
    True
    """
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = between / within
    return float(np.sqrt(1.0 + np.max(np.nan_to_num(ratio, nan=0.0, posinf=np.inf))))


def effective_draws(chains: NDArray) -> float:
    """Effective draws of the entry that has fewest, in all chains together.

    Autocorrelations of all chains by the Fourier transform, summed over lags in pairs as long as
    these are positive, none more than the one before (Geyer 1992; Vehtari et al. 2021, without
    ranks and splits).

    Parameters
    ----------
    chains : float array, shape (m, n, d)
        Draws of m chains.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.diagnostics.short_chains import effective_draws
    >>> chains = np.random.default_rng(1).normal(size=(4, 200, 3))
    >>> bool(300 < effective_draws(chains) <= 800)
    True
    """
    m, n, _ = chains.shape
    centered = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centered, 2 * n, axis=1)) ** 2
    autocovariance = np.fft.irfft(spectrum, axis=1)[:, :n].mean(axis=0) / n  # (n, d)
    within = autocovariance[0] * n / (n - 1)
    total = within * (n - 1) / n + chains.mean(axis=1).var(axis=0, ddof=1)
    moves = total > 0.0
    rho = 1.0 - (within - autocovariance)[:, moves] / total[moves]
    pairs = rho[: n // 2 * 2].reshape(n // 2, 2, -1).sum(axis=1)
    pairs = np.minimum.accumulate(np.maximum(pairs, 0.0), axis=0)
    time = np.maximum(2.0 * pairs.sum(axis=0) - 1.0, 1.0)
    return float(m * n / time.max(initial=1.0))
