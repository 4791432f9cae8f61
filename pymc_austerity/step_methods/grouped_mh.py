"""Exact Metropolis within Gibbs for models with groups."""

from abc import ABC
from collections.abc import Sequence
from typing import Any, Literal, Never, Unpack

import pymc as pm

from pymc_austerity.arguments import checked_fraction, checked_tail, refuse_positional
from pymc_austerity.step_methods.configured import Configured
from pymc_austerity.step_methods.grouped_step import GroupedStep
from pymc_austerity.step_methods.options import OptionFields, Options
from pymc_austerity.step_methods.request import Request

__all__ = ["GroupedMH"]


class GroupedMH(Configured, ABC):
    r"""Metropolis-Hastings in which every level of a factor has its own decision.

    For models with groups, such as ``a[group] + x @ b`` where the prior of ``a`` has its own mean
    and scale. `AusterityMH()` prefers this step method if a factor has 30 levels or more, with
    200 entries in total or several each, or in a model of more than 300 entries; three
    levels suffice in the non-centered form or with one row each. With few rows, it is NUTS. Other
    settings may exclude this; with an `epsilon`, the model must have more than 300 entries.
    A step is a sweep:

    - entries on which no row depends (means and scales of priors) move given the levels, which
      reads no rows, and then together with the levels, which makes them nearly as independent as if
      the levels were integrated out;
    - all levels of a factor move at once. Given the rest they are independent, so each has a
      proposal from its normal approximation, the exact prior, and its own exact decision;
    - the entries on which all rows depend move given the levels, then jointly with the levels of
      all factors but the largest, whose levels move along;
    - sums that the rows determine, such as that of an intercept and the levels of a factor, are
      kept by exchange moves: one part rises, the other falls, and only the priors matter.

    Decisions are exact unless `epsilon` permits sequential tests. Where rows have bounds, decisions
    read a few rows of each level, drawn at rates that bound what the rows can change. Without
    bounds, they read all rows of a level or, with an `epsilon`, some of them by a sequential test.

    Parameters
    ----------
    vars : sequence of variables or names, optional
        All free variables, which is the default.
    epsilon : float
        For rows without bounds: largest tail probability at which a t-test on some of the rows
        stops, in [0, 0.5]. Decisions about levels of at least 400 rows, and about all rows, are
        then sequential, and can be wrong. At 0, the default, all rows are read and decisions are
        exact. Where rows have bounds, decisions are exact for every `epsilon`.
    audit : float
        Share of the sequential decisions that are checked on all of their rows, in [0, 1]; see
        `pymc_austerity.diagnostics.audit`. If decisions are exact, there is nothing to check.
    likelihood, rng, model
        As for `AusterityMH`.
    resume : InferenceData or DataTree, optional
        An earlier run of the model, as for `AusterityMH`: moves are tuned by sweeps from one of its
        last draws, and chains start at these.
    options : Options, optional
        `axis`, `steps_per_draw`, `tune`, `initial_point` and `compile_kwargs` have a meaning here;
        a step is a sweep over all blocks. Each of them is also taken by name.
    **more
        Fields of `Options`.

    Raises
    ------
    SettingError, SettingTypeError
        An argument cannot be used, or the model has no groups of this kind.
    NotRowwiseError, DataError
        As for `AusterityMH`.

    Notes
    -----
    In addition to the statistics of `AusterityMH`, for whole sweeps, ``sample_stats`` contains for
    each block the share of its proposals that were accepted and the rows that it read:
    ``accepted_common`` and ``n_rows_common``, and so on. The attribute ``blocks`` lists the names.

    References
    ----------
    Zhang, R., Cooper, A. F. and De Sa, C. (2020). Asymptotically optimal exact minibatch
    Metropolis-Hastings. NeurIPS.
    Papaspiliopoulos, O., Roberts, G. O. and Sköld, M. (2007). A general framework for the
    parametrization of hierarchical models. Statistical Science 22(1), 59-73.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity import GroupedMH
    >>> rng = np.random.default_rng(1)
    >>> group = rng.integers(40, size=4_000)
    >>> y = rng.poisson(np.exp(rng.normal(1.0, 0.5, size=40))[group])
    >>> with pm.Model():
    ...     mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
    ...     a = pm.Normal("a", mu, tau, shape=40)
    ...     _ = pm.Poisson("y", pm.math.exp(a[group]), observed=y)
    ...     step = GroupedMH()
    ...     idata = pm.sample(
    ...         draws=300, tune=300, step=step, chains=2, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> bool(0.3 < idata.posterior["tau"].mean() < 0.7)
    True
    >>> idata.sample_stats.attrs["blocks"]
    'untouched, a'
    """

    takes = GroupedStep.options_taken

    def __new__(
        cls,
        vars: Any = None,
        *args: Never,
        epsilon: float = 0.0,
        audit: float = 0.0,
        likelihood: Sequence[str] | Literal["auto"] = "auto",
        resume: Any = None,
        rng: Any = None,
        model: pm.Model | None = None,
        options: Options | None = None,
        **more: Unpack[OptionFields],
    ) -> Any:
        """Hold the settings, and set up the step method inside a model."""
        refuse_positional(cls, args)
        request = Request(
            vars=vars,
            epsilon=checked_tail("epsilon", epsilon),
            audit=checked_fraction("audit", audit, 1.0, "the share of decisions to check"),
            likelihood=likelihood,
            resume=resume,
            rng=rng,
            model=model,
            options=cls._merged(options, more),
        )
        return cls._made(request)

    def _set_up(self, variables: list, model: pm.Model) -> Any:
        return GroupedStep(variables, request=self._request, model=model)


GroupedMH.register(GroupedStep)
