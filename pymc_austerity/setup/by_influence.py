"""Rows in memory that are sampled by influence, with an expansion of the order that pays."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import (
    Influence,
    differences_of_all,
    influence_of_all,
)
from pymc_austerity.deciding.sampling import StratifiedSampling
from pymc_austerity.rows import ArrayRows, SharedRows, StratifiedWindows
from pymc_austerity.setup.plans import About, Plan
from pymc_austerity.setup.strata import (
    FEWEST_FIRST_ROWS,
    Stratification,
    expected_rows_of,
    stratify,
    words_on_strata,
)
from pymc_austerity.setup.third_order import NotThirdOrderError, cubic_rows_of, with_third_order

__all__ = ["ByInfluence", "by_influence", "of_best_order"]

_PAIRS_TO_CHECK = 4

_MOST_ENTRIES = 60
"""With more, contracting the terms would take about as long as reading the rows that they save."""

_SHARE = 0.98
"""Share of the total influence; the rows with the rest gain nothing from third-order terms."""

_OPERATIONS = 1e9
"""Multiplications and additions for the sum of third derivatives: a third of a second."""

_OPERATIONS_OF_A_ROW = 2_000
"""Operations for the third derivatives of a row, besides the products of its columns."""

_FEWEST_SAVED = 250
"""Fewest rows to save at each decision. Reading them takes 30 microseconds, and contracting the
terms of 37 parameters less than five. Tens of thousands of decisions make up for a second of
set-up."""


@dataclass(frozen=True, eq=False)
class _Scored:
    """Rows whose influence is known.

    Attributes
    ----------
    about : About
        Their expansion.
    influence : Influence
        Computes the scores.
    scores : float array, shape (N,)
        Influence of each row, nats.
    checked : list of float arrays, shape (N,), nats
        Residuals of all rows for some of the pilot pairs.
    detail : str
        Further details of the expansion, as a sentence.
    """

    about: About
    influence: Influence
    scores: NDArray[np.float64]
    checked: list[NDArray[np.float64]]
    detail: str = ""

    @cached_property
    def expected_rows(self) -> float:
        """Expected number of rows of a decision."""
        return expected_rows_of(self.scores, self.about.settings)

    def divided(self) -> "ByInfluence":
        """The same rows in strata, without those that are known as they are."""
        about, scores, checked = self.about, self.scores, self.checked
        rng = about.problem.prepared.rng
        if about.kept is None:
            return ByInfluence(self, stratify(scores, checked, about.settings, rng))
        others = np.delete(np.arange(scores.size), about.kept.which)
        checked = [values[others] for values in checked]
        found = stratify(scores[others], checked, about.settings, rng)
        return ByInfluence(self, found._replace(order=others[found.order]))


class ByInfluence(NamedTuple):
    """Rows that will be sampled by influence, before they are stored.

    Attributes
    ----------
    scored : _Scored
        The rows.
    stratification : Stratification
        How they are divided.
    """

    scored: _Scored
    stratification: Stratification

    @property
    def n_first(self) -> int:
        """Rows of a first look."""
        return self.stratification.strata.n_first

    def plan(self) -> Plan:
        """Store the rows by stratum, and plan to sample them."""
        about, scores = self.scored.about, self.scored.scores
        function, arrays = about.residuals.function, about.residuals.arrays
        order, strata, n_take_all = self.stratification
        source = SharedRows(arrays, order)
        within = np.split(scores[order], np.cumsum(strata.sizes)[:-1])
        deviations = np.sqrt([np.mean(part**2) for part in within])
        sampling = StratifiedSampling(function, StratifiedWindows(source, strata), deviations)
        details = (self.scored.detail, f"{words_on_strata(strata, n_take_all)}.")
        return about.plan(function, source, sampling, *filter(None, details))


def by_influence(about: About) -> ByInfluence:
    """Measure the influence of the rows, and divide them by it."""
    function, arrays = about.residuals.function, about.residuals.arrays
    rows, pairs = ArrayRows(arrays), about.pilot_pairs()
    scores, influence = influence_of_all(function, pairs, rows)
    checked = [differences_of_all(function, *pair, rows) for pair in pairs[:_PAIRS_TO_CHECK]]
    return _Scored(about, influence, scores, checked).divided()


def of_best_order(rows: ByInfluence) -> ByInfluence:
    """The same rows with an expansion of third order, where it is requested or saves time.

    Raises
    ------
    NotThirdOrderError
        A third-order expansion is requested, and there is none.
    """
    second = rows.scored
    if second.about.settings.order == 3:
        return _of_third_order(second).divided()
    if not _may_save_time(second):
        return rows
    try:
        third = _of_third_order(second)
    except NotThirdOrderError:
        return rows
    is_cheaper = second.expected_rows - third.expected_rows >= _FEWEST_SAVED
    return third.divided() if is_cheaper else rows


def _may_save_time(second: _Scored) -> bool:
    """Whether third-order terms should be tried on the pilot pairs."""
    settings = second.about.settings
    if settings.control_variates != "auto" or settings.test != "auto" or settings.is_exact:
        return False
    is_small = second.about.anchor.point.size <= _MOST_ENTRIES
    return is_small and second.expected_rows >= FEWEST_FIRST_ROWS + _FEWEST_SAVED


def _of_third_order(second: _Scored) -> _Scored:
    """The same rows, with third-order terms for those with the most influence."""
    which = _most_influential(second.scores, second.about.anchor.point.size)
    cubic = cubic_rows_of(second.about, which)
    about = with_third_order(second.about, cubic)
    function, arrays = about.residuals.function, about.residuals.arrays
    some = ArrayRows([*cubic.rows.window(0, which.size), arrays[-1][which]])
    influence = second.influence.of(function)
    scores, checked = second.scores.copy(), [values.copy() for values in second.checked]
    scores[which] = np.minimum(influence.of_all(some), scores.max())
    for values, pair in zip(checked, influence.pairs, strict=False):
        values[which] = differences_of_all(function, *pair, some)
    detail = f"The {which.size:,} rows with the most influence have terms of third order."
    return _Scored(about, influence, scores, checked, detail)


def _most_influential(scores: NDArray[np.float64], size: int) -> NDArray[np.intp]:
    """The fewest rows with nearly all the influence, or as many as set-up can afford."""
    falling = np.argsort(-scores)
    held = np.cumsum(scores[falling])
    n_rows = int(np.searchsorted(held, _SHARE * held[-1])) + 1
    each = size * size * (size + 1) // 2 + _OPERATIONS_OF_A_ROW
    return np.sort(falling[: min(n_rows, int(_OPERATIONS / each))])
