"""Step methods as samplers of whole models, as ``pm.sample(sampler=...)`` will ask for."""

from collections.abc import Sequence
from typing import Any

import pymc as pm

from pymc_austerity._pymc import Sampler


class WholeModelSampler:
    """Has the method of PyMC's coming base class of samplers, of which it is a virtual subclass.

    PyMC plans ``pm.sample(sampler=...)`` (pull request 8358). Its samplers hold the settings of an
    algorithm, and get the model and the length of the run when sampling begins.
    """

    def sample_from_init(
        self,
        *,
        model: pm.Model | None = None,
        draws: int = 1000,
        tune: int | None = 1000,
        chains: int | None = None,
        cores: int | None = None,
        initvals: Any = None,
        random_seed: Any = None,
        progressbar: bool = True,
        quiet: bool = False,
        discard_tuned_samples: bool = True,
        keep_warning_stat: bool = False,
        var_names: Sequence[str] | None = None,
        idata_kwargs: dict[str, Any] | None = None,
        compute_convergence_checks: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Sample a model: ``pm.sample(step=self, ...)``, whose arguments these are.

        Returns
        -------
        InferenceData or DataTree
        """
        run = {name: value for name, value in locals().items() if name != "self"}
        run["tune"] = 1000 if tune is None else tune
        return pm.sample(step=self, **run)


if Sampler is not None:
    Sampler.register(WholeModelSampler)
