"""Sweeps over binary variables, interpreted by Python."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.gibbs.factors import Factors
from pymc_austerity.gibbs.sweep import Outcomes, Plan
from pymc_austerity.parts import part
from pymc_austerity.rows import LARGEST_BLOCK
from pymc_austerity.sequential import Estimate, StoppingRule
from pymc_austerity.sequential.estimates import ESTIMATE, estimate_uniform
from pymc_austerity.sequential.moments import merged, moments_of
from pymc_austerity.sequential.stopping import exceeds_on_all_rows, read_until_clear

__all__ = ["ReferenceSweep", "sweep"]


@dataclass(frozen=True)
class ReferenceSweep:
    r"""Updates of binary entries, each decided by a sequential test on its factors.

    With :math:`M` factors that touch entry :math:`i` and :math:`u` uniform on (0, 1), the entry
    becomes one iff

    .. math:: \frac1M \sum_n \log \frac{f_n(X_i = 1, x_{-i})}{f_n(X_i = 0, x_{-i})}
        > \frac1M \left[\log \frac{u}{1 - u} - \text{exact part}\right]

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

    def __call__(self, state: NDArray, plan: Plan) -> Outcomes:
        """Update the entries one by one, in place."""
        factors, outcomes = self.factors, Outcomes.none_yet(plan.entries.size)
        values = factors.functions.values()
        lists = (factors.order, factors.starts, factors.sizes)
        arguments = factors.data + values
        with np.errstate(all="ignore"):  # differences that are not finite reject
            self._sweep()(
                *self._functions, state, plan, lists, self.batch_size, self._rule, arguments,
                values, outcomes,
            )  # fmt: skip
        return outcomes

    @staticmethod
    def _sweep() -> Callable[..., None]:
        return sweep

    @property
    def _functions(self) -> tuple[Any, Any]:
        """Functions of rows and of the exact part, which return tuples."""
        functions = self.factors.functions
        return (
            lambda *given: (functions.rows(*given),),
            lambda *given: (np.asarray(functions.exact(*given)),),
        )

    @property
    def _rule(self) -> Any:
        return self.rule


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


def sweep(rows, exact, state, plan, lists, batch_size, rule, arguments, values, outcomes):  # type: ignore[no-untyped-def]
    """Update the entries one by one, for Python and for compiled code."""
    order, starts, sizes = lists
    flipped = state.copy()
    for k in range(plan.entries.size):
        entry = plan.entries[k]
        old = state[entry]
        flipped[entry] = 1 - old
        log_exact_ratio = exact(flipped, state, *values)[0][()]
        if math.isfinite(log_exact_ratio):
            log_odds = plan.log_odds[k] if old == 0 else -plan.log_odds[k]
            own = order[starts[entry] : starts[entry] + sizes[entry]]
            survey = FactorSurvey(
                rows, flipped, state, own, arguments, plan.windows[k], batch_size, own.size,
                np.zeros(1, dtype=np.int64), np.zeros(2), math.inf,
            )  # fmt: skip
            log_threshold = log_odds - log_exact_ratio
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
