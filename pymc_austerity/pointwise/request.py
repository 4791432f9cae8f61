"""A quantity of an observed variable, cut to rows: for some of the rows, at some draws."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from rich.progress import track

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
from pymc_austerity.errors import (
    NotRowwiseError,
    SettingError,
    SettingTypeError,
    warn_user,
)
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
from pymc_austerity.model.split import with_length, with_recipes
from pymc_austerity.model.terms import terms_of
from pymc_austerity.setup.model_inputs import refuse_draws_of_bambi
from pymc_austerity.setup.source_rows import SourceRows, open_sources


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
    if not shape:
        raise NotRowwiseError(
            f"{what} of {name!r} is one number for all of its values, so that rows have none of "
            "their own: use PyMC's function for this model."
        )
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
        (rows,), leaves, recipes = with_recipes([rows], leaves, known)
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


Generators = Callable[[int], list[np.random.Generator]]
"""Maps the number of a draw to the random generators for it."""


def no_generators(sample: int) -> list[np.random.Generator]:
    """For what is not random."""
    return []


_NUMBERS, _MOST_ROWS = 4_000_000, 8_192
"""Numbers in a block of results (32 MB), and its rows."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Values of the variables of a model, draw by draw.

    Attributes
    ----------
    posterior : xarray.Dataset
        Source of the values.
    values : list of arrays, each of shape (n_chains * n_draws, ...)
        One for each variable; the draws of the first chain come first.
    """

    posterior: xr.Dataset
    values: list[NDArray]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of chains and of draws per chain."""
        return self.posterior.sizes["chain"], self.posterior.sizes["draw"]

    @property
    def size(self) -> int:
        """Number of draws of all chains."""
        n_chains, n_draws = self.shape
        return n_chains * n_draws

    def point(self, number: int) -> list[NDArray]:
        """Values of one draw."""
        return [value[number] for value in self.values]

    def mean(self) -> list[NDArray]:
        """Means of all draws, rounded where a variable is discrete."""
        means = [value.mean(axis=0) for value in self.values]
        return [
            np.asarray(mean if value.dtype.kind == "f" else np.rint(mean), dtype=value.dtype)
            for mean, value in zip(means, self.values, strict=True)
        ]


def draws_of(idata: Any, variables: Sequence[Variable]) -> Draws:
    """The draws of some variables.

    Parameters
    ----------
    idata : InferenceData or DataTree
        A run with a group ``posterior``.
    variables : sequence of variables
        Value variables whose names and scale are those of the posterior.

    Raises
    ------
    SettingError
        A variable was not stored, or has another shape; or the draws are those of Bambi's ``fit``.
    SettingTypeError
        There is no posterior.
    """
    group = None if isinstance(idata, xr.Dataset) else getattr(idata, "posterior", None)
    if group is None:
        raise SettingTypeError(
            "idata must be an InferenceData or a DataTree with a group 'posterior', not "
            f"{type(idata).__name__}: pass what pm.sample returned."
        )
    posterior = group.to_dataset() if isinstance(group, xr.DataTree) else group
    refuse_draws_of_bambi("idata", posterior)
    missing = [variable.name for variable in variables if variable.name not in posterior]
    if missing:
        raise SettingError(
            f"the posterior has no draws of {', '.join(map(repr, missing))}: sample again without "
            "leaving them out of var_names."
        )
    values = [_values(posterior[variable.name], variable) for variable in variables]
    return Draws(posterior, values)


def _values(draws: xr.DataArray, variable: Variable) -> NDArray:
    values = draws.transpose("chain", "draw", ...).values
    flat = values.reshape(-1, *values.shape[2:])
    expected = variable.type.shape
    if flat.ndim - 1 != len(expected) or any(
        length not in (None, own) for length, own in zip(expected, flat.shape[1:], strict=True)
    ):
        raise SettingError(
            f"draws of {variable.name!r} have shape {flat.shape[1:]} instead of {expected}: pass "
            "the model that was sampled."
        )
    return np.ascontiguousarray(flat, dtype=variable.dtype)


