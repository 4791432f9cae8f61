"""What a step method says of itself: constants, the words of the log, and `explain`."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pymc as pm

from pymc_austerity._pymc import Variable
from pymc_austerity.deciding.exact import AnyDecider
from pymc_austerity.deciding.promise import (
    details_of,
    name_of_test,
    promise_of,
    rows_of,
    verdict_of,
)
from pymc_austerity.design import NormalityCheck
from pymc_austerity.model.cut import RowLeaf, static_data
from pymc_austerity.model.levels.blocks import Blocks
from pymc_austerity.model.predictors.structure import RowStructure
from pymc_austerity.model.row_likelihood import EvaluatedInFull, RowLikelihood
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


def explain(
    row_likelihood: RowLikelihood,
    vars: Sequence[Variable] | None = None,
    *,
    structure: RowStructure | str | None = None,
    compiled_as: str = "",
    blocks: Blocks | None = None,
    centered: Sequence[str] = (),
    free: Sequence[str] = (),
    doubts: Sequence[str] = (),
) -> str:
    """Describe a split log-density in plain words, without what is empty.

    Parameters
    ----------
    row_likelihood : RowLikelihood
        What to describe.
    vars : sequence of variables, optional
        Value variables of the step; then the description says what happens to the others.
    structure : RowStructure or str, optional
        Linear predictors of the rows: result of `find_predictors`.
    compiled_as : str
        What evaluates rows and why, as the end of a sentence.
    blocks : Blocks, optional
        Factors: result of `find_blocks`.
    centered : sequence of str
        Names of the variables that are moved as products with their scales.
    free : sequence of str
        Names of the variables whose entries sum to zero and are moved as if they need not.
    doubts : sequence of str
        What was written for the model, gives other numbers, and is not used.

    Returns
    -------
    str
        Some lines of text.
    """
    transforms = row_likelihood.model.rvs_to_transforms
    transformed = {rv.name for rv, transform in transforms.items() if transform is not None}
    lines = [
        f"Split into rows: {_listed(row_likelihood.subsampled)}, {row_likelihood.n_rows:,} rows.",
        *(f"  {line}" for line in _about_leaves(row_likelihood.leaves)),
        "In full at every step:",
        *(
            f"  {_about_term(term, row_likelihood.n_in_model, term.name in transformed)}"
            for term in row_likelihood.evaluated_in_full
        ),
    ]
    if structure is not None:
        lines.append(_about_predictors(structure))
    if centered:
        names = ", ".join(centered)
        lines.append(f"Moved as products with their scales (centered): {names}.")
    if free:
        names = ", ".join(free)
        lines.append(f"Moved as levels whose mean is free, although they sum to zero: {names}.")
    if blocks is not None:
        lines += [
            f"Groups: {factor}, independent given the other variables." for factor in blocks.factors
        ]
        if blocks.untouched_names:
            lines.append(f"Read by no row: {blocks.untouched_names}.")
    if compiled_as:
        lines.append(f"Rows are evaluated by compiling {compiled_as}.")
    lines += [
        f"PyTensor evaluates the model in place of {what}, which gives other numbers."
        for what in dict.fromkeys(doubts)
    ]
    rvs = {v: row_likelihood.model.values_to_rvs[v].name for v in row_likelihood.value_vars}
    local = [name for v, name in rvs.items() if v in row_likelihood.local_variables]
    if local:
        lines.append(f"One entry per row: {_listed(local)}; updates of these must read all rows.")
    others = [] if vars is None else [name for v, name in rvs.items() if v not in set(vars)]
    if others:
        lines.append(
            f"Left to other step methods: {_listed(others)}; unless you assign them, PyMC uses "
            "NUTS (for discrete variables, Metropolis and similar step methods) on all the data."
        )
    return "\n".join(lines)


def row_length_deterministics(row_likelihood: RowLikelihood) -> list[str]:
    """Names of the Deterministics with one entry per row.

    PyMC computes and stores them at every draw, which costs a pass over all rows.

    Returns
    -------
    list of str
        In the order of the model. Shapes that cannot be told without evaluating the model are
        passed over.
    """
    model = row_likelihood.model
    plain = static_data(model.deterministics) if model.deterministics else []
    return [
        variable.name
        for variable, static in zip(model.deterministics, plain, strict=True)
        if row_likelihood.n_in_model
        in (*static.type.shape, *_lengths_of_dims(model, variable.name))
    ]


def _lengths_of_dims(model: pm.Model, name: str) -> list[int]:
    dims = model.named_vars_to_dims.get(name) or ()
    return [int(model.dim_lengths[dim].eval()) for dim in dims if dim in model.dim_lengths]


def _about_predictors(structure: RowStructure | str) -> str:
    if isinstance(structure, str):
        return f"Linear predictors of the rows: none, because {structure}."
    names = ", ".join(predictor.name for predictor in structure.predictors)
    return f"Linear predictors of the rows: {names}."


def _about_leaves(leaves: Sequence[RowLeaf]) -> list[str]:
    """A line for each array, and one for all that sources' rows are computed into."""
    lines, n_computed = [], 0
    for leaf in leaves:
        if leaf.is_computed and leaf.recipe is not None:
            n_computed += leaf.array[0].size
        else:
            lines.append(_about_leaf(leaf))
    if n_computed:
        lines.append(f"computes {_numbers(n_computed)} for each row from these, block by block.")
    return lines


def _about_leaf(leaf: RowLeaf) -> str:
    name, array = leaf.placeholder.name, leaf.array
    if leaf.recipe is not None:
        return f"reads {name}: {_numbers(array[0].size)} of each row, {array.dtype}."
    shape = " x ".join(f"{length:,}" for length in array.shape)
    once = " (computed from the data once, at the start)" if leaf.is_computed else ""
    return f"reads {name}{once}: {shape} of {array.dtype}, {array.nbytes / 1e6:.1f} MB."


def _numbers(count: int) -> str:
    return "1 number" if count == 1 else f"{count:,} numbers"


def _about_term(term: EvaluatedInFull, n_rows: int, is_transformed: bool) -> str:
    if term.kind == "prior":
        entries = f" of {n_rows:,} entries" if n_rows in term.shape else ""
        jacobian = ", with the Jacobian of its transform" if is_transformed else ""
        return f"{term.name!r}: a prior{entries}{jacobian}."
    if n_rows in term.shape:
        return (
            f"{term.name!r}: {_KINDS[term.kind]} with one entry per row; name it with "
            f"likelihood=[..., {term.name!r}] to subsample it as well."
        )
    return f"{term.name!r}: {_KINDS[term.kind]} of shape {term.shape}, without these rows."


_KINDS = {"potential": "a potential", "observed": "an observed variable"}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
