"""Descriptions of what was built: constants of the run, and text."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from pymc_austerity.deciding.exact import AnyDecider
from pymc_austerity.deciding.promise import (
    details_of,
    name_of_test,
    promise_of,
    rows_of,
    verdict_of,
)
from pymc_austerity.design import NormalityCheck
from pymc_austerity.proposals import Proposal
from pymc_austerity.setup.target import Target


class Words(NamedTuple):
    """Description of what was built.

    Attributes
    ----------
    what : str
        What the step method does and how exact it is, in sentences.
    cost : str
        Rows that it reads, as part of a sentence.
    details : tuple of str
        Other sentences of `explain`.
    """

    what: str
    cost: str
    details: tuple[str, ...] = ()


def constants_of(
    target: Target,
    decider: AnyDecider,
    proposal: Proposal[Any],
    normality: NormalityCheck | None,
) -> dict[str, Any]:
    """Constants of a run of AusterityMH, as numbers and strings."""
    settings, plan = decider.settings, decider.plan
    constants = {
        "epsilon": settings.final_epsilon,
        "max_error": math.nan if settings.max_error is None else settings.max_error,
        "test": name_of_test(decider),
        "acceptance_rule": settings.description.acceptance,
        "assumption": settings.description.assumption,
        "proposal": type(proposal).__name__,
        "proposal_rows": getattr(proposal, "n_rows_read", 0),
        "audit": decider.audits.share,
        "steps_per_draw": settings.steps_per_draw,
        "control_variates": 0 if target.anchor is None else target.anchor.order,
        "no_control_variates": target.no_control_variates,
        "normality": verdict_of(normality),
        **target.sampling.constants,
    }
    if plan is not None and plan.chooses_batch_size:
        constants["batch_size"] = math.nan
    return constants


def words_of(
    target: Target,
    decider: AnyDecider,
    proposal: Proposal[Any],
    normality: NormalityCheck | None,
) -> Words:
    """What AusterityMH does, how exact it is, and what it costs."""
    what = f"{promise_of(decider, normality)}."
    if target.without:
        what = f"{what} {target.without}"
    gradients = _gradients(proposal, target.source.n_rows)
    proposing = f"Proposals: {type(proposal).__name__}{gradients and f', with {gradients}'}."
    cost = f"{rows_of(decider)}{gradients and f', besides {gradients}'}"
    return Words(what, cost, (*target.details, *details_of(decider), proposing))


def _gradients(proposal: Proposal[Any], n_rows: int) -> str:
    """How many rows the gradients of a proposal read; empty if none."""
    n_read = getattr(proposal, "n_rows_read", 0)
    if n_read == 0:
        return ""
    return f"gradients of {'all' if n_read == n_rows else f'{n_read:,}'} rows"


class StatisticsTypes(dict):
    """Types of the statistics of a step method, together with the constants of the run.

    PyMC passes this dictionary unchanged from the step method to the trace, from which
    `pymc_austerity._pymc.annotate_conversion` writes the constants to the attributes of
    ``sample_stats``.

    Attributes
    ----------
    constants : dict
        Names and values (numbers or strings) of the constants of the run.
    """

    def __init__(self, types: dict[str, type], constants: dict[str, Any]) -> None:
        super().__init__(types)
        self.constants = constants

    def __reduce__(self) -> tuple:
        return type(self), (dict(self), self.constants)


def merged_constants(statistics_types: Iterable[dict]) -> dict[str, Any]:
    """Constants that all step methods of a run have; lists if they differ.

    Parameters
    ----------
    statistics_types : iterable of dict
        Types of the statistics of each step method; those of other packages are ignored.

    Examples
    --------
    >>> ours = StatisticsTypes({}, {"epsilon": 0.05, "n_rows": 10, "max_error": float("nan")})
    >>> merged_constants([ours, {"tree_depth": int}])
    {'epsilon': 0.05, 'n_rows': 10, 'max_error': nan}
    """
    runs = [types.constants for types in statistics_types if isinstance(types, StatisticsTypes)]
    merged: dict[str, Any] = {}
    for name in runs[0] if runs else ():
        if not all(name in constants for constants in runs):
            continue
        values = [constants[name] for constants in runs]
        merged[name] = values[0] if all(_same(value, values[0]) for value in values) else values
    return merged


def _same(one: Any, other: Any) -> bool:
    """Whether two constants are equal; NaN, which represents a missing value, equals itself."""
    return bool(one == other or (one != one and other != other))
