"""A sweep as one compiled function, which makes the same decisions as the reference."""

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from pymc_austerity.gibbs.factors import Factors
from pymc_austerity.gibbs.sweep import Outcomes, Plan
from pymc_austerity.rows import LARGEST_BLOCK
from pymc_austerity.sequential import StudentTTest
from pymc_austerity.sequential.moments import ROUNDING
from pymc_austerity.sequential.student_t import upper_quantile

__all__ = ["CompiledSweep"]


class CompiledSweep:
    """`ReferenceSweep` with `StudentTTest`, without Python code between two factors.

    Parameters
    ----------
    factors : Factors
        Factors of every entry, compiled with numba.
    rule : StudentTTest
        Rule of the sequential test.
    batch_size : int
        Number of factors of each look.
    """

    def __init__(self, factors: Factors, rule: StudentTTest, batch_size: int) -> None:
        self.factors = factors
        self.batch_size = batch_size
        n_looks = int(np.ceil(factors.sizes.max() / batch_size))
        seen = [batch_size * look for look in range(1, n_looks)]
        # the last look is exact and needs no quantile; a batch of one row has no spread
        self.quantiles = np.array([upper_quantile(max(n - 1, 1), rule.epsilon) for n in seen])

    @staticmethod
    def is_possible(factors: Factors) -> bool:
        """Whether the functions of the factors can be called from compiled code."""
        return hasattr(getattr(factors.functions.rows, "vm", None), "jit_fn")

    def __call__(self, state: NDArray, plan: Plan) -> Outcomes:
        """Update the entries one by one, in place."""
        factors, outcomes = self.factors, Outcomes.none_yet(plan.entries.size)
        values = factors.functions.values()
        functions: tuple[Any, Any] = (
            factors.functions.rows.vm.jit_fn,  # type: ignore[attr-defined]
            factors.functions.exact.vm.jit_fn,  # type: ignore[attr-defined]
        )
        lists = (factors.order, factors.starts, factors.sizes)
        tests = (self.batch_size, self.quantiles)
        _sweep(*functions, state, plan, lists, tests, factors.data + values, values, outcomes)
        error = outcomes.decision_error  # holds Student's t so far, NaN for exact decisions
        error[:] = np.nan_to_num(stdtr(outcomes.n_rows_used - 1.0, -np.abs(error)), nan=0.0)
        return outcomes


@numba.njit
def _sweep(rows, exact, state, plan, lists, tests, arguments, values, outcomes):  # type: ignore[no-untyped-def]
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
            _decide(
                rows, flipped, state, own, tests, arguments, log_odds - log_exact_ratio, plan,
                outcomes, k,
            )  # fmt: skip
        if outcomes.flipped[k]:
            state[entry] = 1 - old
        else:
            flipped[entry] = old


@numba.njit
def _decide(rows, proposed, current, own, tests, arguments, log_threshold, plan, outcomes, k):  # type: ignore[no-untyped-def]
    batch_size, quantiles = tests
    n_rows, n_looks, accept = own.size, 0, log_threshold < 0.0
    statistic = math.nan
    window, moments = plan.windows[k], (0, 0.0, 0.0)
    while moments[0] < n_rows:
        n_new = min(batch_size, n_rows - moments[0])
        moments = _read(rows, proposed, current, own, window, n_new, arguments, moments)
        n_seen, mean, squares = moments
        n_looks += 1
        if not math.isfinite(mean):
            accept = False
            break
        distance = n_rows * mean - log_threshold
        accept = distance > 0.0
        variance = squares / (n_seen - 1) if n_seen > 1 else 0.0
        if variance <= (ROUNDING * mean) ** 2:
            outcomes.standardized_mean[k] = math.nan
            continue
        outcomes.standardized_mean[k] = distance / (n_rows * math.sqrt(variance / (n_rows - 1)))
        if n_seen < n_rows:
            share_left = 1.0 - (n_seen - 1) / (n_rows - 1)
            standard_error = math.sqrt(n_rows * n_rows * variance / n_seen * share_left)
            if abs(distance) > quantiles[n_looks - 1] * standard_error:
                statistic = distance / standard_error
                break
    finite = math.isfinite(moments[1])
    outcomes.flipped[k] = accept
    outcomes.n_rows_used[k] = moments[0]
    outcomes.n_looks[k] = n_looks
    outcomes.decision_error[k] = statistic
    if not finite:
        outcomes.standardized_mean[k] = math.nan
    if plan.audited[k]:
        n_left = n_rows - moments[0] if finite else 0
        moments = _read(rows, proposed, current, own, window, n_left, arguments, moments)
        agrees = math.isfinite(moments[1]) and n_rows * moments[1] > log_threshold
        outcomes.exact_flip[k] = agrees


@numba.njit
def _read(rows, proposed, current, own, window, n_new, arguments, moments):  # type: ignore[no-untyped-def]
    """Moments with the next factors added, by the update of Chan, Golub and LeVeque."""
    count, mean, squares = moments
    while n_new > 0:
        start = (window + count) % own.size
        stop = start + min(n_new, own.size - start, LARGEST_BLOCK)
        block = rows(proposed, current, own[start:stop], *arguments)[0]
        block_mean, block_squares = _moments(block)
        shift, total = block_mean - mean, count + block.size
        squares += block_squares + shift * shift * count * block.size / total
        mean += shift * block.size / total
        count = total
        n_new -= block.size
        if not math.isfinite(mean):
            break
    return count, mean, squares


@numba.njit
def _moments(values):  # type: ignore[no-untyped-def]
    """Mean and centered sum of squares."""
    total = 0.0
    for value in values:
        total += value
    mean = total / values.size
    squares = 0.0
    for value in values:
        squares += (value - mean) * (value - mean)
    return mean, squares
