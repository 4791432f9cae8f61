"""``pm.sample``, with chains on the workers of a cluster."""

from typing import Any

import pymc as pm
from dask.distributed import Client

from pymc_austerity._pymc import chains_run_by
from pymc_austerity.distributed.clients import checked_client
from pymc_austerity.distributed.passes import passes_on
from pymc_austerity.distributed.run import ChainsOnWorkers
from pymc_austerity.errors import SettingError
from pymc_austerity.step_methods import AusterityMH

__all__ = ["sample"]

_NOT_HERE = {
    "callback": "chains run elsewhere and return all their draws at once",
    "cores": "the workers of client= decide how many chains run at a time",
    "mp_ctx": "chains run in the workers of client=",
    "nuts_sampler": "the chains are those of step=",
    "trace": "draws are collected in memory",
}


def sample(
    model: pm.Model | None = None,
    *,
    client: Client | None = None,
    draws: int = 1_000,
    tune: int | None = None,
    chains: int = 4,
    step: Any = None,
    random_seed: Any = None,
    blas_cores: int | None = 1,
    **settings: Any,
) -> Any:
    """Sample a model with chains that run as tasks of a Dask cluster.

    Every chain is a separate task, and gets the step method that was set up: compiled functions,
    the expansion of the log-likelihood, and the location of the rows. Seeds, starting points, the
    type of the result and the draws are those of ``pm.sample``.

    Set-up runs once, in this process; its passes over the rows of ``AusterityMH(data=...)`` run on
    the workers if the step method was constructed outside the model, or within `passes_on`.

    Parameters
    ----------
    model : pymc.Model, optional
        By default, the model on the context stack.
    client : dask.distributed.Client, optional
        The cluster; by default, the client that was created last in this process.
    draws, tune, chains : int, optional
        As for ``pm.sample``; 1,000 tuning draws by default.
    step : step method, or list of them, optional
        As for ``pm.sample``; ``AusterityMH()`` by default.
    random_seed : int or numpy.random.Generator, optional
        As for ``pm.sample``. The same seed gives the same draws as ``pm.sample``, on any number of
        workers, even if some are lost on the way.
    blas_cores : int, optional
        Threads of linear algebra in each worker; None sets no limit.
    **settings
        Other arguments of ``pm.sample``, such as ``var_names``, ``initvals``, ``progressbar``,
        ``discard_tuned_samples`` and ``idata_kwargs``.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        As returned by ``pm.sample`` with PyMC 5 and PyMC 6, respectively.

    Raises
    ------
    SettingError
        There is no client, or a setting has no meaning on a cluster.
    SettingTypeError
        The client is asynchronous or is not a client.

    Notes
    -----
    Workers on this machine read the rows from the memory that they share with this process. If
    other workers cannot read them, the rows are sent once to each worker; with
    ``AusterityMH(data=...)`` these are only the rows of the pool.

    A chain whose worker is lost restarts on another one, with the same draws. After Ctrl-C, the
    chains return the draws that they have, as in ``pm.sample``.

    Chains in threads of one worker run one after the other: use ``threads_per_worker=1``.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> from dask.distributed import Client
    >>> import pymc_austerity.distributed
    >>> y = np.random.default_rng(1).normal(3.0, 2.0, 100_000)
    >>> with pm.Model() as model:
    ...     _ = pm.Normal("y", pm.Normal("mean", 0, 10), 2.0, observed=y)
    >>> with Client(processes=False, n_workers=2, dashboard_address=":0") as client:
    ...     idata = pymc_austerity.distributed.sample(
    ...         model, client=client, chains=2, random_seed=1, progressbar=False
    ...     )
    >>> idata.posterior["mean"].shape
    (2, 1000)
    """
    client = checked_client(client)
    run = ChainsOnWorkers(client, blas_cores)
    for name in sorted(set(settings) & set(_NOT_HERE)):
        raise SettingError(
            f"{name}={settings[name]!r} has no meaning on a cluster, because {_NOT_HERE[name]}: "
            "leave it out."
        )
    if not settings.get("return_inferencedata", True):
        raise SettingError(
            "return_inferencedata=False is not supported on a cluster: leave it out."
        )
    if tune is not None:
        settings["tune"] = tune
    model = pm.modelcontext(model)
    with model, passes_on(client), chains_run_by(run):
        return pm.sample(
            draws=draws,
            chains=chains,
            cores=chains,
            step=AusterityMH() if step is None else step,
            random_seed=random_seed,
            blas_cores=None,
            nuts_sampler="pymc",
            **settings,
        )
