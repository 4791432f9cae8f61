"""The default plan: control variates about the mode, and rows sampled by influence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import discrete_types, underivable
from pymc_austerity.control_variates import (
    Anchor,
    NoAnchorError,
    ResidualFunction,
    differences_of_all,
    find_anchor,
    influence_scores,
)
from pymc_austerity.deciding.sampling import (
    RowFunction,
    Sampling,
    StratifiedSampling,
)
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.deciding.uniform import uniform_sampling
from pymc_austerity.model import RowLikelihood, compile_derivatives, compile_residuals
from pymc_austerity.rows import (
    ArrayRows,
    SharedRows,
    StratifiedWindows,
)
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.setup.strata import has_room_for_strata, stratify

__all__ = ["Plan", "PlanRequest", "control_variate_plan"]

_MOST_ENTRIES = 300
_PILOT_PAIRS = 8
_PAIRS_TO_CHECK = 4


class Plan(NamedTuple):
    """How decisions are fed; the middle of `Machinery`."""

    sampling: Sampling
    row_function: RowFunction
    source: SharedRows
    anchor: Anchor
    summary: str


@dataclass(frozen=True)
class PlanRequest:
    """A split model, the variables to move, and what the user wants.

    Attributes
    ----------
    likelihood, variables, shared, point
        As in `pymc_austerity.model.compile_differences`.
    start : array, shape (d,)
        The raveled point.
    row_function : callable
        Compiled row differences.
    settings : Settings
        What the user chose.
    """

    likelihood: RowLikelihood
    variables: Sequence
    shared: Mapping
    point: Mapping[str, NDArray]
    start: NDArray
    row_function: RowFunction
    settings: Settings


def control_variate_plan(
    request: PlanRequest,
    *,
    rng: np.random.Generator,
    anchor: NDArray | None,
    compile_kwargs: dict[str, Any] | None,
    say: Say,
) -> tuple[Plan | None, str]:
    """Find the anchor, measure the influence of the rows, store them by it.

    Returns
    -------
    plan : Plan or None
        None where the model does not allow for control variates.
    reason : str
        Why not, as half a sentence.
    """
    settings = request.settings
    reason = _impossible(request.variables, request.shared, request.start.size)
    if reason:
        return None, reason
    rows = ArrayRows(request.likelihood.arrays)
    arguments = (request.likelihood, request.variables, request.shared, request.point)
    try:
        derivatives = compile_derivatives(*arguments, compile_kwargs=compile_kwargs)
        say("finding the posterior mode")
        found = find_anchor(
            request.start,
            *derivatives,
            request.row_function,
            rows,
            rng=rng,
            order=settings.order,
            at=anchor,
        )
        residuals = compile_residuals(
            *arguments, order=settings.order, compile_kwargs=compile_kwargs
        )
    except NoAnchorError as error:
        return None, str(error)
    except underivable:
        return None, "an operation of the likelihood has no second derivative"
    say("measuring the influence of the rows")
    function = ResidualFunction(residuals, found.point.astype(request.start.dtype))
    where = "the mode" if anchor is None else "the anchor given"
    if not (settings.by_influence and has_room_for_strata(settings)):
        return _uniform(function, found, where, request, rng), ""
    return _stratified(function, found, where, rows, request, rng), ""


def _impossible(variables: Sequence, shared: Mapping, n_entries: int) -> str:
    if any(variable.dtype in discrete_types for variable in variables):
        return "there are discrete variables"
    if shared:
        return "other step methods move other variables"
    if n_entries > _MOST_ENTRIES:
        return f"there are {n_entries} dimensions, more than {_MOST_ENTRIES}"
    return ""


def _uniform(
    function: ResidualFunction,
    anchor: Anchor,
    where: str,
    request: PlanRequest,
    rng: np.random.Generator,
) -> Plan:
    order = rng.permutation(request.likelihood.n_rows)
    source = SharedRows(request.likelihood.arrays, order)
    sampling, summary = uniform_sampling(function, source, request.settings, of_residuals=True)
    summary = f"control variates of order {anchor.order} about {where}; {summary}"
    if request.settings.by_influence:
        summary += ", too few for strata"
    return Plan(sampling, function, source, anchor, summary)


def _stratified(
    function: ResidualFunction,
    anchor: Anchor,
    where: str,
    rows: ArrayRows,
    request: PlanRequest,
    rng: np.random.Generator,
) -> Plan:
    dtype = function.anchor.dtype
    pairs = [
        (_draw(anchor, rng).astype(dtype), _draw(anchor, rng).astype(dtype))
        for _ in range(_PILOT_PAIRS)
    ]
    scores = influence_scores(function, pairs, rows)
    checked = [differences_of_all(function, *pair, rows) for pair in pairs[:_PAIRS_TO_CHECK]]
    order, strata, n_take_all = stratify(scores, checked, request.settings, rng)
    source = SharedRows(request.likelihood.arrays, order)
    within = np.split(scores[order], np.cumsum(strata.sizes)[:-1])
    deviations = np.sqrt([np.mean(part**2) for part in within])
    sampling = StratifiedSampling(function, StratifiedWindows(source, strata), deviations)
    always = f" ({n_take_all:,} of them always)" if n_take_all else ""
    summary = (
        f"control variates of order {anchor.order} about {where}; {rows.n_rows:,} rows sampled by "
        f"influence in {strata.sizes.size} strata, {int(strata.first_counts.sum()):,} at the first "
        f"look{always}"
    )
    return Plan(sampling, function, source, anchor, summary)


def _draw(anchor: Anchor, rng: np.random.Generator) -> NDArray[np.float64]:
    return anchor.point + anchor.root.dot(rng.standard_normal(anchor.point.size))
