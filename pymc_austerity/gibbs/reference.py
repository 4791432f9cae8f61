"""A sweep in plain Python: slow, and the reference for the compiled sweep."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from numpy.typing import NDArray

from pymc_austerity.gibbs.factors import Factors
from pymc_austerity.gibbs.sweep import Outcomes, Plan
from pymc_austerity.sequential import Decision, StoppingRule, UniformSurvey, audited, exceeds

__all__ = ["ReferenceSweep"]


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
        outcomes = Outcomes.none_yet(plan.entries.size)
        values, data = self.factors.functions.values(), self.factors.data
        flipped = state.copy()
        for k, entry in enumerate(plan.entries):
            old = state[entry]
            flipped[entry] = 1 - old
            log_exact_ratio = float(self.factors.functions.exact(flipped, state, *values))
            if math.isfinite(log_exact_ratio):
                log_odds = plan.log_odds[k] if old == 0 else -plan.log_odds[k]
                stream = _Differences(self.factors, flipped, state, data + values, entry, plan, k)
                decision = self._decide(stream, log_odds - log_exact_ratio, bool(plan.audited[k]))
                _record(outcomes, k, decision)
            state[entry] = flipped[entry] = 1 - old if outcomes.flipped[k] else old
        return outcomes

    def _decide(self, stream: "_Differences", log_threshold: float, audit: bool) -> Decision:
        if stream.size == 0:
            accept = log_threshold < 0.0
            return Decision(accept, 0, 0, 0.0, math.nan, True, accept if audit else None)
        size = min(self.batch_size, stream.size)
        survey = UniformSurvey(stream, n_rows=stream.size, batch_size=size)
        decision = exceeds(survey, log_threshold, rule=self.rule)
        return audited(decision, survey) if audit else decision


class _Differences:
    """Differences of the factors of one entry, from a given position in their random order."""

    def __init__(
        self,
        factors: Factors,
        proposed: NDArray,
        current: NDArray,
        arguments: tuple[NDArray, ...],
        entry: int,
        plan: Plan,
        k: int,
    ) -> None:
        start, self.size = int(factors.starts[entry]), int(factors.sizes[entry])
        self.function = factors.functions.rows
        self.order = factors.order[start : start + self.size]
        self.points = (proposed, current)
        self.arguments = arguments
        self.position = int(plan.windows[k])

    def read(self, n_rows: int) -> Iterator[NDArray]:
        while n_rows > 0:
            stop = min(self.position + n_rows, self.size)
            yield self.function(*self.points, self.order[self.position : stop], *self.arguments)
            n_rows -= stop - self.position
            self.position = stop if stop < self.size else 0


def _record(outcomes: Outcomes, k: int, decision: Decision) -> None:
    outcomes.flipped[k] = decision.accept
    outcomes.n_rows_used[k] = decision.n_rows_used
    outcomes.n_looks[k] = decision.n_looks
    outcomes.decision_error[k] = decision.decision_error
    outcomes.standardized_mean[k] = decision.standardized_mean
    if decision.exact_accept is not None:
        outcomes.exact_flip[k] = decision.exact_accept
