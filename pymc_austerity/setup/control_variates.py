"""The default plan: control variates about the mode, and rows sampled by influence."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import discrete_types, underivable
from pymc_austerity.control_variates import (
    Anchor,
    Modes,
    NoAnchorError,
    differences_of_all,
    find_anchor,
    find_modes,
    influence_scores,
)
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.sampling import (
    RowFunction,
    Sampling,
    StratifiedSampling,
)
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.deciding.uniform import uniform_sampling
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.rows import (
    ArrayRows,
    RowSource,
    SharedRows,
    StratifiedWindows,
)
from pymc_austerity.setup.exact import (
    NotExactError,
    cheap_exact_sampling,
    exact_sampling,
    stored,
)
from pymc_austerity.setup.modes import normal_approximations, warn_of_modes, words_on_mode
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import ExpandedRows, Residuals, expanded_rows
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.setup.strata import FEWEST_FIRST_ROWS, has_room_for_strata, stratify
from pymc_austerity.setup.surrogate import SurrogatePosterior
from pymc_austerity.setup.surrogate_anchor import anchor_by_surrogate, is_nearly_normal

__all__ = ["NoPlan", "Plan", "control_variate_plan"]

_MOST_ENTRIES = 300
_PILOT_PAIRS = 8
_PAIRS_TO_CHECK = 4
_BOUNDING = "bounding what rows can change"


class Plan(NamedTuple):
    """How decisions are fed; but for the exact part a `PosteriorRatio`."""

    row_function: RowFunction
    source: RowSource
    sampling: Sampling | PoissonSampling
    anchor: Anchor
    summary: str
    compiled_as: str
    modes: tuple[GaussianApproximation, ...]
    surrogate: SurrogatePosterior | None = None


class NoPlan(NamedTuple):
    """Why there are no control variates, as half a sentence, and what is known all the same."""

    reason: str
    modes: tuple[GaussianApproximation, ...] = ()


def control_variate_plan(
    problem: Problem,
    settings: Settings,
    exact_difference: Callable[..., Any],
    *,
    by_default: bool,
    anchor: NDArray | None,
    say: Say,
) -> Plan | NoPlan:
    """Find the anchor, measure the influence of the rows, store them by it.

    Parameters
    ----------
    problem, settings, anchor, say
        As in `pymc_austerity.setup.target.build`.
    exact_difference : callable
        Difference of the exact part, nats.
    by_default : bool
        Whether the proposal is for the package to choose.

    Warns
    -----
    AusterityWarning
        The posterior has several modes, or a better one may have been missed.
    """
    reason = _impossible(problem)
    if reason:
        return NoPlan(reason)
    try:
        expanded = expanded_rows(problem, settings.order)
        modes, surrogate = _found(
            expanded, problem, settings, exact_difference, by_default, anchor, say
        )
        warn_of_modes(modes, problem)
        if modes.others:
            n_modes = 1 + len(modes.others)
            return NoPlan(f"the posterior has {n_modes} modes", normal_approximations(modes))
        residuals = expanded.residuals(modes.anchor.point)
    except NoAnchorError as error:
        return NoPlan(str(error))
    except underivable:
        return NoPlan("an operation of the likelihood has no second derivative")
    where = "the anchor given" if anchor is not None else words_on_mode(modes)
    if surrogate is not None and anchor is None:
        where = "the mean of a surrogate, as the posterior is far from normal"
    about = _About(residuals, modes.anchor, surrogate, where, problem, settings, say)
    if settings.decides_exactly:
        return _exact(about)
    return _cheaper(about) if settings.may_decide_exactly else _sequential(about)


class _About(NamedTuple):
    """What a plan is made of: rows, expanded about an anchor, and where that is, in words."""

    residuals: Residuals
    anchor: Anchor
    surrogate: SurrogatePosterior | None
    where: str
    problem: Problem
    settings: Settings
    say: Say

    def plan(
        self,
        function: RowFunction,
        source: RowSource,
        sampling: Sampling | PoissonSampling,
        summary: str,
    ) -> Plan:
        """The plan for rows that are stored and sampled in some way."""
        summary = f"control variates of order {self.anchor.order} about {self.where}; {summary}"
        modes = normal_approximations(Modes(self.anchor))
        as_what = self.residuals.compiled_as
        return Plan(
            function, source, sampling, self.anchor, summary, as_what, modes, self.surrogate
        )


def _cheaper(about: _About) -> Plan:
    """Exact decisions, unless a sequential test sees fewer rows at its first look."""
    about.say(_BOUNDING)
    try:
        exact = cheap_exact_sampling(about.problem, about.residuals, about.anchor)
    except NotExactError as reason:
        plan = _sequential(about)
        return plan._replace(summary=f"{plan.summary}; no exact decisions because {reason}")
    rows = exact.expected_rows
    if rows <= FEWEST_FIRST_ROWS:
        return _plan_of(exact, about, f"fewer than {FEWEST_FIRST_ROWS}")
    plan = _sequential(about)
    assert not isinstance(plan.sampling, PoissonSampling)
    n_first = plan.sampling.strata.n_first
    if rows <= n_first:
        return _plan_of(exact, about, f"fewer than {n_first:,}")
    return plan._replace(
        summary=f"{plan.summary} (exact decisions are expected to read {_rounded(rows)})"
    )


def _sequential(about: _About) -> Plan:
    about.say("measuring the influence of the rows")
    settings = about.settings
    if settings.by_influence and has_room_for_strata(settings):
        return _stratified(about)
    _refuse_too_few_for_strata(settings)
    return _uniform(about)


def _found(
    expanded: ExpandedRows,
    problem: Problem,
    settings: Settings,
    exact_difference: Callable[..., Any],
    by_default: bool,
    at: NDArray | None,
    say: Say,
) -> tuple[Modes, SurrogatePosterior | None]:
    """The anchor at a mode, or at the mean of the surrogate where none is of use."""

    def by_surrogate() -> tuple[Modes, SurrogatePosterior]:
        anchor, surrogate = anchor_by_surrogate(
            problem, expanded, exact_difference, order=settings.order, at=at
        )
        return Modes(anchor), surrogate

    try:
        modes = _modes(expanded, problem, settings, at, say)
    except NoAnchorError as error:
        try:
            return by_surrogate()
        except (NoAnchorError, *underivable):
            raise error from None
    is_usual = modes.others or is_nearly_normal(exact_difference, modes.anchor)
    if is_usual or not by_default:
        return modes, None
    try:
        return by_surrogate()
    except (NoAnchorError, *underivable):
        return modes, None


def _modes(
    expanded: ExpandedRows, problem: Problem, settings: Settings, at: NDArray | None, say: Say
) -> Modes:
    exact = problem.exact_derivatives
    say("finding the posterior mode")
    rows = ArrayRows(problem.likelihood.arrays)
    search = (problem.start, expanded.derivatives, exact, expanded.differences, rows)
    rng, order = problem.prepared.rng, settings.order
    if at is not None:
        return Modes(find_anchor(*search, rng=rng, order=order, at=at))
    return find_modes(*search, rng=rng, order=order)


def _refuse_too_few_for_strata(settings: Settings) -> None:
    if settings.sampling == "strata":
        raise SettingError(
            f"sampling='strata' is not possible with batch_size={settings.batch_size}, too few "
            "rows for strata: choose a larger batch_size, or leave one of them out."
        )


def _impossible(problem: Problem) -> str:
    n_entries = problem.start.size
    if any(variable.dtype in discrete_types for variable in problem.variables):
        return "there are discrete variables"
    others = [variable for variable in problem.touched if variable in problem.shared]
    if others:
        return f"other step methods move {_listed(others, problem)}, which the rows depend on"
    if problem.moving_support:
        return f"the support of the rows depends on {', '.join(map(repr, problem.moving_support))}"
    if n_entries > _MOST_ENTRIES:
        return f"there are {n_entries} dimensions, more than {_MOST_ENTRIES}"
    return ""


def _exact(about: _About) -> Plan:
    about.say(_BOUNDING)
    try:
        sampling = exact_sampling(about.problem, about.residuals, about.anchor)
    except NotExactError as reason:
        raise SettingError(
            f"{about.settings.who_decides_exactly} is not possible because {reason}: use "
            "AusterityMH(), which takes a sequential test there."
        ) from None
    return _plan_of(sampling, about)


def _plan_of(sampling: PoissonSampling, about: _About, why: str = "") -> Plan:
    sampling = stored(sampling, about.residuals)
    source = sampling.source
    summary = (
        f"exact decisions, expected to read {_rounded(sampling.expected_rows)} of "
        f"{source.n_rows:,} rows"
    )
    summary += f", {why} at the first look of a sequential test" if why else ""
    return about.plan(sampling.function, source, sampling, summary)


def _listed(variables: Sequence, problem: Problem) -> str:
    return ", ".join(repr(problem.model.values_to_rvs[variable].name) for variable in variables)


def _rounded(rows: float) -> str:
    return f"{rows:,.0f}" if rows >= 10.0 else f"{rows:.1g}"


def _uniform(about: _About) -> Plan:
    problem, settings = about.problem, about.settings
    function, arrays, _, _ = about.residuals
    source = SharedRows(arrays, problem.prepared.rng.permutation(problem.likelihood.n_rows))
    sampling, summary = uniform_sampling(function, source, settings, of_residuals=True)
    if settings.by_influence:
        summary += ", too few for strata"
    return about.plan(function, source, sampling, summary)


def _stratified(about: _About) -> Plan:
    anchor, rng, dtype = about.anchor, about.problem.prepared.rng, about.problem.start.dtype
    function, arrays, _, _ = about.residuals
    rows = ArrayRows(arrays)
    pairs = [
        (anchor.draw(rng).astype(dtype), anchor.draw(rng).astype(dtype))
        for _ in range(_PILOT_PAIRS)
    ]
    scores = influence_scores(function, pairs, rows)
    checked = [differences_of_all(function, *pair, rows) for pair in pairs[:_PAIRS_TO_CHECK]]
    order, strata, n_take_all = stratify(scores, checked, about.settings, rng)
    source = SharedRows(arrays, order)
    within = np.split(scores[order], np.cumsum(strata.sizes)[:-1])
    deviations = np.sqrt([np.mean(part**2) for part in within])
    sampling = StratifiedSampling(function, StratifiedWindows(source, strata), deviations)
    always = f" ({n_take_all:,} of them always)" if n_take_all else ""
    summary = (
        f"{rows.n_rows:,} rows sampled by influence in {strata.sizes.size} strata, "
        f"{int(strata.first_counts.sum()):,} at the first look{always}"
    )
    return about.plan(function, source, sampling, summary)
