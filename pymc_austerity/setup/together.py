"""Decisions on all rows, where reading them once for many proposals is cheaper than a few rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import influence_scores
from pymc_austerity.deciding.sampling import AT_ONCE, AllRowsTogether, TotalsOfAll
from pymc_austerity.model import RowStructure, RowTotals, row_totals
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.rows import AllRows, ArrayRows, Block
from pymc_austerity.setup.by_influence import FEWEST_FIRST_ROWS, expected_first_look
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import row_differences
from pymc_austerity.setup.target import About, Target
from pymc_austerity.time_limit import counted

_SOME_ROWS = 4_096
_WORTH = 4.0
"""Times as long as a sequential test in a trial that decisions may take: none of them is wrong,
proposals are independent, and looks at rows in strata take two or three times as long."""

_OVERHEAD = 1e-4
"""Seconds of a decision besides reading rows, in Python; sequential tests are compiled."""

_OF_FORMULA, _OF_PRODUCT = 2e-10, 2e-11
"""Seconds that a row takes at least, for one of many points: its formula, and one of its numbers
in a product of matrices."""

_FEWEST_ACCEPTED, _FEWEST_IF_CHEAPER = 0.75, 0.5
"""Share of accepted proposals below which the posterior is too far from normal: independent draws
hardly ever reach its tails, and a chain that is there stays for long. With 40 columns that few rows
have, 0.59 were accepted and effective draws a second fell to a twelfth. Fewer will do where no rows
can be kept and a decision takes less time than a sequential test."""


class Together(NamedTuple):
    """Decisions on all rows, many proposals at once.

    Attributes
    ----------
    about : About
    totals : TotalsOfAll
        Sums of the rows at many points.
    accepted : float
        Share of proposals that are expected to be accepted.
    """

    about: About
    totals: TotalsOfAll
    accepted: float

    @property
    def mixes(self) -> bool:
        """Whether enough proposals are accepted, whatever a decision costs."""
        return self.accepted > _FEWEST_ACCEPTED

    def target(self) -> Target:
        """The target to decide in this way; its proposals are draws of the normal approximation."""
        about, source = self.about, self.totals.source
        problem, n_rows = about.problem, about.problem.likelihood.n_rows
        differences, compiled_as = row_differences(problem)
        sampling = AllRowsTogether(differences, AllRows(source), n_rows, n_rows, totals=self.totals)
        details = (
            f"Proposals are draws of a normal approximation about the posterior mean; {AT_ONCE} of "
            "them are evaluated on all rows at once, faster than one decision after the other on "
            f"some of the rows; {self.accepted:.0%} of them are expected to be accepted.",
        )
        return Target(
            problem.layout,
            problem.start,
            problem.row_free_difference,
            differences,
            source,
            sampling,
            None,
            details,
            compiled_as,
            (about.approximation,),
            about.approximation,
        )


def together(about: About) -> Together | None:
    """Decisions on all rows, many proposals at once; None where others are better.

    Proposals are draws of the normal approximation. As these do not depend on where a chain is,
    the log-density of the next 64 of them is computed in one pass over the rows, and decisions are
    made one after the other, exactly as if each had read all rows.

    Parameters
    ----------
    about : About
        Rows in memory and their expansion.
    """
    problem, normal = about.problem, about.approximation
    if not about.may.decide_together or problem.prepared.from_sources is not None:
        return None
    if not isinstance(problem.structure, RowStructure):
        return None
    about.say("timing decisions on all rows")
    n_rows, (some, per_row) = problem.likelihood.n_rows, _some_rows(problem)
    points = _draws(normal, problem)
    of_some = _seconds_of_some(about, some, per_row)
    least = _OVERHEAD + n_rows * (_OF_FORMULA + _OF_PRODUCT * points.shape[1])
    if least > _WORTH * of_some:
        return None  # before anything is compiled for it
    sums = row_totals(problem.structure, problem.model, compile_kwargs=problem.compile_kwargs)
    if not _agree(sums, problem):
        problem.doubts.append("the sums of rows at several points")
        return None
    seconds = _seconds_of_all(sums, points, some, n_rows)
    if seconds > _WORTH * of_some:
        return None
    source = problem.prepared.shuffled_rows
    totals = TotalsOfAll(sums, source)
    known = [float(problem.row_free_difference(point, problem.start)) for point in points]
    accepted = acceptance(known + totals(points) - normal.log_densities(points))
    if not accepted > (_FEWEST_IF_CHEAPER if seconds < of_some else _FEWEST_ACCEPTED):
        return None
    return Together(about, totals, float(accepted))


def acceptance(log_weights: NDArray[np.float64]) -> float:
    r"""Share of independent proposals that are accepted, from draws of these.

    .. math:: \sum_{i \ne j} \min(w_i, w_j) \Big/ (n - 1) \sum_i w_i

    Parameters
    ----------
    log_weights : float array, shape (n,)
        Log of the ratio of the densities of the posterior and of the proposal, nats; NaN where
        the posterior is zero.

    Examples
    --------
    >>> round(acceptance(np.log([1.0, 3.0])), 3)
    0.5
    """
    possible = np.where(np.isnan(log_weights), -np.inf, log_weights)
    if not np.isfinite(possible.max()):
        return 0.0
    weights = np.exp(possible - possible.max())
    shared, total = float(np.minimum(weights[:, None], weights).sum()), float(weights.sum())
    return (shared - total) / ((weights.size - 1) * total)


def _agree(sums: RowTotals, problem: Problem) -> bool:
    """Whether sums over single rows are the numbers of the model."""

    def differences(proposed: NDArray, current: NDArray, *block: NDArray) -> NDArray[np.float64]:
        points = np.stack([proposed, current])
        rows = ([array[i : i + 1] for array in block] for i in range(len(block[0])))
        new, old = np.transpose([sums(points, *row) for row in rows])
        return np.asarray(new - old)

    return problem.agrees(differences)


def _some_rows(problem: Problem) -> tuple[Block, float]:
    """Random rows, and the seconds that it takes to read one of them."""
    n_rows, rng = problem.likelihood.n_rows, problem.prepared.rng
    chosen = rng.choice(n_rows, min(n_rows, _SOME_ROWS), replace=False)
    started = counted()
    some = ArrayRows(problem.likelihood.arrays).take(chosen)
    return some, (counted() - started) / chosen.size


def _draws(approximation: GaussianApproximation, problem: Problem) -> NDArray:
    noise = problem.prepared.rng.standard_normal((AT_ONCE, problem.start.size))
    points = approximation.mean + noise @ approximation.root.T
    return points.astype(problem.start.dtype)


def _seconds_of_all(sums: RowTotals, points: NDArray, some: Block, n_rows: int) -> float:
    """Of a decision on all rows, as part of a pass for many of them."""
    totals = TotalsOfAll(sums, ArrayRows(some))
    totals(points)  # compile
    started = counted()
    totals(points)
    seconds = (counted() - started) / len(points)
    return _OVERHEAD + seconds * n_rows / len(some[0])


def _seconds_of_some(about: About, some: Block, per_row: float) -> float:
    """Of a decision on some of the rows by a sequential test."""
    pairs, function = about.pilot_pairs(), about.residuals.function
    rows = ArrayRows(about.residuals.block_of(some))
    function(*pairs[0], *rows.window(0, 1))  # compile
    started = counted()
    scores = influence_scores(function, pairs, rows)
    per_row += (counted() - started) / (len(pairs) * scores.size)
    expected = expected_first_look(scores, about.problem.likelihood.n_rows, about.settings)
    return per_row * max(expected.expected_rows, FEWEST_FIRST_ROWS)
