"""Whether chains agree, and how many effective draws they hold."""

import importlib
import math
import warnings
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

_DIMS = ("chain", "draw")
MIN_DRAWS = 100
"""Number of draws per chain below which nothing is reported, as in PyMC."""

_MOST_EXCESS = 0.01
"""r_hat may be 1.01, as in PyMC."""

_MIN_ESS = 400.0
"""Effective draws of all chains: the error of a mean is then a twentieth of a posterior sd."""

_APART = 1.05
"""r_hat that is not due to few draws: chance explains less in 400 independent draws."""

_FEW_TIMES = 5.0
_ENOUGH = 1_000
"""Draws of all chains above which few effective draws are due to the sampler."""

_MIXES = 25.0
"""Effective draws of each single chain that explores its own region."""

_BEYOND_CHANCE = 10.0
"""Times as far from each other as chance explains, by the variance of the means of chains."""

FROZEN, _FEW_OF_ONE = 10.0, 100.0
"""Effective draws below which a single chain has hardly moved, and of which a long one should have
more."""

_N_CANDIDATES = 20


@dataclass(frozen=True)
class Convergence:
    """The worst entries of the posterior.

    Attributes
    ----------
    n_chains, n_draws : int
        Numbers of chains, and of draws of all chains together.
    name : str
        Entry with the largest `r_hat`, such as ``"tau"``, ``"b[3]"`` or ``"b[Texas]"``.
    r_hat : float
        Its rank-normalized split r_hat.
    ess : float
        Fewest effective draws (bulk) of any entry, in all chains together.
    ess_name : str
        The entry with the fewest effective draws.
    ess_within : float
        Fewest effective draws of entry `name` in a single chain.

    References
    ----------
    Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021).
    Rank-normalization, folding, and localization: an improved R-hat for assessing convergence of
    MCMC. Bayesian Analysis 16(2), 667-718.
    """

    n_chains: int
    n_draws: int
    name: str
    r_hat: float
    ess: float
    ess_name: str
    ess_within: float

    @property
    def chains_disagree(self) -> bool:
        """Whether r_hat exceeds 1.01, or 1.05 in a run of fewer than 1,000 draws."""
        return self.is_apart or (not self.is_short and self.r_hat > 1.0 + _MOST_EXCESS)

    @property
    def is_apart(self) -> bool:
        """Whether more draws of the same kind would be no remedy."""
        return self.r_hat > _APART

    @property
    def is_short(self) -> bool:
        """Whether few effective draws are due to few draws."""
        return self.n_draws < _ENOUGH

    @property
    def has_few_draws(self) -> bool:
        """Whether there are fewer than 400 effective draws."""
        return self.ess < _MIN_ESS

    @property
    def is_too_short(self) -> bool:
        """Whether there are few effective draws among many draws."""
        return self.has_few_draws and not self.is_short

    @property
    def has_several_places(self) -> bool:
        """Whether every chain mixes well, but in a region of its own."""
        by_chance = 2.0 / self.ess_within  # of half a chain, as in r_hat
        is_beyond = self.r_hat**2 - 1.0 > _BEYOND_CHANCE * by_chance
        return self.is_apart and self.ess_within >= _MIXES and is_beyond

    @property
    def more_draws(self) -> str:
        """By how many times as many draws the limits are expected to be met; empty if by many."""
        factor = max(_MIN_ESS / self.ess, (self.r_hat - 1.0) / _MOST_EXCESS)
        if self.is_apart or factor > _FEW_TIMES:
            return ""
        return f"take {math.ceil(10.0 * factor) / 10.0:,.1f} times as many draws"


