"""Check of the bounds of rows near the anchor, including rounding."""

from dataclasses import replace
from functools import partial

import numpy as np

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.poisson import PoissonSampling, StoredResiduals
from pymc_austerity.exact import RELATIVE, measured_rounding, rates_of
from pymc_austerity.rows import StoredRows
from pymc_austerity.setup.problem import Problem

_PAIRS_TO_CHECK, _MOST_TO_CHECK = 3, 100_000
_RUN = 500
"""Rows of a store that are checked together: single ones would bring all of it into memory."""
_GROSS = 1e-6
"""Excess over a bound, nats, that is too large to be rounding of rows of ordinary size."""


class NotExactError(ValueError):
    """Exact decisions are not possible, or not cheap; the message is a clause."""


def checked(sampling: PoissonSampling, anchor: Anchor, problem: Problem) -> PoissonSampling:
    """The same sampling with its rounding measured, if no row changes by more than its bound.

    Decisions check only the rows that they draw, and rows with small or zero bounds are hardly
    ever drawn.

    Parameters
    ----------
    sampling, anchor, problem
        What is sampled.

    Raises
    ------
    NotExactError
        A row changes by more than its bound.
    """
    groups, rng = sampling.groups, np.random.default_rng(5)
    if groups.n_rows <= _MOST_TO_CHECK:
        rows = np.arange(groups.n_rows)
    elif isinstance(sampling.source, StoredRows):  # in random order within each group
        starts = np.linspace(0, groups.n_rows - _RUN, _MOST_TO_CHECK // _RUN).astype(np.int64)
        rows = (starts[:, None] + np.arange(_RUN)).ravel()
    else:
        rows = np.sort(rng.choice(groups.n_rows, _MOST_TO_CHECK, replace=False))
    owners = np.searchsorted(groups.starts, rows, side="right") - 1
    residuals = StoredResiduals(sampling.function, sampling.source)
    rounding, worst = groups.rounding, -np.inf
    for _ in range(_PAIRS_TO_CHECK):
        new, old = (anchor.draw(rng).astype(problem.start.dtype) for _ in range(2))
        its = rates_of(sampling.whitened(old), sampling.whitened(new), 1.0, groups)
        own = its.bounds[owners]
        drawn, own = rows[np.isfinite(own)], own[np.isfinite(own)]
        of_drawn, start = partial(residuals, rows=drawn), old.astype(np.float64)
        rounding = max(rounding, measured_rounding(of_drawn, start, new - start))
        excess = abs(residuals(new, old, drawn)) - own * (1.0 + RELATIVE)
        worst = max(worst, float(excess.max(initial=-np.inf, where=~np.isnan(excess))))
    if worst > max(_GROSS, rounding):
        raise NotExactError(f"a row changes by {worst:.2g} nats more than its bound")
    return replace(sampling, groups=replace(groups, rounding=rounding))
