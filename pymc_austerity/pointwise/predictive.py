"""Replications of observed variables, computed block by block if they are stored."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import ArrayLike

from pymc_austerity.model.pointwise import predictive_rows
from pymc_austerity.pointwise.asked import Asked, Generators, observed_names
from pymc_austerity.pointwise.groups import extended
from pymc_austerity.pointwise.storing import Results, Store

__all__ = ["sample_posterior_predictive"]


def sample_posterior_predictive(
    idata: Any,
    *,
    model: pm.Model | None = None,
    var_names: Sequence[str] | None = None,
    rows: ArrayLike | None = None,
    axis: int = 0,
    data: Mapping[str, Any] | None = None,
    store: Store | None = None,
    random_seed: int | None = None,
    extend_inferencedata: bool = True,
    progressbar: bool = True,
) -> Any:
    """Replications of rows at all draws, like ``pm.sample_posterior_predictive``, for many rows.

    Parameters
    ----------
    idata, model, var_names, rows, axis, data, store, extend_inferencedata, progressbar
        As for `compute_log_likelihood`; the group is ``posterior_predictive``. Without `store`,
        everything is kept in memory, 8 bytes for each draw and row.
    random_seed : int, optional
        The same seed gives the same replications, whether they are stored or not.

    Returns
    -------
    InferenceData, DataTree or Dataset
        `idata`, or only the group: variables of shape (chain, draw, ...).

    Raises
    ------
    NotRowwiseError
        Rows cannot be drawn one by one: distributions that are drawn in a loop, draws that rows
        share, variables that depend on another observed variable.
    SettingError, SettingTypeError, StorageError
        As for `compute_log_likelihood`.

    Examples
    --------
    >>> import numpy as np, pymc as pm, xarray as xr
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     _ = pm.Normal("y", mu, 1e-6, observed=np.zeros(1_000_000))
    >>> draws = xr.Dataset({"mu": (("chain", "draw"), [[0.0, 2.0]])})
    >>> run = xr.DataTree.from_dict({"posterior": draws})
    >>> run = sample_posterior_predictive(run, model=model, rows=[3, 7], random_seed=1)
    >>> run["posterior_predictive"]["y"].values.round(3) + 0.0
    array([[[0., 0.],
            [2., 2.]]])
    """
    model, results = pm.modelcontext(model), Results(store)
    seeds = np.random.SeedSequence(random_seed)
    for name in observed_names(model, var_names):
        of_rows = predictive_rows(model, name, axis, tuple(data or ()))
        asked = Asked.of(of_rows, idata, model, rows, data)
        (seed,), samples = seeds.spawn(1), range(asked.draws.size)
        n_generators = len(asked.of_rows.generators)
        slices = asked.slices(len(samples), progressbar=progressbar)
        blocks = (
            (some, asked.evaluated(some, samples, _generators(seed, n_generators, some.start)))
            for some in slices
        )
        results.add(asked, blocks)
    dataset = results.dataset()
    return extended(idata, "posterior_predictive", dataset) if extend_inferencedata else dataset


def _generators(seed: np.random.SeedSequence, n_generators: int, start: int) -> Generators:
    """Separate generators for each draw of each block of rows."""

    def of_draw(number: int) -> list[np.random.Generator]:
        key = (*seed.spawn_key, start, number)
        own = np.random.SeedSequence(seed.entropy, spawn_key=key)
        return [np.random.default_rng(child) for child in own.spawn(n_generators)]

    return of_draw
