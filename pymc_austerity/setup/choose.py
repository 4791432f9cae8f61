"""The choice between exact decisions and sequential tests, once rows are expanded."""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.exact import PoissonSampling
from pymc_austerity.deciding.sampling import uniform_sampling
from pymc_austerity.design.wording import in_round_numbers
from pymc_austerity.errors import SettingError
from pymc_austerity.rows import in_order
from pymc_austerity.setup.by_influence import (
    FEWEST_FIRST_ROWS,
    DividedRows,
    ScoredRows,
    has_room_for_strata,
)
from pymc_austerity.setup.exact import (
    MOST_ROWS,
    bounds_of,
    exact_sampling,
    sampling_in_memory,
    with_stored_rows,
)
from pymc_austerity.setup.kept_rows import keep, keep_influential
from pymc_austerity.setup.representing_rows import is_far_from_normal, represent
from pymc_austerity.setup.row_bounds import BoundedRows, NotExactError, time_for_bounds
from pymc_austerity.setup.target import About, NoPlan, Target
from pymc_austerity.setup.together import Together, together
from pymc_austerity.time_limit import SetupTooLongError

_BOUNDING = "bounding what rows can change"
_INFLUENCE = "measuring the influence of the rows"
_FEWEST_ACCEPTED = 0.5
"""Share of accepted draws of a normal approximation below which moves on a surrogate that keeps
some rows are better, although a sequential test then decides."""
_NEARLY_ALL = 0.85
"""The same where rows stand for all: with 0.76 accepted, 7 % of the draws of a curve that saturates
were effective."""
_MANY_ROWS = 1_000
"""Rows of a first look that take longer than a trajectory on a surrogate of few rows."""


def choose(about: About) -> Target:
    """Choose how decisions get their rows, and store these.

    Raises
    ------
    SettingError
        The user's settings are not possible for the model.
    """
    settings = about.settings
    if settings.decides_exactly:
        return _exact(about)
    return _cheaper(about) if settings.may_decide_exactly else _sequential(about)


def _exact(about: About) -> Target:
    about.say(_BOUNDING)
    try:
        return _target_of(exact_sampling(about, only_cheap=False, refuse=lambda _: None), about)
    except NotExactError as reason:
        raise SettingError(
            f"{about.settings.who_decides_exactly} is not possible because {reason}: use "
            "AusterityMH(), which uses a sequential test there."
        ) from None


def _cheaper(about: About) -> Target:
    """Exact decisions, unless a sequential test reads fewer rows at its first look."""
    about.say(_BOUNDING)
    try:
        with time_for_bounds(about.problem):
            exact = exact_sampling(about, only_cheap=True, refuse=partial(_refuse_many, about))
    except NotExactError as reason:
        found = together(about)
        if found is not None and found.mixes:
            return _on_all_rows(found)
        return _not_exact(_sequential(about, found), str(reason))
    except SetupTooLongError:
        return _not_exact(_sequential(about), "their bounds take long to compute")
    rows = exact.expected_rows
    if about.problem.prepared.from_sources:
        return _target_of(exact, about)
    scored = None
    if exact.accepted < _FEWEST_ACCEPTED:
        about.say(_INFLUENCE)
        scored = ScoredRows.of(about)
        if (kept := _kept(scored)) is not None:
            few = f"they accept {exact.accepted:.0%} of the draws of a normal approximation"
            return _not_exact(kept.divided().target(), few)
    if rows <= FEWEST_FIRST_ROWS:
        return _target_of(exact, about, FEWEST_FIRST_ROWS)
    found = together(about)
    if found is not None and found.mixes:
        return _on_all_rows(found, scored)
    about.say(_INFLUENCE)
    sampled = (scored or ScoredRows.of(about)).divided()
    if rows <= sampled.n_first:
        return _target_of(exact, about, sampled.n_first)
    many = f"they are expected to read {in_round_numbers(rows)} rows"
    return _not_exact(_best(sampled, found), many)


def _on_all_rows(found: Together, scored: ScoredRows | None = None) -> Target:
    """Decide on all rows, unless few rows stand for all where chains would stay in tails."""
    about = found.about
    if found.accepted < _NEARLY_ALL:
        about.say("looking for rows to keep")
        standing = represent(about, (scored or ScoredRows.of(about)).scores, None)
        if standing is not None:
            few = f"they accept {found.accepted:.0%} of the draws of a normal approximation"
            return _not_exact(ScoredRows.of(standing).divided().target(), few)
    return found.target()