class WhichRows(TypedDict, total=False):
    """Arguments that select rows, as `compute_log_likelihood` explains them."""

    rows: ArrayLike | None
    axis: int
    data: Mapping[str, Any] | None


@dataclass(frozen=True, eq=False)
class PointwiseRequest:
    """A quantity of an observed variable for some of its rows, at all draws.

    Attributes
    ----------
    of_rows : PointwiseRows
    function : callable
        As from `PointwiseRows.function`.
    draws : Draws
    source : SourceRows or None
        The rows, where the model holds only some of them.
    numbers : int array, shape (m,), or range
        Numbers of the rows.
    dims : tuple of str
        Names of the axes, except for chain and draw.
    coords : dict
        Known coordinates of all axes.
    """

    of_rows: PointwiseRows
    function: Callable[..., NDArray]
    draws: Draws
    source: SourceRows | None
    numbers: NDArray[np.int64] | range
    dims: tuple[str, ...]
    coords: dict[str, Any]

    @classmethod
    def of(
        cls,
        quantity: Callable[..., PointwiseRows],
        name: str,
        idata: Any,
        model: pm.Model,
        *,
        rows: ArrayLike | None = None,
        axis: int = 0,
        data: Mapping[str, Any] | None = None,
    ) -> "PointwiseRequest":
        """Quantity of an observed variable, with dimensions and coordinates as in PyMC.

        Parameters
        ----------
        quantity : callable
            ``quantity(model, name, axis, names of data)``: the rows of `pymc_austerity.model`.
        name : str
            Of the observed variable.
        idata, model, rows, axis, data
            As for `compute_log_likelihood`.

        Raises
        ------
        SettingError, SettingTypeError
            There are no such rows, or no draws of the variables that they depend on.

        Warns
        -----
        AusterityWarning
            The run read rows of ``data=``, but these rows are those of the model.
        """
        of_rows = quantity(model, name, axis, tuple(data or ()))
        draws, source, shape = draws_of(idata, of_rows.variables), None, list(of_rows.shape)
        if data is not None:
            source = SourceRows.of(open_sources(data, of_rows.examples), of_rows)
            shape[of_rows.axis] = source.n_rows
        else:
            _warn_of_an_example(idata, shape[of_rows.axis])
        numbers = _checked(rows, shape[of_rows.axis])
        known = model.named_vars_to_dims.get(of_rows.name) or [None] * len(of_rows.shape)
        dims = tuple(dim or f"{of_rows.name}_dim_{k}" for k, dim in enumerate(known))
        coords: dict[str, Any] = {name: draws.posterior[name] for name in ("chain", "draw")}
        for k, (dim, length) in enumerate(zip(dims, shape, strict=True)):
            known_labels = model.coords.get(dim)
            is_known = known_labels is not None and len(known_labels) == length  # of no example
            labels = np.asarray(known_labels) if is_known else pd.RangeIndex(length)
            is_chosen = k == of_rows.axis and not isinstance(numbers, range)
            coords[dim] = labels[numbers] if is_chosen else labels
        return cls(of_rows, of_rows.function(), draws, source, numbers, dims, coords)

    @property
    def name(self) -> str:
        """Name of the observed variable."""
        return self.of_rows.name

    @property
    def dtype(self) -> np.dtype:
        """Type of the quantity."""
        return np.dtype(self.of_rows.rows.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the quantity at one draw."""
        shape = list(self.of_rows.shape)
        shape[self.of_rows.axis] = len(self.numbers)
        return tuple(shape)

    def slices(self, n_samples: int, *, progressbar: bool = False) -> Iterator[slice]:
        """Blocks of rows whose results fit in memory."""
        width = n_samples * int(np.prod(self.shape)) // len(self.numbers)
        length = min(max(_NUMBERS // max(width, 1), 1), _MOST_ROWS)
        starts: Sequence[int] = range(0, len(self.numbers), length)
        for start in track(starts, self.name, disable=not progressbar or len(starts) == 1):
            yield slice(start, min(start + length, len(self.numbers)))

    def block(self, where: Any) -> list[NDArray]:
        """Data of some of the rows.

        Raises
        ------
        StorageError
            A source was changed or removed.
        """
        rows = self._rows(where)
        if self.source is not None:
            first, last = int(rows[0]), int(rows[-1]) + 1
            if np.array_equal(rows, np.arange(first, last)):
                return list(self.source.window(first, last))
            return list(self.source.take(rows))
        return [np.ascontiguousarray(leaf.array[rows]) for leaf in self.of_rows.leaves]

    def _rows(self, where: Any) -> NDArray[np.int64]:
        if not isinstance(self.numbers, range):
            return self.numbers[where]
        if isinstance(where, slice):
            return np.arange(*where.indices(len(self.numbers)))
        return np.asarray(where)

    def evaluated(
        self, where: Any, samples: Sequence[int], generators: Generators = no_generators
    ) -> NDArray:
        """The quantity for some of the rows, shape (n_samples, ..., n_rows, ...).

        Parameters
        ----------
        where : slice or int array
            Which of `numbers` to evaluate.
        samples : sequence of int
            Numbers of the draws.
        generators : Generators
        """
        block, shape = self.block(where), list(self.shape)
        shape[self.of_rows.axis] = len(self._rows(where))
        result = np.empty((len(samples), *shape), dtype=self.dtype)
        for place, sample in enumerate(samples):
            point = self.draws.point(sample)
            result[place] = self.function(*point, *block, *generators(sample))
        return result


def observed_names(model: pm.Model, var_names: Sequence[str] | None) -> list[str]:
    """Names of observed variables, all of them by default.

    Raises
    ------
    SettingError
        There are none.
    """
    names = [v.name for v in model.observed_RVs] if var_names is None else list(var_names)
    if not names:
        raise SettingError("the model has no observed variables: give them data with observed=...")
    return names


def refuse_too_many(observations: ArrayLike, n_rows: int) -> None:
    """Check the number of rows of a sample, or their numbers, against the rows that exist.

    Raises
    ------
    SettingError
        There are fewer rows.
    """
    asked = np.asarray(observations)
    if asked.ndim == 0 and asked.dtype.kind in "iu" and not 1 <= asked <= n_rows:
        raise SettingError(
            f"observations={observations!r} is not a number of rows from 1 to {n_rows:,}: give "
            "fewer, or name with data= where all rows are."
        )
    if asked.ndim and asked.dtype.kind in "iu":
        _checked(asked, n_rows)


def _warn_of_an_example(idata: Any, n_rows: int) -> None:
    """Warn that the run read other rows than those that the model holds."""
    facts = getattr(getattr(idata, "sample_stats", None), "attrs", {})
    if facts.get("data"):
        warn_user(
            f"The run read {facts['n_rows']:,} rows of data= ({facts['data']}), and the model "
            f"holds {n_rows:,}, which are used here: pass data= as well, unless they are meant."
        )


def _checked(rows: ArrayLike | None, n_rows: int) -> NDArray[np.int64] | range:
    if rows is None:
        return range(n_rows)
    found = np.atleast_1d(np.asarray(rows))
    if found.ndim != 1 or found.dtype.kind not in "iu" or not found.size:
        raise SettingError(
            "rows must be the numbers of some rows, a sequence of integers: leave it out for all "
            "of them."
        )
    if found.min() < 0 or found.max() >= n_rows:
        raise SettingError(
            f"rows must be from 0 to {n_rows - 1:,}, not from {found.min():,} to {found.max():,}: "
            "leave out the others, or name with data= where all rows are."
        )
    return found.astype(np.int64)
