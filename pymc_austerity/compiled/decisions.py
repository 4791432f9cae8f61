"""Decisions in compiled code: by sequential tests, at random, and exact ones by thinned rows."""

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy.special import ndtri

from pymc_austerity.compiled.addresses import (
    RowsByAddress,
    address_of_tail,
    announce,
    call_of_two,
    fill_differences,
    order,
)
from pymc_austerity.compiled.surveys import (
    CompiledSurvey,
    UniformCompiledSurvey,
    begin,
    estimated_total,
)
from pymc_austerity.exact import (
    Candidates,
    GroupArrays,
    bound_groups,
    number_of_candidates,
    select,
    thinning,
    weigh,
)
from pymc_austerity.parts import integers, part, reals
from pymc_austerity.sequential import (
    BarkerTest,
    EmpiricalBernsteinTest,
    Evidence,
    HoeffdingTest,
    StudentTTest,
    log_uniform,
)
from pymc_austerity.sequential.barker import accepts_at_random
from pymc_austerity.sequential.rules import (
    bernstein_error,
    excess_of,
    hoeffding_error,
    is_clear,
    level_of_look,
    normal_boundary,
    share_of_error,
)
from pymc_austerity.sequential.stopping import exceeds_on_all_rows, read_until_clear

STATISTICS = (
    "accepted",
    "n_rows_used",
    "n_looks",
    "decision_error",
    "standardized_mean",
    "audited",
    "wrong",
    "component",
)
"""What is recorded of a transition, in this order."""


class CompiledTest(NamedTuple):
    """A sequential t-test; see `StudentTTest`.

    Attributes
    ----------
    tail : int
        Address of the distribution function of Student's t, as ``scipy.special.stdtr``.
    epsilon, alpha : float
        Level of late looks, and shape of the boundary.
    quantile : float
        Of the normal distribution at `epsilon`.
    relative : bool
        Whether it keeps the relative error of acceptance probabilities small.
    """

    tail: int
    epsilon: float
    alpha: float
    quantile: float
    relative: bool

    def error_if_clear(self, evidence: Evidence) -> float:
        """See `pymc_austerity.sequential.error_if_clear`."""
        distance, standard_error = evidence.distance, evidence.standard_error
        statistic, share = abs(distance) / standard_error, evidence.n_seen / evidence.n_rows
        if statistic < -normal_boundary(self.quantile, self.alpha, share):
            return math.nan  # Student's t has more in its tails than the normal distribution
        error = call_of_two(self.tail, evidence.degrees_of_freedom, -statistic)
        level = level_of_look(self.epsilon, self.quantile, self.alpha, share)
        excess = excess_of(distance, standard_error, self.relative)
        return error if is_clear(error, excess, level) else math.nan


class CompiledInequality(NamedTuple):
    """A sequential test by an inequality; see `pymc_austerity.sequential.ConcentrationTest`.

    Attributes
    ----------
    largest_difference, error_prob : float
    knows_spread : bool
        Whether the inequality is that of `EmpiricalBernsteinTest`; else that of `HoeffdingTest`.
    """

    largest_difference: float
    error_prob: float
    knows_spread: bool

    def error_if_clear(self, evidence: Evidence) -> float:
        """See `pymc_austerity.sequential.error_if_clear`."""
        if self.knows_spread:
            error = bernstein_error(evidence, self.largest_difference)
        else:
            error = hoeffding_error(evidence, self.largest_difference)
        return error if error < share_of_error(self.error_prob, evidence.n_looks) else math.nan


class CompiledBarkerTest(NamedTuple):
    """See `BarkerTest`.

    Attributes
    ----------
    noise : float
    values, cumulative : float arrays
    error : float
        Of a `LogisticCorrection`.
    """

    noise: float
    values: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    error: float

    def error_if_clear(self, evidence: Evidence) -> float:
        """See `pymc_austerity.sequential.error_if_clear`."""
        standard_error = evidence.standard_error
        return standard_error if standard_error <= self.noise else math.nan


AnyCompiledTest: TypeAlias = CompiledTest | CompiledInequality


def refusal_of_test(test: Any) -> str:
    """Why a test has no compiled counterpart, as a clause; empty if it has one."""
    if type(test) is StudentTTest:
        if address_of_tail() is None:
            return "this version of SciPy does not offer Student's t to compiled code"
        return ""
    if type(test) not in (EmpiricalBernsteinTest, HoeffdingTest, BarkerTest):
        return "the test has no compiled counterpart"
    is_function = callable(getattr(test, "largest_difference", None))
    return "its bound is a function" if is_function else ""


def compiled_test(test: Any) -> AnyCompiledTest | CompiledBarkerTest:
    """A test that is not refused, for compiled code."""
    if isinstance(test, BarkerTest):
        values, cumulative, error = test.correction
        return CompiledBarkerTest(float(test.noise), values, cumulative, error)
    if not isinstance(test, StudentTTest):
        knows_spread = isinstance(test, EmpiricalBernsteinTest)
        limits = float(test.largest_difference), float(test.error_prob)
        return CompiledInequality(*limits, knows_spread)
    tail, epsilon, alpha = address_of_tail(), float(test.epsilon), float(test.alpha)
    assert tail is not None
    return CompiledTest(tail, epsilon, alpha, float(ndtri(epsilon)), bool(test.relative))