def _refuse_many(about: About, expected: float) -> None:
    """Refuse exact decisions that are expected to read many rows, before all rows are bounded."""
    most = MOST_ROWS
    if about.problem.prepared.from_sources and expected > FEWEST_FIRST_ROWS:
        most = min(most, ScoredRows.of(about).n_first)
    if expected > most:
        raise NotExactError(f"they are expected to read {in_round_numbers(expected)} rows")


def _sequential(about: About, all_rows: Together | None = None) -> Target:
    about.say(_INFLUENCE)
    settings = about.settings
    if settings.by_influence and has_room_for_strata(settings):
        return _best(ScoredRows.of(about).divided(), all_rows)
    if settings.sampling == "strata":
        raise SettingError(
            f"sampling='strata' is not possible with batch_size={settings.batch_size}, too few "
            "rows for strata: choose a larger batch_size, or leave one of them out."
        )
    return _uniform(about)


def _best(divided: DividedRows, all_rows: Together | None) -> Target:
    """Sample by influence what is not kept; read all rows where none can be, if that is cheaper."""
    if divided.rows.about.problem.prepared.from_sources:
        return divided.target()
    if (kept := _kept(divided.rows)) is not None:
        return kept.divided().target()
    return divided.target() if all_rows is None else all_rows.target()


def _kept(rows: ScoredRows) -> ScoredRows | None:
    """The other rows, where some are kept as they are; or all, where some stand for them."""
    rows.about.say("looking for rows to keep")
    kept = keep_influential(rows.about, rows.scores)
    is_far = kept is not None or rows.n_first > _MANY_ROWS or is_far_from_normal(rows.checked)
    found = represent(rows.about, rows.scores, kept) if is_far else None
    chosen = found or kept
    return None if chosen is None else ScoredRows.of(chosen)


def _target_of(sampling: PoissonSampling, about: About, n_first: int | None = None) -> Target:
    sampling = with_stored_rows(sampling, about.residuals)
    details: tuple[str, ...] = (
        "Rows are drawn at rates that bound what they can change, in "
        f"{sampling.groups.n_groups:,} {'group' if sampling.groups.n_groups == 1 else 'groups'} of "
        "similar bounds.",
    )
    if n_first is not None:
        details += (f"A sequential test would read {n_first:,} rows or more at its first look.",)
    return about.target(sampling.function, sampling.source, sampling, *details)


def _uniform(about: About) -> Target:
    problem, settings, residuals = about.problem, about.settings, about.residuals
    about.say("storing the rows")
    source = problem.prepared.shuffled(residuals.arrays, residuals.block_of)
    sampling, words = uniform_sampling(residuals.function, source, settings, of_residuals=True)
    if settings.by_influence:
        words += ", too few for strata"
    return about.target(residuals.function, source, sampling, f"{words}.")


def _not_exact(target: Target, reason: str) -> Target:
    """The target of a sequential test, with the reason why decisions are not exact."""
    return replace(target, details=(*target.details, f"No exact decisions because {reason}."))


# ------------------------------------------------------------------ rows with kinks


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
        if not which.size:  # curvature that is too narrow to be told from kinks
            return choose(about)
        if which.size > _MOST_KEPT * len(bounded.rows.center):
            return NoPlan(f"{which.size:,} rows have a kink near the mode")
        about.say(f"keeping the {which.size:,} rows with a kink near the mode")
        kept = keep(about, which)
        if kept is None:
            return NoPlan("rows with a kink near the mode cannot be kept")
        return _about_others(about, kept, bounded, which)
    except NotExactError as reason:
        return NoPlan(f"{reason}, beside kinks")


def _about_others(
    about: About, kept: About, bounded: BoundedRows, which: NDArray[np.intp]
) -> Target:
    """Decisions about the others, in the coordinates in which these are bounded."""
    others = np.setdiff1d(np.arange(len(bounded.rows.center)), which)
    rng = about.problem.prepared.rng
    grouped, pairs = bounded.some(others).grouped(rng, by_directions=False)
    order = others[in_order(grouped.labels)]
    sampling = sampling_in_memory(about, grouped.groups, order, pairs)
    sampling = with_stored_rows(sampling, about.residuals)
    return kept.target(sampling.function, sampling.source, sampling)
