"""Metropolis-Hastings whose decisions read only as many rows as needed."""

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, Never, Unpack

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.deciding.exact import FireflyDecider
from pymc_austerity.proposals import Proposal, ProposalFunction
from pymc_austerity.sequential import Schedule, SequentialTest, StoppingRule
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.setup_progress import Stage
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS, PyMCSteps
from pymc_austerity.step_methods.by_default import best_of_all, best_without_nuts, leaves_the_choice
from pymc_austerity.step_methods.configured import Configured
from pymc_austerity.step_methods.few_rows import FewRowsStep, PerVariable
from pymc_austerity.step_methods.grouped_mh import (
    GroupedStep,
    allows_groups,
    grouped_if_possible,
)
from pymc_austerity.step_methods.request import OptionFields, Options
from pymc_austerity.step_methods.statistics import STATISTICS


class AusterityMH(Configured, ABC):
    r"""Metropolis-Hastings whose decisions read only as many rows as needed.

    Replaces other step methods in ``pm.sample(step=AusterityMH())`` for models whose
    log-likelihood is a sum over rows. A proposal :math:`\theta'` is accepted iff the mean of the
    log-likelihood differences :math:`l_i = \log p(x_i | \theta') - \log p(x_i | \theta)` exceeds
    a threshold. By default each difference is taken relative to its Taylor expansion about the
    posterior mode, whose sum over all rows is known, and decisions are made in one of three ways:

    - If the rest of every row has a bound, rows are drawn at rates that depend on these bounds.
      These decisions leave the posterior exactly invariant (Zhang et al. 2020; Prado et al. 2024).
    - Otherwise, a t-test on a growing sample of rows decides on which side of the threshold the
      mean lies; once all rows are read, the decision is exact (Korattikara et al. 2014).
    - Without an expansion, all rows are read, unless `epsilon`, `max_error` or `test` selects a
      test.

    ``AusterityMH()`` without settings that ask for one of these is whatever is expected to take the
    least time to an effective draw: exact decisions, a test with control variates, a `GroupedMH`
    for models with many groups, or PyMC's NUTS on all rows, where there are few rows, rows depend
    on each other, no normal approximation or surrogate fits, or short chains at the end of set-up
    do not mix. The log gives the reason.

    Inside a model, it is set up at once. Outside, it only holds settings, for any number of models,
    and is set up by ``pm.sample(step=...)``, or by `setup`. Whatever is chosen is an instance of
    `AusterityMH`.

    Parameters
    ----------
    vars : sequence of variables or names, optional
        Free variables to sample; all by default. PyMC samples the others with NUTS, on all rows.
    epsilon : float, callable or "auto"
        Tail probability at which Student's t-test stops, in [0, 0.5]. It bounds the error of one
        look; the whole test is wrong more often. With control variates, it also bounds the share
        by which a look raises small acceptance probabilities. 0 is plain Metropolis-Hastings on all
        rows. The test is looser at first and tightened during tuning. A function from the number of
        a draw, counted from 0 at the first tuning draw, gives the value for each draw. "auto": no
        test is used if exact decisions are expected to read fewer rows; otherwise `epsilon` is
        0.05 with control variates. Without them, all rows are read; if `batch_size` or `sampling`
        is given, the test is that of ``max_error=0.01`` instead.
    max_error : float, optional
        Largest acceptable share of wrong decisions, averaged over all of them, above 0 and below
        0.5, in place of `epsilon`; close decisions may be wrong more often. During tuning, the
        test is designed for the worst case; afterwards, it is the cheapest one for decisions like
        those of the tuning phase.
    test : {"auto", "exact"}, SequentialTest, StoppingRule or None
        Another test, in place of `epsilon`: see `pymc_austerity.sequential`. "exact" leaves the
        posterior exactly invariant: rows are drawn at rates that bound what they can change, which
        requires a model whose rows have such bounds. "auto" is "exact" if no other test is
        requested, the bounds take little time, and decisions read fewer rows than a first look.
        None: without a test, so that every proposal is accepted, which requires one that follows
        gradients (`LangevinProposal`).
    audit : {"auto"} or float
        Share of the decisions, in [0, 1], that are also checked on all rows, for
        the statistics only. "auto" is a share that costs about 5 % of the run: see
        `pymc_austerity.deciding.decider.affordable_share`. Use 0.1 for final results of a test. If
        decisions are exact, they stay so, and there is nothing to check.
    likelihood : sequence of str or "auto"
        Names of the observed variables or potentials to subsample; "auto" is the observed
        variables with the most rows. A likelihood written as ``pm.Potential`` must be named.
    proposal : Proposal, callable or "auto"
        For example, a `CrankNicolsonProposal` or a `LangevinProposal`; "auto" is
        ``ProposalMixture()`` with control variates, ``SurrogateHamiltonianProposal()`` for
        hierarchies and where a normal approximation does not fit, and ``RandomWalkProposal()``
        without control variates.
        Or a function ``(point, rng) -> (new point, log-ratio)``, with
        ``log q(point | new) - log q(new | point)`` as log-ratio; it is tried once at the start.
    data : dict of str to source, optional
        Source of all rows, if the model was built on a few of them: for the name of each
        ``pm.Data`` or observed variable that has rows, an array, a file or a table, with rows in
        the same order. They are stored on this machine once, in the order of sampling, which
        depends on `rng` and not on ``random_seed``.
    resume : InferenceData or DataTree, optional
        An earlier run of the model. Proposal and test, or the metric and steps of NUTS, are tuned
        at set-up, on its draws, and chains start at its last draws: ``pm.sample(tune=0)`` continues
        that run. What `AusterityMH` chose for the earlier run goes on, such as NUTS; a run of
        another sampler leaves the choice open.
    rng : int or numpy.random.Generator, optional
        Determines the order of the stored rows, which is fixed by default, and draws outside
        ``pm.sample``, which has its own generator.
    model : pymc.Model, optional
        By default, the model on the context stack.
    options : Options, optional
        Settings that few need. Each of them is also taken by name.
    **more
        Fields of `Options`: ``AusterityMH(batch_size=500)``.

    Raises
    ------
    NotRowwiseError
        The likelihood of one row needs other rows.
    DataError
        No observed data, or data or log-density that are not finite at the start.
    SettingError, SettingTypeError
        An argument cannot be used, or a variable has one entry per row.

    Warns
    -----
    AusterityWarning
        The means of first looks are not normal enough for the test, or the expected share of wrong
        decisions exceeds `epsilon`.

    Notes
    -----
    "auto" is chosen from the model and its data. None turns a part off: no control variates, no
    test, no limit on wrong decisions, no sources, no earlier run. For `vars`, `model`, `rng` and
    ``initial_point``, None selects the default.

    ``sample_stats`` contains statistics of every draw (``accepted``, ``n_rows_used``,
    ``decision_error``, ...) and, as attributes, constants of the run (``n_rows``, ``epsilon``,
    ``batch_size``, ``setup_seconds``, ...): `pymc_austerity.step_methods.statistics` lists the
    statistics.

    Before the run, the t statistic of first looks at real differences is compared with Student's t;
    the result is in the attribute ``normality``; if the check fails, a warning names the remedy.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML. arXiv:1304.5299.

    Prado, E., Nemeth, C. and Sherlock, C. (2024). Metropolis-Hastings with Scalable Subsampling.
    arXiv:2407.19602.

    Zhang, R., Cooper, A. F. and De Sa, C. (2020). Asymptotically Optimal Exact Minibatch
    Metropolis-Hastings. NeurIPS. arXiv:2006.11677.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity import AusterityMH
    >>> y = np.random.default_rng(1).normal(2.0, 1.0, size=5_000)
    >>> with pm.Model():
    ...     mu = pm.Normal("mu", 0.0, 10.0)
    ...     _ = pm.Normal("y", mu, 1.0, observed=y)
    ...     step = AusterityMH(epsilon=0.05, batch_size=100)
    ...     idata = pm.sample(
    ...         draws=500, step=step, chains=2, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> bool(abs(idata.posterior["mu"].mean() - y.mean()) < 0.01)
    True
    """

    takes = frozenset(field.name for field in fields(Options))

    def __new__(
        cls,
        vars: Any = None,
        *args: Never,
        epsilon: float | Schedule | Literal["auto"] = "auto",
        max_error: float | None = None,
        test: SequentialTest | StoppingRule | Literal["auto", "exact"] | None = "auto",
        audit: float | Literal["auto"] = "auto",
        likelihood: Sequence[str] | Literal["auto"] = "auto",
        proposal: Proposal[Any] | ProposalFunction | Literal["auto"] = "auto",
        data: Mapping[str, Any] | None = None,
        resume: Any = None,
        rng: Any = None,
        model: pm.Model | None = None,
        options: Options | None = None,
        **more: Unpack[OptionFields],
    ) -> Any:
        """Hold the settings, and set up the step method inside a model."""
        return cls._made(locals())

    def _set_up(self, variables: list, model: pm.Model, say: Stage) -> Any:
        request = self._request
        if leaves_the_choice(request):
            return best_of_all(request, variables, model, say)
        prepared: PreparedModel | None = None
        if allows_groups(request):
            prepared = request.prepared(model, say)
            its = {"only_where_best": request.sampler_before != GroupedStep.__name__}
            grouped = grouped_if_possible(request, variables, model, prepared, say, **its)
            if grouped is not None:
                return grouped
            if prepared.has_groups and leaves_the_choice(request, to_nuts=False):
                return best_without_nuts(request, variables, model, prepared, say)
        return FewRowsStep.made(variables, request, model, say, prepared)


