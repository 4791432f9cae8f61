"""Metropolis-Hastings whose decisions read only as many rows as needed."""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import without_traces
from pymc_austerity.arguments import checked_choice, refuse_positional, refuse_unknown
from pymc_austerity.deciding.settings import Settings, refuse_contradictions
from pymc_austerity.proposals import Proposal, ProposalFunction, as_proposal
from pymc_austerity.sequential import Schedule, SequentialTest, StoppingRule
from pymc_austerity.setup.beside import build_among_others
from pymc_austerity.setup.coordinates import best_coordinates
from pymc_austerity.setup.model_inputs import (
    checked_compile_kwargs,
    checked_model,
    checked_variables,
)
from pymc_austerity.setup.prepared import PreparedModel, chosen, prepare
from pymc_austerity.setup.problem import pose
from pymc_austerity.setup.ready import make_ready
from pymc_austerity.setup.setup_progress import setup_progress
from pymc_austerity.setup.support import (
    refuse_beside_sources,
    refuse_uncorrected,
    refuse_unsuitable,
)
from pymc_austerity.step_methods.by_default import (
    best_of_all,
    grouped_if_possible,
    leaves_the_choice,
)
from pymc_austerity.step_methods.deferred import DeferredStep, is_without_model
from pymc_austerity.step_methods.in_compiled_code import compile_now
from pymc_austerity.step_methods.interrupts import clean_interrupt
from pymc_austerity.step_methods.metropolis import MetropolisStep

__all__ = ["AusterityMH"]

_log = logging.getLogger("pymc.austerity")


