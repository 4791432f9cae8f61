"""Exact decisions about rows with kinks: those whose kink is near the mode are kept."""

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows import in_order
from pymc_austerity.setup.exact import bounds_of, sampling_in_memory, with_stored_rows
from pymc_austerity.setup.kept_rows import keep
from pymc_austerity.setup.row_bounds import BoundedRows, NotExactError
from pymc_austerity.setup.target import About, NoPlan, Target

_MOST_KEPT = 0.25
"""Share of the rows; with more, reading the others rarely saves little."""


def with_kinks(about: About) -> Target | NoPlan:
    r"""Keep the rows whose kink draws may cross, and decide exactly about the others.

    A row such as that of a Laplace distribution is linear on either side of its kink. On the ball
    that nearly all draws are in, it has no bound if its kink meets the ball; such rows are
    evaluated at every decision, and by trajectories. The residuals of all others are zero there,
    and bounded by those of the smooth parameters. Of N rows about :math:`\sqrt{N D}` are kept.

    Parameters
    ----------
    about : About
        Rows in memory, expanded about a point at which they have kinks.
    """
    if about.problem.prepared.from_sources is not None or not about.residuals.is_stored:
        return NoPlan("its rows have kinks")
    about.say("bounding what rows can change")
    try:
        bounded = bounds_of(about).of_all(about.problem.likelihood.arrays)
        which = np.flatnonzero(~np.isfinite(bounded.usual_constants))
        if not 0 < which.size <= _MOST_KEPT * len(bounded.rows.center):
            return NoPlan(f"{which.size or 'no'} rows have a kink near the mode")
        about.say(f"keeping the {which.size:,} rows with a kink near the mode")
        kept = keep(about, which)
        if kept is None:
            return NoPlan("rows with a kink near the mode cannot be kept")
        return _decided(about, kept, bounded, which)
    except NotExactError as reason:
        return NoPlan(f"{reason}, beside kinks")


def _decided(about: About, kept: About, bounded: BoundedRows, which: NDArray[np.intp]) -> Target:
    """Decisions about the others, in the coordinates in which these are bounded."""
    others = np.setdiff1d(np.arange(len(bounded.rows.center)), which)
    rng = about.problem.prepared.rng
    grouped, pairs = bounded.some(others).grouped(rng, by_directions=False)
    order = others[in_order(grouped.labels)]
    sampling = sampling_in_memory(about, grouped.groups, order, pairs)
    sampling = with_stored_rows(sampling, about.residuals)
    return kept.target(sampling.function, sampling.source, sampling)