for _step in (FewRowsStep, PerVariable, GroupedStep, AllRowsNUTS, PyMCSteps):
    AusterityMH.register(_step)


class FireflyMH(Configured, ABC):
    r"""Firefly Monte Carlo: exact Metropolis-Hastings on the bright rows.

    Each row has a lower bound :math:`B_i` of its likelihood :math:`L_i` whose product over all rows
    is known: the exponential of its second-order expansion about the posterior mode minus a
    bound on the remainder. A row is bright with probability :math:`1 - B_i / L_i`. Decisions on
    proposals are made given the bright rows, and do not read the others. The bright rows are drawn
    anew at every step.

    ``AusterityMH(test="exact")`` works for the same models and accepts more of the same proposals,
    because its rows are drawn by bounds at both points instead of the current point only.

    Parameters
    ----------
    vars, likelihood, proposal, data, resume, rng, model
        As for `AusterityMH`.
    options : Options, optional
        `axis`, `anchor`, `steps_per_draw`, `tune`, `blocked`, `initial_point`, `compile_kwargs`
        and `setup_folder` have a meaning here. Each of them is also taken by name.
    **more
        Fields of `Options`.

    Raises
    ------
    NotRowwiseError
        The likelihood of one row needs other rows.
    DataError
        No observed data, or data or log-density that are not finite at the start.
    SettingError, SettingTypeError
        An argument cannot be used, or rows have no bounds.

    Notes
    -----
    Besides the statistics of `AusterityMH`, ``sample_stats`` contains ``n_bright``, the number
    of bright rows.

    References
    ----------
    Maclaurin, D. and Adams, R. P. (2014). Firefly Monte Carlo: exact MCMC with subsets of data.
    UAI. arXiv 1403.5693.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity import FireflyMH
    >>> y = np.random.default_rng(1).poisson(3.0, size=5_000)
    >>> with pm.Model():
    ...     rate = pm.Normal("rate", 0.0, 10.0)
    ...     _ = pm.Poisson("y", pm.math.exp(rate), observed=y)
    ...     idata = pm.sample(
    ...         draws=500, step=FireflyMH(), chains=2, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> bool(abs(np.exp(idata.posterior["rate"]).mean() - y.mean()) < 0.02)
    True
    >>> bool(idata.sample_stats["n_bright"].mean() < 50)
    True
    """

    takes = AusterityMH.takes - {"batch_size", "sampling", "control_variates"}

    def __new__(
        cls,
        vars: Any = None,
        *args: Never,
        likelihood: Sequence[str] | Literal["auto"] = "auto",
        proposal: Proposal[Any] | ProposalFunction | Literal["auto"] = "auto",
        data: Mapping[str, Any] | None = None,
        resume: Any = None,
        rng: Any = None,
        model: pm.Model | None = None,
        options: Options | None = None,
        **more: Unpack[OptionFields],
    ) -> Any:
        """Hold the settings, and set up the step method inside a model."""
        test = "firefly"
        return cls._made(locals())

    def _set_up(self, variables: list, model: pm.Model, say: Stage) -> Any:
        return FireflyStep.made(variables, self._request, model, say)


@FireflyMH.register
class FireflyStep(FewRowsStep, shown_as="FireflyMH"):
    """Firefly Monte Carlo on some variables of a model."""

    name = "firefly_mh"
    stats_dtypes_shapes = STATISTICS | {"n_bright": (np.int64, [])}
    decider: FireflyDecider

    def _transition(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        self.decider.n_bright = 0  # where rows are not read
        following, statistics = super()._transition(current)
        return following, statistics | {"n_bright": self.decider.n_bright}