class SequentialDecisions(NamedTuple):
    """Sequential tests on samples of the rows.

    Attributes
    ----------
    survey : CompiledSurvey or UniformCompiledSurvey
    test : CompiledTest or CompiledInequality
    audit : float
        Share of decisions that are checked on all rows.
    """

    survey: CompiledSurvey | UniformCompiledSurvey
    test: AnyCompiledTest
    audit: float


def decide_sequentially(
    its: SequentialDecisions,
    proposed: Any,
    current: Any,
    log_ratio: float,
    rng: np.random.Generator,
    audits: np.random.Generator,
    statistics: Any,
) -> int:
    """Accept (1) or reject (0) a proposal, and check some of the decisions on all rows.

    Parameters
    ----------
    its : SequentialDecisions
    proposed, current : pointers to d floats
    log_ratio : float
        All of the log acceptance ratio but the sum of the residuals, nats.
    rng, audits : numpy.random.Generator
        Of the chain, and of what is checked.
    statistics : pointer to floats
        Where what it took is recorded; see `STATISTICS`.
    """
    survey, test = its.survey, its.test
    is_audited = its.audit > 0.0 and audits.random() < its.audit
    log_threshold = log_uniform(rng) - log_ratio
    begin(survey, proposed, current, rng)
    decision = read_until_clear(survey, log_threshold, test)
    statistics[1], statistics[2] = decision.n_rows_used, decision.n_looks
    statistics[3], statistics[4] = decision.decision_error, decision.standardized_mean
    if is_audited:
        statistics[5] = 1.0
        statistics[6] = exceeds_on_all_rows(survey, log_threshold) != decision.accept
    return 1 if decision.accept else 0


class RandomDecisions(NamedTuple):
    """Decisions at random; none is right or wrong.

    Attributes
    ----------
    survey : CompiledSurvey or UniformCompiledSurvey
    test : CompiledBarkerTest
    """

    survey: CompiledSurvey | UniformCompiledSurvey
    test: CompiledBarkerTest


def decide_at_random(
    its: RandomDecisions,
    proposed: Any,
    current: Any,
    log_ratio: float,
    rng: np.random.Generator,
    audits: np.random.Generator,
    statistics: Any,
) -> int:
    """Accept (1) or reject (0) a proposal; the parameters are those of `decide_sequentially`."""
    survey, test = its.survey, its.test
    begin(survey, proposed, current, rng)
    decision = read_until_clear(survey, -log_ratio, test)
    statistics[1], statistics[2] = decision.n_rows_used, decision.n_looks
    error = decision.decision_error
    statistics[3], statistics[4] = test.error if error > 0.0 else 0.0, decision.standardized_mean
    distance = estimated_total(survey) + log_ratio
    if not math.isfinite(distance):
        return 0
    correction = reals(test.values), reals(test.cumulative)
    return 1 if accepts_at_random(distance, error, test.noise, *correction, rng) else 0


REJECTED, ACCEPTED, VIOLATED = 0, 1, -1


class ExactDecisions(NamedTuple):
    """What exact decisions need.

    Attributes
    ----------
    rows : RowsByAddress
    groups : GroupArrays
    inverse_root, center : float arrays, shape (d, d) and (d,)
        Whiten a point; the matrix is lower triangular.
    inflation : float
        Factor of the bounds.
    rounding : float
        Nats by which rounding may take a row beyond its bound.
    size : int
        d.
    bounds, totals : float array, shape (G,)
        Working space.
    u, v, proposed, current : float arrays
        Working space: the two points whitened, and in the order of the terms.
    found : float array, shape (M + 2,)
        What the last decision found: its log-ratio in nats, the number of candidates, and the
        residuals of at most M of them over their bounds. Where a row changed by more than its
        bound, its position, its residual and its bound.
    n_ratios : int
        M, at least 1; or 0 where only violations are to be written.
    """

    rows: RowsByAddress
    groups: GroupArrays
    inverse_root: NDArray[np.float64]
    center: NDArray[np.float64]
    inflation: float
    rounding: float
    size: int
    bounds: NDArray[np.float64]
    totals: NDArray[np.float64]
    u: NDArray[np.float64]
    v: NDArray[np.float64]
    proposed: NDArray[np.float64]
    current: NDArray[np.float64]
    found: NDArray[np.float64]
    n_ratios: int


def new_decisions(
    rows: RowsByAddress,
    groups: GroupArrays,
    inverse_root: NDArray[np.float64],
    center: NDArray[np.float64],
    inflation: float,
    rounding: float,
    n_ratios: int = 0,
) -> ExactDecisions:
    """Exact decisions on rows, with the space that they work in."""
    d = center.size
    return ExactDecisions(
        rows,
        groups,
        np.ascontiguousarray(inverse_root),
        np.ascontiguousarray(center, dtype=np.float64),
        float(inflation),
        float(rounding),
        d,
        bounds=np.zeros(groups.n_groups),
        totals=np.zeros(groups.n_groups),
        u=np.zeros(d),
        v=np.zeros(d),
        proposed=np.zeros(rows.n_numbers),
        current=np.zeros(rows.n_numbers),
        found=np.zeros(2 + max(1, n_ratios)),
        n_ratios=n_ratios,
    )