def convergence_of(idata: Any) -> Convergence | None:
    """Assess the convergence of a run.

    For a large posterior, r_hat and effective draws are computed for the entry of each variable and
    for the 20 other entries whose chains differ most by a cheaper measure: the split r_hat of the
    untransformed values, or of their distances from the mean, whichever is larger.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        A run.

    Returns
    -------
    Convergence or None
        None for one chain, for fewer than 100 draws per chain, and if there are no draws or none
        that vary.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics.convergence import convergence_of
    >>> draws = np.random.default_rng(1).normal(size=(2, 500, 3)) + [[[0, 0, 0]], [[0, 0, 1]]]
    >>> posterior = xr.Dataset({"b": (("chain", "draw", "k"), draws)})
    >>> found = convergence_of(xr.DataTree.from_dict({"posterior": posterior}))
    >>> found.name, round(found.r_hat, 1), found.has_several_places
    ('b[2]', 1.2, True)
    """
    posterior = _posterior(idata)
    if posterior is None or _too_little(posterior):
        return None
    n_chains, n_draws = posterior.sizes["chain"], posterior.sizes["draw"]
    candidates = _candidates(posterior)
    if not candidates:
        return None
    draws = xr.Dataset({k: (_DIMS, values) for k, values in candidates.items()})
    r_hat, ess = _computed("rhat", draws), _computed("ess", draws)
    name = max(r_hat, key=lambda each: r_hat[each])
    ess_name = min(ess, key=lambda each: ess[each])
    within = [_computed("ess", draws[[name]].isel(chain=[i]))[name] for i in range(n_chains)]
    return Convergence(
        n_chains, n_chains * n_draws, name, r_hat[name], ess[ess_name], ess_name, min(within)
    )


def why_not_checked(idata: Any) -> str:
    """Why `convergence_of` returned None, as a clause.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        A run.
    """
    return _too_little(_posterior(idata)) or "no variable varies"


def _too_little(posterior: xr.Dataset | None) -> str:
    if posterior is None or not set(_DIMS) <= set(posterior.sizes):
        return "only the statistics of the run were given, without its draws"
    n_chains, n_draws = posterior.sizes["chain"], posterior.sizes["draw"]
    if n_chains == 1:
        return "there is one chain"
    return f"chains have {n_draws} draws" if n_draws < MIN_DRAWS else ""


def slowest_entry(idata: Any) -> tuple[str, float] | None:
    """The entry of a single chain with the fewest effective draws, if these are too few.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        A run.

    Returns
    -------
    tuple of str and float, or None
        Its name and its effective draws (bulk), which are 1 if all draws are the same; None if
        there are ten or more, of 1,000 draws a hundred or more, for several chains, and for fewer
        than 100 draws.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics.convergence import slowest_entry
    >>> draws = np.random.default_rng(1).normal(size=(1, 500, 2))
    >>> draws[0, :, 1] = 1.0 + 1e-13 * np.cumsum(draws[0, :, 1])
    >>> posterior = xr.Dataset({"b": (("chain", "draw", "k"), draws)})
    >>> name, ess = slowest_entry(xr.DataTree.from_dict({"posterior": posterior}))
    >>> name, ess < 10
    ('b[1]', True)
    """
    posterior = _posterior(idata)
    if posterior is None or posterior.sizes.get("chain") != 1:
        return None
    if posterior.sizes.get("draw", 0) < MIN_DRAWS:
        return None
    candidates = _candidates(posterior)
    if not candidates:
        real = [name for name, values in posterior.items() if _is_constant(values)]
        return (str(real[0]), 1.0) if real else None
    ess = _computed("ess", xr.Dataset({k: (_DIMS, values) for k, values in candidates.items()}))
    name = min(ess, key=lambda each: ess[each])
    least = FROZEN if posterior.sizes["draw"] < _ENOUGH else _FEW_OF_ONE
    return (name, ess[name]) if ess[name] < least else None


def _is_constant(values: xr.DataArray) -> bool:
    """Whether real numbers do not vary from draw to draw."""
    is_real = values.dtype.kind == "f" and set(_DIMS) <= set(values.dims) and values.size > 0
    return is_real and bool((values == values.isel(draw=0)).all())


def _posterior(idata: Any) -> xr.Dataset | None:
    """Draws of the free variables, as in PyMC's own checks; of all where these are not known."""
    group = None if isinstance(idata, xr.Dataset) else getattr(idata, "posterior", None)
    posterior = group.to_dataset() if isinstance(group, xr.DataTree) else group
    attributes = getattr(getattr(idata, "sample_stats", None), "attrs", {})
    free = str(attributes.get("free_variables", "")).split("\n")
    if posterior is None:
        return None
    return posterior[[name for name in posterior if name in free] or list(posterior)]


