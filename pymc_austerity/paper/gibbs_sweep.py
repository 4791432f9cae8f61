"""Sweeps over binary variables, from one source that Python interprets and numba compiles."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import address_of_tail, compiled_test
from pymc_austerity.paper.factors import Factors
from pymc_austerity.parts import part
from pymc_austerity.rows import LARGEST_BLOCK
from pymc_austerity.sequential import Estimate, StoppingRule, StudentTTest
from pymc_austerity.sequential.stopping import exceeds_on_all_rows, read_until_clear
from pymc_austerity.sequential.surveys import ESTIMATE, estimate_uniform, merged, moments_of


class SweepPlan(NamedTuple):
    """All random numbers of a sweep; arrays of shape (updates,).

    Attributes
    ----------
    entries : int array
        Entry of each update.
    log_odds : float array
        ``log(u / (1 - u))`` of its uniform number, nats.
    windows : int array
        Position in the random order of the entry's factors at which reading starts.
    audited : bool array
        Whether the update is checked on all factors.
    """

    entries: NDArray[np.int64]
    log_odds: NDArray[np.float64]
    windows: NDArray[np.int64]
    audited: NDArray[np.bool_]


class Outcomes(NamedTuple):
    """Results and costs of the updates of a sweep; arrays of shape (updates,).

    Attributes
    ----------
    flipped : bool array
        Whether the entry changed.
    n_rows_used : int array
        Factors evaluated to decide.
    n_looks : int array
        Looks of the sequential test.
    decision_error : float array
        The stopping rule's error, a probability; 0 for exact decisions.
    standardized_mean : float array
        Estimate of ``mu_std``; NaN if it is not defined.
    exact_flip : int array
        The decision on all factors, 0 or 1; -1 if the update was not audited.
    """

    flipped: NDArray[np.bool_]
    n_rows_used: NDArray[np.int64]
    n_looks: NDArray[np.int64]
    decision_error: NDArray[np.float64]
    standardized_mean: NDArray[np.float64]
    exact_flip: NDArray[np.int64]

    @classmethod
    def none_yet(cls, n_updates: int) -> "Outcomes":
        """Outcomes of updates that need no factor and change nothing."""
        return cls(
            np.zeros(n_updates, dtype=np.bool_),
            np.zeros(n_updates, dtype=np.int64),
            np.zeros(n_updates, dtype=np.int64),
            np.zeros(n_updates),
            np.full(n_updates, np.nan),
            np.full(n_updates, -1),
        )


def statistics_of_sweep(outcomes: Outcomes, sizes: NDArray[np.int64]) -> dict[str, Any]:
    """Statistics of a sweep: counts summed, rates averaged.

    Parameters
    ----------
    outcomes : Outcomes
        Outcomes of the updates.
    sizes : int array, shape (updates,)
        Number of factors that an exact update evaluates.
    """
    used, standardized = outcomes.n_rows_used, outcomes.standardized_mean
    known = standardized[~np.isnan(standardized)]
    audited = outcomes.exact_flip >= 0
    n_wrong = int((audited & (outcomes.exact_flip != outcomes.flipped)).sum())
    n_factors = int(sizes.sum())
    return {
        "accepted": float(outcomes.flipped.mean()),
        "n_rows_used": int(used.sum()),
        "data_fraction": int(used.sum()) / n_factors if n_factors else 0.0,
        "n_looks": int(outcomes.n_looks.sum()),
        "decision_error": float(outcomes.decision_error.mean()),
        "standardized_mean": float(known.mean()) if known.size else math.nan,
        "used_all_rows": bool((used == sizes).all()),
        "audited": bool(audited.any()),
        "audit_agrees": n_wrong == 0,
        "n_audited": int(audited.sum()),
        "n_wrong": n_wrong,
    }


@dataclass(frozen=True)
class ReferenceSweep:
    r"""Updates of binary entries, each decided by a sequential test on its factors.

    With :math:`M` factors that touch entry :math:`i` and :math:`u` uniform on (0, 1), the entry
    becomes one iff

    .. math:: \frac1M \sum_n \log \frac{f_n(X_i = 1, x_{-i})}{f_n(X_i = 0, x_{-i})}
        > \frac1M \left[\log \frac{u}{1 - u} - \text{row-free part}\right]

    The decision is whether to flip the entry, so differences are taken from a state that is
    possible, and infinite differences need no special treatment: the chain never moves to a state
    that was found to be impossible.

    Parameters
    ----------
    factors : Factors
        Factors of every entry.
    rule : StoppingRule
        Rule of the sequential test.
    batch_size : int
        Number of factors of each look.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2013). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. arXiv:1304.5299v1, section 5.
    """

    factors: Factors
    rule: StoppingRule
    batch_size: int

    def __call__(self, state: NDArray, plan: SweepPlan) -> Outcomes:
        """Update the entries one by one, in place."""
        factors, outcomes = self.factors, Outcomes.none_yet(plan.entries.size)
        values = factors.functions.values()
        lists = (factors.order, factors.starts, factors.sizes)
        arguments = factors.data + values
        with np.errstate(all="ignore"):  # differences that are not finite reject
            sweep, functions, rule = self._parts()
            test = self.batch_size, rule
            sweep(*functions, state, plan, lists, test, (arguments, values), outcomes)
        return outcomes

    def _parts(self) -> tuple[Callable[..., None], tuple[Any, Any], Any]:
        """The sweep, functions of rows and of the row-free part that return tuples, the rule."""
        functions = self.factors.functions
        rows, exact = (
            lambda *given: (functions.rows(*given),),
            lambda *given: (np.asarray(functions.exact(*given)),),
        )
        return sweep, (rows, exact), self.rule


class FactorSurvey(NamedTuple):
    """A sample of the factors of an entry: a window of their random order.

    Attributes
    ----------
    function : callable
        Of two states and of positions of factors; returns their differences, in a tuple.
    proposed, current : arrays
        The two states.
    own : int array, shape (n,)
        Factors of the entry in random order.
    arguments : tuple of arrays
        Further arguments of the function.
    window, batch_size, n_rows : int
        Where the window begins, factors of a look, and factors of the entry.
    n_seen : int array, shape (1,)
        Factors seen.
    moments : float array, shape (2,)
        Mean and centered sum of squares of their differences.
    largest_difference : float
        Bound on the absolute differences; it is not known.
    """

    function: Any
    proposed: NDArray
    current: NDArray
    own: NDArray[np.int64]
    arguments: tuple[NDArray, ...]
    window: int
    batch_size: int
    n_rows: int
    n_seen: NDArray[np.int64]
    moments: NDArray[np.float64]
    largest_difference: float

    def look(self) -> Estimate:
        """Evaluate the next factors."""
        return _see(self, min(self.batch_size, self.n_rows - self.n_seen[0]))

    def finish(self) -> Estimate:
        """Evaluate all remaining factors."""
        return _see(self, self.n_rows - self.n_seen[0])


@part(ESTIMATE)
def _see(survey: FactorSurvey, n_new: int) -> Estimate:
    n_rows, n_seen, moments = survey.n_rows, survey.n_seen, survey.moments
    while n_new > 0 and math.isfinite(moments[0]):  # one impossible factor decides
        start = (survey.window + n_seen[0]) % n_rows
        added = min(n_new, n_rows - start, LARGEST_BLOCK)
        block = survey.function(
            survey.proposed, survey.current, survey.own[start : start + added], *survey.arguments
        )[0]
        mean, squares = moments_of(block, 0, added)
        moments[0], moments[1] = merged(n_seen[0], moments[0], moments[1], added, mean, squares)
        n_seen[0] += added
        n_new -= added
    return estimate_uniform(n_rows, n_seen[0], moments[0], moments[1])


def sweep(rows, exact, state, plan, lists, test, given, outcomes):  # type: ignore[no-untyped-def]
    """Update the entries one by one, for Python and for compiled code."""
    order, starts, sizes = lists
    batch_size, rule = test
    arguments, values = given
    flipped = state.copy()
    for k in range(plan.entries.size):
        entry = plan.entries[k]
        old = state[entry]
        flipped[entry] = 1 - old
        log_row_free_ratio = exact(flipped, state, *values)[0][()]
        if math.isfinite(log_row_free_ratio):
            log_odds = plan.log_odds[k] if old == 0 else -plan.log_odds[k]
            own = order[starts[entry] : starts[entry] + sizes[entry]]
            survey = FactorSurvey(
                rows, flipped, state, own, arguments, plan.windows[k], batch_size, own.size,
                np.zeros(1, dtype=np.int64), np.zeros(2), math.inf,
            )  # fmt: skip
            log_threshold = log_odds - log_row_free_ratio
            decision = read_until_clear(survey, log_threshold, rule)
            outcomes.flipped[k] = decision.accept
            outcomes.n_rows_used[k] = decision.n_rows_used
            outcomes.n_looks[k] = min(decision.n_looks, own.size)
            outcomes.decision_error[k] = decision.decision_error
            outcomes.standardized_mean[k] = decision.standardized_mean
            if plan.audited[k]:
                outcomes.exact_flip[k] = exceeds_on_all_rows(survey, log_threshold)
        if outcomes.flipped[k]:
            state[entry] = 1 - old
        else:
            flipped[entry] = old


_compiled_sweep = numba.njit(sweep, error_model="numpy")


@dataclass(frozen=True)
class CompiledSweep(ReferenceSweep):
    """`ReferenceSweep` with `StudentTTest`, without Python code between two factors."""

    rule: StudentTTest

    @staticmethod
    def is_possible(factors: Factors) -> bool:
        """Whether compiled code can call the functions of the factors, and Student's t."""
        compiled = hasattr(getattr(factors.functions.rows, "vm", None), "jit_fn")
        return compiled and address_of_tail() is not None

    def _parts(self) -> tuple[Callable[..., None], tuple[Any, Any], Any]:
        functions: Any = self.factors.functions
        compiled = functions.rows.vm.jit_fn, functions.exact.vm.jit_fn
        return _compiled_sweep, compiled, compiled_test(self.rule)
