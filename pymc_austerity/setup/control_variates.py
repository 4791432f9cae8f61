"""The default plan: control variates about the mode, and rows sampled by influence."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import discrete_types, first_without_second_derivative, underivable
from pymc_austerity.control_variates import (
    Anchor,
    Modes,
    NoAnchorError,
    conditional_mode,
    find_anchor,
    find_modes,
    posterior_mean,
)
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.errors import warn_user
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.setup.choose import choose, with_kinks
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import ExpandedRows, expanded_rows, expansion_agrees
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.setup.surrogate import PILOT_PAIRS, SurrogatePosterior
from pymc_austerity.setup.surrogate_anchor import (
    anchor_by_surrogate,
    is_nearly_normal,
    surrogate_about,
)
from pymc_austerity.setup.target import ANYTHING, NOTHING, About, May, NoPlan, Target

_MOST_WITH_GROUPS = 300
"""Dimensions up to which all are moved together where levels of groups could be moved one by one.
"""
_MATRICES, _MOST_BYTES = 10, 2e9
"""Square matrices of the expansion, the normal approximation and their sums, and their size."""
MOST_ENTRIES = int((_MOST_BYTES / _MATRICES / np.dtype(np.float64).itemsize) ** 0.5)
"""Dimensions with which these can be stored."""

_AS_GOOD = 0.8
"""Share of the draws of a normal approximation that are effective, above which trajectories on the
surrogate of a hierarchy are no better."""

_OF_DISCRETE = "sum the discrete variables out of the likelihood, as pm.Mixture does"
_OF_MANY = "use NUTS, or write effects of groups as one vector for each factor (GroupedMH)"
_OF_MODES = "constrain what the data do not identify, or give anchor= near the intended mode"
_OF_SUPPORT = "write the bound as a prior or a transform"


def with_control_variates(
    problem: Problem,
    settings: Settings,
    *,
    by_default: bool,
    anchor: NDArray | None,
    say: Say,
    may: May = ANYTHING,
) -> Target | NoPlan:
    """Find the anchor, measure the influence of the rows, and store them by influence.

    Parameters
    ----------
    problem, settings, anchor, say
        As in `pymc_austerity.setup.build.build`.
    by_default : bool
        Whether the package chooses the proposal.
    may : May
        What the plan may do.

    Warns
    -----
    AusterityWarning
        The posterior has several modes, or a better one may have been missed.
    """
    impossible = _impossible(problem)
    if impossible is not None:
        return impossible
    try:
        expanded = expanded_rows(problem, settings.order)
        modes, surrogate = _found(expanded, problem, settings, by_default, anchor, say)
        warn_of_modes(modes, problem)
        if modes.others:
            n_modes = 1 + len(modes.others)
            reason = f"the posterior has {n_modes} modes"
            return NoPlan(reason, _OF_MODES, normal_approximations(modes))
        residuals = expanded.residuals(modes.anchor.point)
        if not expansion_agrees(expanded, residuals, modes.anchor, problem):
            return NoPlan("derivatives of its rows give other numbers than the model")
    except NoAnchorError as error:
        return NoPlan(str(error))
    except underivable:
        return NoPlan(_without_derivatives(problem))
    where = "the anchor given" if anchor is not None else words_on_mode(modes)
    if surrogate is not None and anchor is None:
        where = "the mean of a surrogate, as the posterior is far from normal"
    (approximation,) = normal_approximations(modes)
    is_far, is_kinked = surrogate is not None, not modes.anchor.is_smooth
    if not (is_far or is_kinked):
        say("finding the posterior mean")
        approximation = _about_mean(modes.anchor, expanded, problem)
        if by_default and _is_funnel(problem, modes.anchor):
            surrogate = _of_hierarchy(modes.anchor, problem)
    pairs = None
    if surrogate is not None:
        pairs = surrogate.pairs(PILOT_PAIRS, problem.start.dtype, problem.prepared.rng)
    is_open = settings.control_variates == "auto" and settings.test == "auto"
    about = About(
        residuals,
        modes.anchor,
        approximation,
        surrogate,
        where,
        problem,
        settings,
        say,
        may if by_default and is_open and not is_far else NOTHING,
        pairs,
    )
    if is_kinked:
        may_keep = by_default and (settings.may_decide_exactly or settings.decides_exactly)
        return with_kinks(about) if may_keep else NoPlan("its rows have kinks")
    return choose(about)


def _has_hyperparameters(problem: Problem) -> bool:
    """Whether rows read some entries and not others, such as the spread of a prior."""
    return problem.blocks is not None and 0 < problem.blocks.untouched.size < problem.start.size


def _is_funnel(problem: Problem, anchor: Anchor) -> bool:
    """Whether hyperparameters take the posterior far from its normal approximation."""
    known = problem.row_free_difference
    return _has_hyperparameters(problem) and not is_nearly_normal(known, anchor, _AS_GOOD)


def _of_hierarchy(anchor: Anchor, problem: Problem) -> SurrogatePosterior | None:
    """The surrogate; None where it cannot be sampled.

    Trajectories on it mix well where the normal approximation is poor: a spread and the levels that
    depend on it.
    """
    try:
        return surrogate_about(anchor, problem).surrogate
    except (NoAnchorError, *underivable):
        return None


def _found(
    expanded: ExpandedRows,
    problem: Problem,
    settings: Settings,
    by_default: bool,
    at: NDArray | None,
    say: Say,
) -> tuple[Modes, SurrogatePosterior | None]:
    """The anchor at a mode, or at the mean of the surrogate where no mode is useful."""
    modes, reason = None, NoAnchorError()
    try:
        modes = _modes(expanded, problem, settings, at, say)
    except NoAnchorError as error:
        reason = error
    if modes is not None:
        is_usual = modes.others or not modes.anchor.is_smooth
        is_usual = is_usual or is_nearly_normal(problem.row_free_difference, modes.anchor)
        if is_usual or not by_default:
            return modes, None
    try:
        anchor, surrogate = anchor_by_surrogate(problem, expanded, order=settings.order, at=at)
    except (NoAnchorError, *underivable):
        if modes is None:
            raise reason from None
        return modes, None
    return Modes(anchor), surrogate


def _modes(
    expanded: ExpandedRows, problem: Problem, settings: Settings, at: NDArray | None, say: Say
) -> Modes:
    say("finding the posterior mode")
    start, nearest = problem.start, None
    posterior = expanded.density(problem.row_free_derivatives, problem)
    rng, order = problem.prepared.rng, settings.order
    if at is not None:
        return Modes(find_anchor(start, posterior, rng=rng, order=order, at=at))
    if _has_hyperparameters(problem):
        # from levels that are all equal, as at the start, a search leads to a spread of 0
        assert problem.blocks is not None
        touched = np.setdiff1d(np.arange(start.size), problem.blocks.untouched)
        begin = conditional_mode(start, touched, posterior, rng=rng)
        nearest = find_anchor(begin, posterior, rng=rng, order=order)
    its: dict[str, Any] = {"nearest": nearest, "angles": problem.angles}
    return find_modes(start, posterior, rng=rng, order=order, **its)


def _about_mean(anchor: Anchor, expanded: ExpandedRows, problem: Problem) -> GaussianApproximation:
    posterior = expanded.density(problem.row_free_derivatives, problem)
    mean = posterior_mean(anchor, posterior, rng=problem.prepared.rng)
    return GaussianApproximation(mean, anchor.root)


def _impossible(problem: Problem) -> NoPlan | None:
    n_entries = problem.start.size
    if any(variable.dtype in discrete_types for variable in problem.variables):
        return NoPlan("there are discrete variables", _OF_DISCRETE)
    others = [variable for variable in problem.touched if variable in problem.shared]
    if others:
        names = _listed(others, problem)
        return NoPlan(f"other step methods move {names}, which the rows depend on", _OF_DISCRETE)
    if problem.moving_support:
        names = ", ".join(map(repr, problem.moving_support))
        return NoPlan(f"the support of the rows depends on {names}", _OF_SUPPORT)
    if n_entries > (most := _most_entries(problem)):
        reason = f"there are {n_entries} dimensions, more than {most}"
        if no_groups := problem.prepared.no_groups:
            reason += f", and levels are not moved by themselves because {no_groups}"
        return NoPlan(reason, "use NUTS" if no_groups else _OF_MANY)
    return None


def _without_derivatives(problem: Problem) -> str:
    """Why there is no expansion, as a clause."""
    parts = {"likelihood": problem.likelihood.rows, "prior": problem.likelihood.row_free}
    for part, graph in parts.items():
        if name := first_without_second_derivative(graph, problem.variables):
            return f"{name}, of the {part}, has no second derivative"
    return "an operation of the model has no second derivative"


def _most_entries(problem: Problem) -> int:
    if problem.start.size <= _MOST_WITH_GROUPS:
        return MOST_ENTRIES
    blocks = problem.blocks
    return _MOST_WITH_GROUPS if blocks is not None and blocks.factors else MOST_ENTRIES


def _listed(variables: Sequence, problem: Problem) -> str:
    return ", ".join(repr(problem.model.values_to_rvs[variable].name) for variable in variables)


def normal_approximations(modes: Modes) -> tuple[GaussianApproximation, ...]:
    """Normal approximations about the modes of comparable weight, the best first."""
    best = GaussianApproximation(modes.anchor.point, modes.anchor.root)
    return (best, *(GaussianApproximation(mode.point, mode.root) for mode in modes.others))


def warn_of_modes(modes: Modes, problem: Problem) -> None:
    """Warn that the posterior has several modes, or that a better one may have been missed.

    Warns
    -----
    AusterityWarning
        Either of these is the case; the message is one sentence with a remedy.
    """
    if modes.n_found > 1 and modes.n_at_best <= 1:
        sentence = (
            f"Searches from dispersed points found {modes.n_found} modes, and only one search "
            "reached the highest: there may be a higher one; give initial_point= near the intended "
            "mode, or a more informative prior."
        )
    elif modes.others:
        apart = np.abs(modes.others[0].point - modes.anchor.point)
        entry = int(np.argmax(apart / np.linalg.norm(modes.anchor.root, axis=1)))
        found = several_modes(1 + len(modes.others), problem.name_of_entry(entry))
        sentence = (
            f"{found}: chains start at any of them and may never reach the others; constrain what "
            "the data do not identify, such as a sign or an order, or give anchor= near the "
            "intended mode."
        )
    else:
        return
    warn_user(sentence)


def several_modes(number: int, name: str) -> str:
    """How many modes there are, and in which variable they differ most, as a clause."""
    return f"The posterior has {number} modes of comparable weight, which differ most in {name!r}"


def words_on_mode(modes: Modes) -> str:
    """Where the anchor is, as a phrase."""
    if modes.n_found == 1:
        return "the mode"
    if modes.rise <= 0.0:
        return f"the best of {modes.n_found} modes"
    return (
        f"the best of {modes.n_found} modes, {modes.rise:,.0f} nats above the one nearest to the "
        "start"
    )