def _candidates(posterior: xr.Dataset) -> dict[str, NDArray]:
    """Draws of the entries whose chains differ most, of each variable and of all.

    Each has the shape (chain, draw).
    """
    ranked: list[tuple[float, str, NDArray]] = []
    first: list[tuple[float, str, NDArray]] = []
    for name, variable in posterior.data_vars.items():
        if variable.dtype.kind not in "biuf" or not set(_DIMS) <= set(variable.dims):
            continue
        variable = variable.transpose(*_DIMS, ...)
        values, entries = variable.values, variable[0, 0]
        flat = values.reshape(*values.shape[:2], -1)
        scores = np.fmax(_split_r_hat(flat), _split_r_hat(abs(flat - flat.mean(axis=(0, 1)))))
        worst = np.argsort(-scores, kind="stable")[:_N_CANDIDATES]  # NaN comes last
        its = [
            (scores[i], f"{name}{_index(i, entries)}", flat[..., i].astype(float))
            for i in worst
            if not math.isnan(scores[i])
        ]
        first += its[:1]
        ranked += its[1:]
    ranked.sort(key=lambda each: -each[0])
    return {name: draws for _, name, draws in first + ranked[:_N_CANDIDATES]}


def _index(flat: int, entries: xr.DataArray) -> str:
    """Labels of an entry in brackets, as in ``az.summary``; empty for a scalar."""
    places = zip(entries.dims, np.unravel_index(flat, entries.shape), strict=True)
    labels = (entries[dim].values[i] if dim in entries.coords else i for dim, i in places)
    return f"[{', '.join(map(str, labels))}]" if entries.dims else ""


def _split_r_hat(draws: NDArray) -> NDArray:
    """Split r_hat of every entry, shape (k,), from (chain, draw, k); NaN if it does not vary."""
    half = draws.shape[1] // 2
    with np.errstate(all="ignore"):
        draws = draws / np.maximum(np.abs(draws).max(axis=(0, 1)), np.finfo(float).tiny)
        halves = (draws[:, :half], draws[:, half : 2 * half])
        means = np.concatenate([part.mean(axis=1) for part in halves])
        within = np.concatenate([part.var(axis=1) for part in halves]).mean(axis=0)
        between = means.var(axis=0, ddof=1)
        return np.asarray(np.sqrt(1.0 + between / within))


def _computed(name: str, draws: xr.Dataset) -> dict[str, float]:
    """r_hat or bulk effective draws of every entry, by the ArviZ that PyMC itself uses."""
    arviz = importlib.import_module("arviz" if _is_arviz_0() else "arviz_stats")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of chains that did not move
        table = getattr(arviz, name)(draws)
    values = {str(key): float(value) for key, value in table.items()}
    unknown = math.inf if name == "rhat" else 1.0  # chains of one value each
    return {key: unknown if math.isnan(value) else value for key, value in values.items()}


def _is_arviz_0() -> bool:
    """Whether ArviZ is a single package; other packages install parts of ArviZ 1 beside it."""
    try:
        return version("arviz").startswith("0.")
    except PackageNotFoundError:
        return False


def r_hat_of_entries(chains: NDArray) -> NDArray[np.float64]:
    """r_hat of each entry (Gelman and Rubin 1992), infinite if chains stand still apart.

    Parameters
    ----------
    chains : float array, shape (m, n, d)
        Draws of m chains.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.diagnostics.convergence import r_hat_of_entries
    >>> chains = np.random.default_rng(1).normal(size=(4, 200, 3))
    >>> r_hat_of_entries(chains) < 1.1
    array([ True,  True,  True])
    """
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = between / within
    return np.asarray(np.sqrt(1.0 + np.nan_to_num(ratio, nan=0.0, posinf=np.inf)))


def effective_draws(chains: NDArray, but_for: float = 0.0) -> float:
    """Effective draws of the entry that has fewest, in all chains together.

    Autocorrelations of all chains by the Fourier transform, summed over lags in pairs as long as
    these are positive, none more than the one before (Geyer 1992; Vehtari et al. 2021, without
    ranks and splits).

    Parameters
    ----------
    chains : float array, shape (m, n, d)
        Draws of m chains.
    but_for : float
        Share of the entries that may have fewer: of many, the least is far off by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.diagnostics.convergence import effective_draws
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
    longest = np.quantile(np.append(time, 1.0), 1.0 - but_for, method="higher")
    return float(m * n / longest)