class AusterityMH(MetropolisStep):
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

    Parameters
    ----------
    vars : sequence of variables or names, optional
        Free variables to sample; all by default. PyMC samples the others with NUTS, on all rows.
    epsilon : float or callable, optional
        Tail probability at which Student's t-test stops, in [0, 0.5]. It bounds the error of one
        look; the whole test is wrong more often. With control variates, it also bounds the share
        by which a look raises small acceptance probabilities. 0 is plain Metropolis-Hastings on all
        rows. The test is looser at first and tightened during tuning. A function from the number of
        a draw, counted from 0 at the first tuning draw, gives the value for each draw. By default,
        no test is used if exact decisions are expected to read fewer rows; otherwise `epsilon` is
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
        None accepts every proposal, and requires one that follows gradients (`LangevinProposal`).
    batch_size : int, optional
        Largest number of rows of the first look; each stratum needs ten, and below 40 there are no
        strata. With uniform samples, the number of rows of every look, 500 by default.
    likelihood : sequence of str, optional
        Names of the observed variables or potentials to subsample; by default, the observed
        variables with the most rows. A likelihood written as ``pm.Potential`` must be named.
    axis : int
        Axis of the rows in their log-likelihood.
    sampling : {"auto", "strata", "windows", "fresh"}
        How rows are sampled. "strata", the default with control variates: by influence, as
        measured on pilot pairs of points. "windows", the default without control variates: short
        runs of consecutive rows in a random order. "fresh": every row drawn anew, as in the paper.
    control_variates : {"auto", 1, 2, 3, None}
        Subtract from each difference its Taylor expansion of this order about the posterior
        mode, whose sum over all rows is known. "auto" is the second order if the model
        allows it, else none; a sequential test uses the third order if pilot pairs of points
        show that it saves many rows. Only the rows with the most influence have third-order
        terms. `explain` reports the order.
    anchor : dict or InferenceData, optional
        Point of the expansion, in place of the mode: values of the free variables, or draws of an
        earlier run, whose mean is used.
    proposal : Proposal or callable, optional
        For example, a `CrankNicolsonProposal` or a `LangevinProposal`; by default
        ``ProposalMixture()`` with control variates, ``SurrogateHamiltonianProposal()`` if a
        normal approximation does not fit, and ``RandomWalkProposal()`` without control variates.
        Or a function ``(point, rng) -> (new point, log-ratio)``, with
        ``log q(point | new) - log q(new | point)`` as log-ratio; it is tried once at the start.
    audit : {"auto"} or float
        Share of the decisions, in [0, 1], that are also checked on all rows, for
        the statistics only. "auto" is a share that costs about 5 % of the run: see
        `pymc_austerity.deciding.audits.affordable_share`. Use 0.1 for final results of a test. If
        decisions are exact, they stay so, and there is nothing to check.
    tune : bool
        Whether to adapt the proposal in the tuning phase.
    tuned : InferenceData or DataTree, optional
        An earlier run of the model. Proposal and test are tuned at construction, on its draws, and
        chains start at its last draws: ``pm.sample(tune=0)`` continues that run.
    steps_per_draw : int
        Transitions between recorded draws. This pays where draws are much alike, as those of a
        random walk, and storing them takes time or memory. Where most proposals are accepted, draws
        are nearly independent already, and more transitions only take more time.
    model : pymc.Model, optional
        By default, the model on the context stack. Outside a model, ``AusterityMH()`` only holds
        settings, for any number of models: ``pm.sample`` constructs the step method.
    rng : int or numpy.random.Generator, optional
        Determines the order of the stored rows, which is fixed by default, and draws outside
        ``pm.sample``, which has its own generator.
    initial_point : dict, optional
        Point at which shapes are read and the model is verified.
    blocked : bool
        Update all variables together; otherwise each has its own step method, on shared rows.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``; the mode is NUMBA by default.
    data : dict of str to source, optional
        Source of all rows, if the model was built on a few of them: for the name of each
        ``pm.Data`` or observed variable that has rows, an array, a file or a table, with rows in
        the same order. Exact decisions read rows that are drawn before the chains in a few passes;
        these draws depend on `rng` and not on ``random_seed``. For sequential tests, all rows are
        stored on this machine, in the order of sampling.
    setup_folder : path, optional
        Where results of passes over `data` are kept for a repetition of the same set-up, as after
        it was killed.

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

    name = "austerity_mh"

    @clean_interrupt
    @without_traces()
    def __new__(cls, vars: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Check the variables before PyMC does, and share one copy of the rows among blocks."""
        refuse_positional(cls, args)
        refuse_unknown(cls, kwargs)
        refuse_contradictions(kwargs)
        checked_choice("blocked", kwargs.get("blocked", True), (True, False))
        if is_without_model(kwargs):
            return DeferredStep(cls, vars, kwargs)
        model = checked_model(kwargs.get("model"))
        variables = checked_variables(vars, model)
        if cls is AusterityMH and leaves_the_choice(cls, kwargs):
            return best_of_all(cls, variables, kwargs)
        if cls is AusterityMH and not kwargs.get("_is_candidate") and kwargs.get("data") is None:
            grouped = grouped_if_possible(cls, variables, kwargs)
            if grouped is not None:
                _log.info(grouped.summary)
                return grouped
        if kwargs.get("blocked") is False and len(variables) > 1:
            kwargs["_prepared"] = prepare(model, **chosen(kwargs))
            return super().__new__(cls, variables, **kwargs)
        prepared = kwargs.pop("_prepared", None)
        step = super().__new__(cls, variables, **kwargs)
        step._prepared_before = prepared  # __init__ gets the arguments as they were
        return step

    @clean_interrupt
    @without_traces()
    def __init__(
        self,
        vars: Sequence | None = None,
        *,
        epsilon: float | Schedule | None = None,
        max_error: float | None = None,
        test: SequentialTest | StoppingRule | Literal["auto", "exact"] | None = "auto",
        batch_size: int | None = None,
        likelihood: Sequence[str] | None = None,
        axis: int = 0,
        sampling: Literal["auto", "strata", "windows", "fresh"] = "auto",
        control_variates: Literal["auto", 1, 2, 3] | None = "auto",
        anchor: Any = None,
        proposal: Proposal[Any] | ProposalFunction | None = None,
        audit: float | Literal["auto"] = "auto",
        tune: bool = True,
        tuned: Any = None,
        steps_per_draw: int = 1,
        model: pm.Model | None = None,
        rng: Any = None,
        initial_point: dict[str, NDArray] | None = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        setup_folder: str | os.PathLike[str] | None = None,
        _prepared: PreparedModel | None = None,
        _is_candidate: bool = False,
    ) -> None:
        if "target" in self.__dict__:  # `best_of_all` has set it up
            return
        self._is_candidate = _is_candidate
        settings = Settings(
            epsilon=epsilon,
            max_error=max_error,
            test=test,
            batch_size=batch_size,
            sampling=sampling,
            control_variates=control_variates,
            audit=audit,
            steps_per_draw=steps_per_draw,
            only_with_surrogate=_is_candidate,
        )
        own_proposal = None if proposal is None else as_proposal(proposal)
        checked_choice("tune", tune, (True, False))
        self.adapts = tune and settings.test is not None  # else nothing is learned
        compile_kwargs = checked_compile_kwargs(compile_kwargs)
        model = checked_model(model)
        variables = checked_variables(vars, model)
        refuse_unsuitable(variables, model, own_proposal)
        refuse_uncorrected(settings, own_proposal)
        if data is not None:
            refuse_beside_sources(settings, tuned)
        before = _prepared or self.__dict__.pop("_prepared_before", None)
        started = time.perf_counter() - (before.seconds if before else 0.0)
        with setup_progress(type(self).__name__) as say:
            prepared = before or prepare(
                model,
                likelihood=likelihood,
                axis=axis,
                rng=rng,
                initial_point=initial_point,
                data=data,
                setup_folder=setup_folder,
                say=say,
            )
            posed = pose(prepared, variables, compile_kwargs)
            problem, self.coordinates = best_coordinates(posed, settings, own_proposal)
            settings.try_bound(problem.start)
            built = build_among_others(
                problem,
                settings,
                own_proposal,
                coordinates=self.coordinates,
                anchor=anchor,
                tuned=tuned,
                say=say,
            )
            self.target, self.proposal, self.surroundings = built[:3]
            self._begin(problem, blocked=blocked, rng=rng)
            say("trying decisions")
            ready = make_ready(built, settings, prepared.rng)
            self.settings, self.decider, self.learnt, self.normality = ready
            self.python_needed = self._why_python()
            if not self.python_needed:
                say("compiling transitions")
                compile_now(self.target, self.decider, self.proposal)
        prepared.end_setup()
        self._finish(
            started,
            problem,
            structure=built.about.structure,
            compiled_as=self.target.compiled_as,
            centered=self.coordinates.names,
            blocks=built.about.blocks,
        )