@part(types.void)
def _whiten(its: ExactDecisions, point: Any, out: Any) -> None:
    inverse_root, center, d = reals(its.inverse_root), reals(its.center), its.size
    for i in range(d):
        total = 0.0
        for j in range(i + 1):
            total += inverse_root[i * d + j] * (point[j] - center[j])
        out[i] = total


@part(types.int64)
def _bounded(its: ExactDecisions, proposed: Any, current: Any) -> int:
    """Bound the changes of rows, group by group; returns how many rows are read as they are."""
    u, v, d, groups = reals(its.u), reals(its.v), its.size, its.groups
    _whiten(its, current, u)
    _whiten(its, proposed, v)
    arrays = GroupArrays(
        integers(groups.starts), reals(groups.radii), reals(groups.largest),
        reals(groups.directions), integers(groups.direction), reals(groups.cosines),
        reals(groups.sines), groups.n_groups, groups.n_radii, groups.is_single,
    )  # fmt: skip
    return bound_groups(u, v, d, its.inflation, arrays, reals(its.bounds), reals(its.totals))


def decide_exactly(
    its: ExactDecisions,
    proposed: Any,
    current: Any,
    log_ratio: float,
    rng: np.random.Generator,
    audits: np.random.Generator,
    statistics: Any,
) -> int:
    """Accept or reject a proposal.

    Parameters
    ----------
    its : ExactDecisions
    proposed, current : pointers to d floats
    log_ratio : float
        All of the log acceptance ratio but the residuals, nats.
    rng, audits : numpy.random.Generator
        Of the chain, and one that is not used: nothing needs to be checked.
    statistics : pointer to floats
        Where what it took is recorded; see `pymc_austerity.compiled.STATISTICS`.

    Returns
    -------
    int
        `ACCEPTED`, `REJECTED`, or `VIOLATED` where a row changed by more than its bound.
    """
    n_read, n_groups = _bounded(its, proposed, current), its.groups.n_groups
    totals, starts = reals(its.totals), integers(its.groups.starts)
    drawn = Candidates(reals(its.bounds), totals, starts, n_groups, n_read)
    n_candidates = number_of_candidates(totals[n_groups - 1], rng)
    n = n_read + n_candidates
    work = np.empty(3 * n + 2 * n_candidates + 1)  # lives until the call returns
    return _decide_on(
        its, drawn, work, n_candidates, (proposed, current), log_ratio, rng, statistics
    )


@part(types.int64)
def _decide_on(
    its: ExactDecisions,
    drawn: Candidates,
    work: NDArray[np.float64],
    n_candidates: int,
    points: Any,
    log_ratio: float,
    rng: np.random.Generator,
    statistics: Any,
) -> int:
    """Draw the candidates, evaluate them and the rows of loose groups, and decide."""
    n, start = drawn.n_read + n_candidates, work.ctypes.data
    rows, groups, values = start, start + 8 * n, start + 16 * n
    weight, uniform = reals(start + 24 * n), reals(start + 24 * n + 8)
    for k in range(n_candidates):
        uniform[k] = rng.random()
    select(drawn, uniform, n_candidates, integers(rows), integers(groups))
    for k in range(drawn.n_read, n):
        announce(its.rows, integers(rows)[k], 1)
    order(its.rows, points[0], its.proposed)
    order(its.rows, points[1], its.current)
    fill_differences(its.rows, its.proposed, its.current, rows, n, values)
    for k in range(n_candidates):
        uniform[n_candidates + k] = rng.random()
    statistics[1], statistics[2], weight[0] = n, 1.0, log_ratio
    found, of_all = (integers(groups), reals(values)), True
    beyond = weigh(drawn, *found, uniform, n_candidates, its.rounding, weight, of_all)
    _tell(its, drawn, n_candidates, beyond, (rows, groups, values, weight[0]))
    if beyond >= 0:
        return VIOLATED
    return ACCEPTED if math.log1p(-rng.random()) < weight[0] else REJECTED


@part(types.void)
def _tell(
    its: ExactDecisions, drawn: Candidates, n_candidates: int, beyond: int, known: Any
) -> None:
    """Fill in `ExactDecisions.found`."""
    rows, groups, values = integers(known[0]), integers(known[1]), reals(known[2])
    out = reals(its.found)
    if beyond >= 0:
        out[0], out[1], out[2] = rows[beyond], values[beyond], drawn.bounds[groups[beyond]]
    elif its.n_ratios > 0:
        out[0], out[1] = known[3], n_candidates
        every = thinning(n_candidates, its.n_ratios)
        for k in range(0, n_candidates, every):
            row = drawn.n_read + k
            out[2 + k // every] = values[row] / drawn.bounds[groups[row]]


AnyDecisions: TypeAlias = SequentialDecisions | RandomDecisions | ExactDecisions
