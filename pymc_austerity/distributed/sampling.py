"""``pm.sample``, with chains on the workers of a cluster."""

import logging
import math
import os
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from dask.distributed import Client, Event, Future, KilledWorker, as_completed, wait
from threadpoolctl import threadpool_limits

from pymc_austerity._pymc import (
    PopulationArrayStepShared,
    RandomGeneratorState,
    flat_steps,
    get_random_generator,
    get_state_from_generator,
    groups_of_chain,
    join_chains,
    log_warnings,
    random_generator_from_state,
    run_convergence_checks,
)
from pymc_austerity.diagnostics.chains import what_is_wrong
from pymc_austerity.distributed.passes import Parcels, checked_client, passes_on
from pymc_austerity.errors import SettingError, warn_user
from pymc_austerity.rows import SharedRows
from pymc_austerity.step_methods import AusterityMH
from pymc_austerity.step_methods.configured import check_step_methods, with_model

_log = logging.getLogger("pymc.austerity")

_NOT_HERE = {"callback", "cores", "mp_ctx", "nuts_sampler", "return_inferencedata", "trace"}
"""Arguments of ``pm.sample`` about chains in this process."""

_OF_EACH_CHAIN = {
    "chains": 1,
    "cores": 1,
    "blas_cores": None,
    "nuts_sampler": "pymc",
    "compute_convergence_checks": False,
    "progressbar": False,
    "quiet": True,
}

_SECONDS_BETWEEN_LOOKS = 0.5

_one_chain = threading.Lock()  # compilation and limits of threads belong to the whole process


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

    Every chain is a call of ``pm.sample(chains=1)`` on a worker, with the step method that was set
    up here and the seed that the chain has in a run of ``pm.sample`` with all chains: the draws
    are the same.

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
        Other arguments of ``pm.sample``, such as ``var_names``, ``initvals``,
        ``discard_tuned_samples`` and ``idata_kwargs``. There is no progress bar.

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
    The model is sent once to each worker. Workers on this machine read the rows of the step method
    from files that they share with this process; others are sent these rows as well.

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
    ...     idata = pymc_austerity.distributed.sample(model, client=client, chains=2, random_seed=1)
    >>> idata.posterior["mean"].shape
    (2, 1000)
    """
    client = checked_client(client)
    for name in sorted(set(settings) & _NOT_HERE):
        raise SettingError(
            f"{name}={settings[name]!r} has no meaning on a cluster, whose workers run the chains: "
            "leave it out."
        )
    model = pm.modelcontext(model)
    with model, passes_on(client):
        step = with_model(AusterityMH() if step is None else step, model)
    _refuse_population(flat_steps(step))
    check_step_methods(model, flat_steps(step), None, {}, settings.get("var_names"))
    settings |= {"model": model, "step": step, "draws": draws}
    settings |= {} if tune is None else {"tune": tune}
    given = settings.pop("initvals", None)
    initvals = [given] * chains if given is None or isinstance(given, Mapping) else given
    rngs = _generators_before(get_random_generator(random_seed), chains)
    stop = f"pymc_austerity-{uuid.uuid4().hex}"
    parcels = Parcels(rows_as_paths=_read_files(client))
    # the result of a task, which is done again where it is lost
    sent = client.submit(bytes, parcels.pickled(settings | _OF_EACH_CHAIN), pure=False)
    own = {"sent": sent, "stop": stop, "blas_threads": blas_cores, "pure": False}
    futures = client.map(_chain, range(chains), rngs, initvals, **own)
    found = _collected(futures, Event(stop, client=client))
    idata = join_chains(found, model, settings.get("idata_kwargs") or {})
    checks = settings.get("compute_convergence_checks", True)
    if checks and not settings.get("quiet", False):
        log_warnings(run_convergence_checks(idata, model))
    if sentence := what_is_wrong(idata, look_at_draws=checks):
        warn_user(sentence)
    return idata


def _refuse_population(steps: Sequence[Any]) -> None:
    if any(isinstance(step, PopulationArrayStepShared) for step in steps):
        raise SettingError(
            "a step method whose chains learn from each other, such as DEMetropolis, cannot run "
            "each chain by itself: choose another one, or call pm.sample."
        )


def _read_files(client: Client) -> bool:
    """Whether all workers read the files of this process."""
    trial = SharedRows((np.zeros(1),), np.zeros(1, dtype=np.intp))
    return all(client.run(os.path.exists, trial.folder).values())


def _generators_before(rng: np.random.Generator, chains: int) -> list[RandomGeneratorState]:
    """For each chain, a generator whose next child is that of the chain in ``pm.sample``."""
    states = []
    for _ in range(chains):
        states.append(get_state_from_generator(rng))
        rng.spawn(1)
    return states


def _collected(futures: Sequence[Future], stop: Event) -> list[dict[str, xr.Dataset]]:
    """Chains that were not lost; after Ctrl-C, with the draws that they have."""
    try:
        for future in as_completed(futures):
            if not isinstance(future.exception(), KilledWorker):
                future.result()  # raises its error
    except KeyboardInterrupt:
        _log.info("Interrupted: chains return the draws that they have.")
        stop.set()
        wait(futures)
    finally:
        stop.set()
    lost = "; ".join(
        f"chain {number}: {future.exception()}"
        for number, future in enumerate(futures)
        if future.status != "finished"
    )
    found = [future.result() for future in futures if future.status == "finished"]
    if not found:
        raise RuntimeError(f"no chain has ended ({lost}): look at the logs of the workers.")
    if lost:
        warn_user(
            f"Some chains were lost ({lost}): the draws are those of the others. Look at the "
            "logs of the workers."
        )
    return found


# ---------------------------------------------------------------------- on a worker


def _chain(
    number: int,
    rng: RandomGeneratorState,
    initvals: Any,
    *,
    sent: bytes,
    stop: str,
    blas_threads: int | None,
) -> dict[str, xr.Dataset]:
    """One chain, the same on any worker."""
    with _one_chain, threadpool_limits(blas_threads):
        idata = pm.sample(
            **pickle.loads(sent),
            initvals=initvals,
            random_seed=random_generator_from_state(rng),
            callback=_asking(Event(stop)),
        )
    groups = groups_of_chain(idata)
    return {name: group.assign_coords(chain=[number]) for name, group in groups.items()}


def _asking(stop: Event) -> Callable[..., None]:
    """A callback of ``pm.sample`` that ends the chain as Ctrl-C does, if it is asked to."""
    asked_at = -math.inf

    def ask(**_: Any) -> None:
        nonlocal asked_at
        if time.monotonic() - asked_at > _SECONDS_BETWEEN_LOOKS:
            asked_at = time.monotonic()
            if stop.is_set():
                raise KeyboardInterrupt

    return ask
