"""Entries of an observed variable, cut to rows: their log-likelihoods, and new ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    MinibatchRandomVariable,
    RandomGeneratorType,
    SharedVariable,
    Variable,
    ancestors,
    clone_replace,
    random_generator_type,
    remove_value_transforms,
)
from pymc_austerity.arguments import checked_axis, choice_among
from pymc_austerity.errors import NotRowwiseError, SettingError
from pymc_austerity.model.compiling import NUMPY_MODE, compiled, evaluated
from pymc_austerity.model.cut import (
    NO_EXAMPLES,
    CannotCut,
    Cut,
    Examples,
    Known,
    RowLeaf,
    refuse_work_on_all_rows,
    static_data,
)
from pymc_austerity.model.cut.rules_elementwise import ONE_BY_ONE
from pymc_austerity.model.rewritten import inlined, on_full_data, spelled_out
from pymc_austerity.model.row_likelihood import LeafRecipes
from pymc_austerity.model.split import computed_leaves, leaf_recipes, with_length
from pymc_austerity.model.terms import (
    refuse_number_of_rows,
    terms_of,
    with_known_lengths,
)


@dataclass(frozen=True, eq=False)
class PointwiseRows:
    """A quantity with the shape of an observed variable, at any of its rows.

    Attributes
    ----------
    model : pymc.Model
        Without transforms and mini-batches.
    name : str
        Of the observed variable.
    variables : tuple of variables
        Value variables of the model: they have the names and the scale of the posterior.
    generators : tuple of variables
        Random generators that it is drawn with; empty for a log-likelihood.
    rows : variable, shape (..., m, ...)
        The quantity for the m rows whose data are given for the placeholders.
    leaves : tuple of RowLeaf
        Data of the rows.
    shape : tuple of int
        Of the quantity for all rows.
    axis : int
        Its axis of rows.
    examples : Examples
        Data that hold a few rows of many: `leaves` and `shape` are then those of the example.
    recipes : LeafRecipes or None
        Leaves of any rows of such data.
    """

    model: pm.Model
    name: str
    variables: tuple[Variable, ...]
    generators: tuple[Variable, ...]
    rows: Variable
    leaves: tuple[RowLeaf, ...]
    shape: tuple[int, ...]
    axis: int
    examples: Examples
    recipes: LeafRecipes | None

    def function(self) -> Callable[..., NDArray]:
        """From values of the variables, data of some rows, and generators to the quantity."""
        placeholders = [leaf.placeholder for leaf in self.leaves]
        inputs = [*self.variables, *placeholders, *self.generators]
        if self.generators:
            return compiled(self.model, inputs, self.rows, {"mode": NUMPY_MODE})
        function = evaluated(self.model, inputs, [self.rows])
        return lambda *values: function(*values)[0]


def log_likelihood_rows(
    model: pm.Model, name: str, axis: int = 0, examples: Sequence[str] = ()
) -> PointwiseRows:
    """Cut the log-likelihoods of the entries of an observed variable to rows.

    Parameters
    ----------
    model : pymc.Model
    name : str
        Of the observed variable.
    axis : int
        Axis of its rows.
    examples : sequence of str
        Names of data that hold a few rows of many.

    Raises
    ------
    NotRowwiseError
        Rows depend on each other.
    SettingError
        There is no such variable, or no such axis.
    """
    whole, given = _whole(model, name, examples)
    known = Known(whole.value_vars, whole.initial_point(), given)
    (graph,) = [term.plain for term in terms_of(whole, known) if term.name == name]
    (plain,) = spelled_out([graph], known)
    return _cut(whole, name, plain, known, axis, "the log-likelihood")


def predictive_rows(
    model: pm.Model, name: str, axis: int = 0, examples: Sequence[str] = ()
) -> PointwiseRows:
    """Cut an observed variable, as it is drawn given the others, to rows.

    The parameters and errors are those of `log_likelihood_rows`.
    """
    whole, given = _whole(model, name, examples)
    values = {variable: whole.rvs_to_values[variable] for variable in whole.free_RVs}
    parents = set(ancestors([whole[name]])) & set(whole.observed_RVs) - {whole[name]}
    if parents:
        other = next(iter(parents)).name
        raise NotRowwiseError(
            f"the distribution of {name!r} depends on {other!r}, which is observed, too, and both "
            "have to be drawn together: use PyMC's function for this model."
        )
    drawn = whole[name]
    if drawn.owner is not None and isinstance(drawn.owner.op, MinibatchRandomVariable):
        drawn = drawn.owner.inputs[0]  # total_size scales the log-density alone
    (graph,) = clone_replace([drawn], values, rebuild_strict=False)
    # As inputs generators are what draws depend on, so that none is taken for data.
    generators = {
        shared: random_generator_type(f"generator_{number}")
        for number, shared in enumerate(ancestors([graph]))
        if isinstance(shared, SharedVariable) and isinstance(shared.type, RandomGeneratorType)
    }
    (graph,) = clone_replace([graph], generators, rebuild_strict=False)
    (plain,) = inlined(static_data(inlined([pt.as_tensor(graph, allow_xtensor_conversion=True)])))
    point = whole.initial_point() | {v.name: np.random.default_rng(0) for v in generators.values()}
    known = Known([*whole.value_vars, *generators.values()], point, given)
    known.learn_shapes([plain])
    return _cut(whole, name, plain, known, axis, "the distribution")


def _whole(model: pm.Model, name: str, examples: Sequence[str]) -> tuple[pm.Model, Examples]:
    observed = [variable.name for variable in model.observed_RVs]
    if name not in observed:
        raise SettingError(
            f"{name!r} is not an observed variable of the model: {choice_among(name, observed)}."
        )
    whole = remove_value_transforms(on_full_data(model))
    return whole, Examples.named(whole, examples) if examples else NO_EXAMPLES


def _cut(
    whole: pm.Model, name: str, plain: Variable, known: Known, axis: int, what: str
) -> PointwiseRows:
    known.learn_values([plain])
    axis, shape = checked_axis(axis), known.shape(plain)
    if axis >= len(shape):
        raise SettingError(
            f"axis={axis} is not an axis of {name!r}, whose entries have shape {shape}: give the "
            "axis of its rows."
        )
    cut = Cut(known, shape[axis])
    try:
        rows = cut.take(plain, axis)
        refuse_work_on_all_rows(cut)
    except CannotCut as refusal:
        raise NotRowwiseError(
            f"{what} of {name!r} cannot be evaluated for some of the rows because "
            f"{refusal.reason}: use PyMC's function for this model."
        ) from None
    rows = with_length([rows], cut)
    leaves, recipes = tuple(cut.leaves), None
    if known.examples:
        (rows,) = with_known_lengths([rows], known)
        refuse_number_of_rows([rows], known)
        inputs = {leaf.placeholder.name: leaf.placeholder for leaf in leaves}
        rows, leaves = computed_leaves(rows, leaves, known.parameters)
        recipes = leaf_recipes(leaves, inputs)
    generators = tuple(
        v for v in ancestors([rows]) if v.owner is None and isinstance(v.type, RandomGeneratorType)
    )
    if any(not generator.name.startswith(ONE_BY_ONE) for generator in generators):
        raise NotRowwiseError(
            f"{what} of {name!r} cannot be evaluated for some of the rows because many rows read "
            "the same draw: use PyMC's function for this model."
        )
    if len({generator.name for generator in generators}) < len(generators):
        raise NotRowwiseError(
            f"{what} of {name!r} cannot be evaluated for some of the rows because one draw is read "
            "in two ways: use PyMC's function for this model."
        )
    return PointwiseRows(
        whole,
        name,
        tuple(whole.value_vars),
        generators,
        rows,
        leaves,
        shape,
        axis,
        known.examples,
        recipes,
    )
