"""Gibbs sampling of binary variables whose updates read only as many factors as needed."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    BernoulliRV,
    RaveledVars,
    StepMethodState,
    dataclass_state,
    without_traces,
)
from pymc_austerity.arguments import (
    checked_batch_size,
    checked_choice,
    checked_fraction,
    checked_tail,
    refuse_positional,
    refuse_unknown,
    unless_auto,
)
from pymc_austerity.errors import SettingError
from pymc_austerity.paper.factors import find_factors
from pymc_austerity.paper.gibbs_sweep import (
    CompiledSweep,
    ReferenceSweep,
    SweepPlan,
    statistics_of_sweep,
)
from pymc_austerity.sequential import StudentTTest
from pymc_austerity.setup.model_inputs import (
    checked_compile_kwargs,
    checked_model,
    checked_variables,
)
from pymc_austerity.setup.prepared import prepare
from pymc_austerity.setup.problem import pose
from pymc_austerity.setup.setup_progress import setup_progress
from pymc_austerity.setup.starts import disperse
from pymc_austerity.step_methods.base import Phase, SubsamplingStep
from pymc_austerity.step_methods.interrupts import clean_interrupt
from pymc_austerity.step_methods.statistics import STATISTICS
from pymc_austerity.step_methods.summary import Words

_USUAL_BATCH = 200
_USUAL_AUDIT = 0.02
"""An update reads half of its factors, so that checking one in fifty costs a fiftieth."""

_STATISTICS = {name: kind for name, kind in STATISTICS.items() if name != "scaling"}
"""Without proposals, there is no size of a proposal."""


def _checked_binary_variables(variables: Any, model: pm.Model) -> list:
    """The value variables of the given Bernoulli variables; by default, of all of them.

    Raises
    ------
    SettingError
        There is none, or a variable has another distribution.
    """
    binary = [rv for rv in model.free_RVs if _is_binary(rv)]
    if variables is None and not binary:
        raise SettingError(
            "the model has no free Bernoulli variable, so there is nothing for AusterityGibbs to "
            "update: use AusterityMH for other variables."
        )
    chosen = checked_variables(binary if variables is None else variables, model)
    for value in chosen:
        random_variable = model.values_to_rvs[value]
        if random_variable not in binary:
            raise SettingError(
                f"{random_variable.name!r} is not a Bernoulli variable, so AusterityGibbs cannot "
                "compare its two values: leave it to another step method, for example with "
                f"vars={[rv.name for rv in binary]!r}."
            )
    return chosen


def _is_binary(random_variable: Any) -> bool:
    node = random_variable.owner
    return node is not None and isinstance(node.op, BernoulliRV)


def flipped_at_random(
    point: NDArray, is_possible: Callable[[NDArray], bool], rng: np.random.Generator
) -> NDArray:
    """Overdispersed start: every entry is zero or one with probability one half.

    Parameters
    ----------
    point : int array, shape (d,)
        Common starting point of the chains.
    is_possible : callable
        Whether the log-density at a point is finite.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    int array, shape (d,)
        The first possible one of ten candidates, each with half as many flips as the previous one;
        the point itself if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> start = np.zeros(4, dtype=int)
    >>> flipped_at_random(start, lambda point: point[0] == 0, np.random.default_rng(2))
    array([0, 0, 1, 1])
    """

    def flipped(probability: float, rng: np.random.Generator) -> NDArray:
        return np.where(rng.random(point.size) < probability, 1 - point, point)

    return disperse(flipped, point, is_possible, rng, width=0.5)


@dataclass_state
class GibbsState(StepMethodState):
    """Everything that changes while a chain runs, and fields that must match on resume."""

    phase: Phase
    epsilon: float = field(metadata={"frozen": True})
    n_rows: int = field(metadata={"frozen": True})
    data_fingerprint: str = field(metadata={"frozen": True})


class MoreSettings(TypedDict, total=False):
    """Settings of `AusterityGibbs` that few need."""

    axis: int
    rng: Any
    initial_point: dict[str, NDArray] | None
    compile_kwargs: dict[str, Any] | None


class AusterityGibbs(SubsamplingStep):
    r"""Gibbs sampling of binary variables with a sequential test on mini-batches of factors.

    For Bernoulli variables whose conditional probability is a product of many factors: rows of a
    ``pm.Potential`` or of an observed variable. The model does not change. With :math:`M` factors
    that touch entry :math:`i` and :math:`u` uniform on (0, 1), the entry becomes one iff

    .. math:: \frac1M \sum_n \log \frac{f_n(X_i = 1, x_{-i})}{f_n(X_i = 0, x_{-i})}
        > \frac1M \log \frac{u}{1 - u}

    (priors and other terms move the threshold). A t-test on a growing sample of the factors
    decides on which side of the threshold the mean lies; once all factors are read, the update is
    exact.

    The factors that touch an entry are found in the model if factors pick entries by constant
    index arrays, as in ``x[i] * x[j]`` with one index per factor. Otherwise every factor is
    assumed to touch every entry.

    Parameters
    ----------
    vars : sequence of variables or names, optional
        Bernoulli variables to update, of any shape; all of the model by default.
    epsilon : float
        Tail probability at which the test stops, in [0, 0.5]. It bounds the error of one look;
        the whole test is wrong more often. 0 is plain Gibbs sampling.
    relative : bool
        Whether a look raises small probabilities of a change by at most a share of `epsilon`, as in
        `StudentTTest`. The paper's test, the default, does not ask for this.
    batch_size : int
        Number of factors of each look.
    likelihood : sequence of str or "auto"
        Names of the potentials or observed variables to subsample; by default, the observed
        variables with the most rows. A potential must be named.
    scan : {"systematic", "random"}
        Update the entries in order, or the same number of randomly selected entries.
    audit : float
        Share of the decisions, in [0, 1], that are also checked on all factors,
        for the statistics only. The draws do not depend on it.
    model : pymc.Model, optional
        By default, the model on the context stack.
    axis : int
        Axis of the factors in their log-likelihood, 0 by default.
    rng : int or numpy.random.Generator, optional
        Determines the order in which factors are stored, which is fixed by default, and draws
        outside ``pm.sample``, which has its own generator.
    initial_point : dict, optional
        Point at which shapes are read and the model is verified.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``; the mode is NUMBA by default. Only in this mode is a whole
        sweep one compiled function.

    Raises
    ------
    NotRowwiseError
        The log-density of one factor needs other factors, or there is no axis of factors.
    DataError
        No observed data and no likelihood named, or a log-density that is not finite at the start.
    SettingError, SettingTypeError
        An argument cannot be used, a variable is not binary, or no factor depends on it.

    Notes
    -----
    A draw is a sweep: as many updates as there are entries. Its statistics in ``sample_stats``,
    each of shape (chain, draw), are sums or averages over the updates:

    ================== ======= ====================================================================
    name               type    meaning
    ================== ======= ====================================================================
    accepted           float64 share of the updates that changed their entry
    n_rows_used        int64   factors evaluated to decide
    data_fraction      float64 the same as a share of those that an exact sweep evaluates
    n_looks            int64   looks of the sequential tests
    decision_error     float64 mean tail probability at the decision; 0 for an exact one
    standardized_mean  float64 mean distance of the factors' mean from the threshold (mu_std)
    used_all_rows      bool    whether all the decisions are exact
    audited            bool    whether any decision was checked on all factors
    audit_agrees       bool    whether every decision that was checked was right
    n_audited          int64   decisions that were checked on all factors
    n_wrong            int64   audited decisions that were wrong
    test_epsilon       float64 `epsilon`
    ================== ======= ====================================================================

    Constants of the run are attributes of ``sample_stats``, among them ``n_rows``, the largest
    number of factors of one update, and ``steps_per_draw``, the number of updates.

    Memory: the data of the factors once, in random order, and an integer for every pair of an entry
    and a factor that touches it, shared by all chains.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2013). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. arXiv:1304.5299v1, section 5.

    Examples
    --------
    A field of 30 binary variables with a factor for each pair:

    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity import AusterityGibbs
    >>> i, j = np.triu_indices(30, k=1)
    >>> strength = np.random.default_rng(1).normal(0.0, 0.1, size=i.size)
    >>> with pm.Model():
    ...     x = pm.Bernoulli("x", 0.5, shape=30)
    ...     _ = pm.Potential("pairs", strength * x[i] * x[j])
    ...     step = AusterityGibbs(likelihood=["pairs"], batch_size=10)
    ...     idata = pm.sample(
    ...         draws=200, tune=50, step=step, chains=2, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> bool(idata.sample_stats["data_fraction"].mean() < 1.0)
    True
    """

    name = "austerity_gibbs"
    _state_class = GibbsState
    stats_dtypes_shapes = _STATISTICS

    @clean_interrupt
    @without_traces()
    def __new__(cls, vars: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Check the variables before PyMC does."""
        refuse_positional(cls, args)
        *named, _ = inspect.signature(cls).parameters
        refuse_unknown(cls.__name__, kwargs, [*named, *MoreSettings.__annotations__])
        model = checked_model(kwargs.get("model"))
        return super().__new__(cls, _checked_binary_variables(vars, model), **kwargs)

    @clean_interrupt
    @without_traces()
    def __init__(
        self,
        vars: Sequence | None = None,
        *,
        epsilon: float = 0.05,
        relative: bool = False,
        batch_size: int = _USUAL_BATCH,
        likelihood: Sequence[str] | Literal["auto"] = "auto",
        scan: Literal["systematic", "random"] = "systematic",
        audit: float = _USUAL_AUDIT,
        model: pm.Model | None = None,
        **more: Unpack[MoreSettings],
    ) -> None:
        self.epsilon = checked_tail("epsilon", epsilon)
        self.audit = checked_fraction("audit", audit, 1.0, "the share of decisions to check")
        batch = checked_batch_size(batch_size)
        checked_choice("scan", scan, ("systematic", "random"))
        self.scan = scan
        checked_choice("relative", relative, (False, True))
        self.rule = StudentTTest(self.epsilon, relative)
        self.audit_rng = np.random.default_rng(0)
        rng, compile_kwargs = more.get("rng"), checked_compile_kwargs(more.get("compile_kwargs"))
        model = checked_model(model)
        variables = _checked_binary_variables(vars, model)
        with setup_progress(type(self).__name__) as say:
            prepared = prepare(
                model,
                likelihood=unless_auto("likelihood", likelihood),
                axis=more.get("axis", 0),
                rng=rng,
                initial_point=more.get("initial_point"),
                say=say,
            )
            problem = pose(prepared, variables, compile_kwargs)
            self.start = problem.start
            say("finding the factors of every entry")
            self.factors = find_factors(problem, shuffle=self.epsilon > 0.0)
            self._begin(problem, blocked=True, rng=rng)
            self.batch_size = int(self.factors.sizes.max()) if self.epsilon == 0.0 else batch
            say("compiling")
            self.sweep = self._built_sweep()
            self._describe(problem)
        self.end_setup(say.seconds)

    def _built_sweep(self) -> ReferenceSweep:
        if not CompiledSweep.is_possible(self.factors):
            return ReferenceSweep(self.factors, self.rule, self.batch_size)
        sweep = CompiledSweep(self.factors, self.rule, self.batch_size)
        sweep(self.start.copy(), self._plan(np.random.default_rng(0), n_updates=0))  # compiles it
        return sweep

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, as they are written to the attributes of ``sample_stats``."""
        return {
            **self._common_constants,
            "n_rows": int(self.factors.sizes.max()),
            "n_factors": self.n_rows,
            "epsilon": self.epsilon,
            "test": self.rule.description.name,
            "acceptance_rule": self.rule.description.acceptance,
            "assumption": self.rule.description.assumption,
            "proposal": f"{self.scan} scan",
            "audit": self.audit,
            "steps_per_draw": self.start.size,
            "control_variates": 0,
            "sampling": "Windows",
            "batch_size": self.batch_size,
        }

    # ------------------------------------------------------------------ one sweep

    def astep(self, apoint: RaveledVars) -> tuple[RaveledVars, list[dict[str, Any]]]:
        """Update every entry, and record the cost."""
        state = np.array(apoint.data)
        if self.phase.is_start:
            self.phase = self.phase.begun()
            state = self._dispersed(state)
        plan = self._plan(self.rng, n_updates=state.size)
        outcomes = self.sweep(state, plan)
        statistics = statistics_of_sweep(outcomes, self.factors.sizes[plan.entries])
        statistics["test_epsilon"] = self.epsilon
        return RaveledVars(state, apoint.point_map_info), [statistics]

    def _plan(self, rng: np.random.Generator, *, n_updates: int) -> SweepPlan:
        """All random numbers of a sweep; exact updates need only one each."""
        entries = np.arange(n_updates)
        if self.scan == "random":
            entries = rng.integers(self.start.size, size=n_updates)
        uniform = rng.random(n_updates)
        with np.errstate(divide="ignore"):  # a uniform number may be 0
            log_odds = np.log(uniform) - np.log1p(-uniform)
        windows = np.zeros(n_updates, dtype=np.int64)
        if self.epsilon > 0.0:
            windows = (rng.random(n_updates) * self.factors.sizes[entries]).astype(np.int64)
        audited = np.zeros(n_updates, dtype=np.bool_)
        if self.audit > 0.0 and self.epsilon > 0.0:
            audited = self.audit_rng.random(n_updates) < self.audit
        return SweepPlan(entries, log_odds, windows, audited)

    # ------------------------------------------------------------------ a chain

    def set_rng(self, rng: Any) -> None:
        """Begin a chain; audits must not change its random numbers."""
        super().set_rng(rng)
        self.audit_rng = self.rng.spawn(1)[0]

    def reset_tuning(self) -> None:
        """Nothing is tuned."""
        self.tune = True

    def stop_tuning(self) -> None:
        """Nothing is tuned."""
        self.tune = False

    def _dispersed(self, state: NDArray) -> NDArray:
        if not np.array_equal(state, self.start):  # the user chose where this chain starts
            return state
        return flipped_at_random(state, self._is_possible, self.rng)

    def _is_possible(self, candidate: NDArray) -> bool:
        return self.factors.is_possible(candidate, self.start)

    # ------------------------------------------------------------------ words

    @property
    def _words(self) -> Words:
        sizes = self.factors.sizes
        fewest, most = int(sizes.min()), int(sizes.max())
        each = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
        how = "found by the index arrays" if self.factors.is_analysed else "all of them"
        test, read = "which is exact; no update can be wrong", "all"
        if self.epsilon > 0.0:
            test = f"by a sequential test ({self.rule.description.summary})"
            read = f"at least {min(self.batch_size, fewest):,} of"
        return Words(
            f"Gibbs sampling of {sizes.size:,} binary entries, {test}.",
            f"{read} {each} factors per update ({self.n_rows:,} in all)",
            (f"Factors of an entry: {how}.", f"Order of updates: {self.scan} scan."),
        )
