"""A log-density split into a row-free part and rows, and what determines the support of rows."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Alloc,
    Constant,
    DimShuffle,
    SharedVariable,
    Variable,
    ancestors,
    computed_from,
    join_nonshared_inputs,
    scalar_name,
    toposort,
)
from pymc_austerity.model.cut import NO_EXAMPLES, Examples, RowLeaf, array_of

_SMALL = 4_194_304
"""Bytes up to which every entry counts; hashing them takes some milliseconds."""

_N_ENTRIES = 65_536
"""Entries of larger arrays that count, at positions that depend on the size alone."""

_SEED = 20_140_621


def fingerprint(arrays: Iterable[NDArray]) -> str:
    r"""Fingerprint of some arrays: equal for equal ones, different for most others.

    Parameters
    ----------
    arrays : iterable of arrays, of any shapes
        Data.

    Returns
    -------
    str
        32 hexadecimal digits.

    Notes
    -----
    Shapes and types count, and all entries of arrays of at most 4 MiB. Of larger ones 65,536
    entries at fixed pseudo-random positions count, so that a change of k out of n entries is missed
    with probability :math:`(1 - k/n)^{65536}`: 0.1 % where one in 10,000 is changed, and nearly
    always where it is a single one.

    Examples
    --------
    >>> import numpy as np
    >>> data = np.arange(10.0)
    >>> before = fingerprint([data])
    >>> fingerprint([data.copy()]) == before
    True
    >>> data[3] = 0.5
    >>> fingerprint([data]) == before
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(_that_count(array)).tobytes())
    return digest.hexdigest()


def _that_count(array: NDArray) -> NDArray:
    if array.nbytes <= _SMALL:
        return array
    positions = np.random.default_rng(_SEED).integers(array.size, size=_N_ENTRIES)
    return array[np.unravel_index(positions, array.shape)]


@dataclass(frozen=True)
class DataSource:
    """Data that rows were read from.

    Attributes
    ----------
    name : str
        Name of the ``pm.Data``, or a description of the array.
    variable : SharedVariable or Constant
        What holds it.
    fingerprint : str
        Of the array when it was read.
    """

    name: str
    variable: Any
    fingerprint: str

    def is_stale(self) -> bool:
        """Tell whether the array has been replaced by another or changed in place."""
        return fingerprint(_arrays(array_of(self.variable))) != self.fingerprint


@dataclass(frozen=True, eq=False)
class LeafRecipes:
    """From some rows of the named data to the same rows of all leaves.

    Attributes
    ----------
    names : tuple of str
        Of the data, as the user named them.
    leaves : tuple of int or None
        For each leaf the position of its data in `names`, or None for one that is computed.
    function : callable or None
        ``f(*arrays)``: the computed leaves.
    """

    names: tuple[str, ...]
    leaves: tuple[int | None, ...]
    function: Callable[..., list[NDArray]] | None

    def __call__(self, data: Mapping[str, NDArray]) -> tuple[NDArray, ...]:
        """Leaves of some rows, rows on axis 0, C-contiguous and writable.

        Parameters
        ----------
        data : dict of str to array
            The rows, in the dtypes of the model's example.
        """
        arrays = [data[name] for name in self.names]
        made: list[NDArray] = []
        if self.function is not None:
            made = self.function(*arrays)
        computed = iter(made)
        return tuple(
            np.require(next(computed), requirements=("C", "W", "O")) if k is None else arrays[k]
            for k in self.leaves
        )


@dataclass(frozen=True)
class EvaluatedInFull:
    """A term of the row-free part.

    Attributes
    ----------
    name : str
        Name of the variable or potential.
    kind : {"prior", "potential", "observed"}
        What it is in the model.
    shape : tuple of int
        Shape of its log-density.
    """

    name: str
    kind: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class RowLikelihood:
    r"""A log-density, split into a row-free part and a sum over rows.

    .. math:: \log p(\theta, y) = \text{exact}(\theta) + \sum_{i=1}^{N} \log p(y_i | \theta)

    All log-densities are in nats. Graphs are in terms of `value_vars` and, for `rows`, of the
    placeholders of `leaves`.

    Attributes
    ----------
    model : pymc.Model
        The model as the user gave it.
    value_vars : tuple of variables
        Its value variables.
    row_free : scalar variable
        Priors with Jacobians, potentials, and observed variables that are not subsampled.
    row_free_terms : tuple of variables
        What `exact` is the sum of, entry by entry.
    rows : variable, shape (m,)
        Log-likelihoods of the m rows whose data are given for the placeholders.
    full : variable, shape (n_rows,)
        Log-likelihoods of all rows, as the model writes them.
    leaves : tuple of RowLeaf
        Data of the rows.
    n_rows : int
        Number of rows, N.
    subsampled : tuple of str
        Names of the observed variables and potentials that were cut to rows.
    evaluated_in_full : tuple of EvaluatedInFull
        Terms of the row-free part.
    local_variables : frozenset of variables
        Value variables with one entry per row.
    data_sources : tuple of DataSource
        Data that the leaves were read from.
    examples : Examples
        Data that hold a few rows of many. The leaves and `full` are then those of the example, and
        `n_rows` is the number of all rows.
    recipes : LeafRecipes or None
        Leaves of any rows of such data.
    joint_terms : tuple of (int, variable)
        Positions in `row_free_terms` of what reads the mean of all levels of `FreeLevels`, in a sum
        with their absorber; and these terms as functions of the sum alone, for which the value
        variable of the absorber stands.
    """

    model: pm.Model
    value_vars: tuple[Variable, ...]
    row_free: Variable
    row_free_terms: tuple[Variable, ...]
    rows: Variable
    full: Variable
    leaves: tuple[RowLeaf, ...]
    n_rows: int
    subsampled: tuple[str, ...]
    evaluated_in_full: tuple[EvaluatedInFull, ...]
    local_variables: frozenset[Variable]
    data_sources: tuple[DataSource, ...] = field(repr=False)
    examples: Examples = NO_EXAMPLES
    recipes: LeafRecipes | None = None
    joint_terms: tuple[tuple[int, Variable], ...] = ()

    @property
    def n_in_model(self) -> int:
        """Number of rows that the model itself holds: all of them, or those of its example."""
        return len(self.leaves[0].array)

    @property
    def arrays(self) -> list[np.ndarray]:
        """Data of the rows, in the user's order: one array per leaf, rows on axis 0."""
        return [leaf.array for leaf in self.leaves]

    @property
    def placeholders(self) -> list[Variable]:
        """What stands for these arrays in graphs."""
        return [leaf.placeholder for leaf in self.leaves]

    @property
    def codes(self) -> list[int]:
        """Positions of the leaves by which rows pick the levels that they read."""
        nodes = toposort([self.rows])
        picking = [node for node in nodes if isinstance(node.op, ADVANCED_SUBTENSOR_OPS)]
        indices = [index for node in picking for index in node.inputs[1:]]
        return [k for k, leaf in enumerate(self.leaves) if leaf.placeholder in indices]

    @property
    def fingerprint(self) -> str:
        """Identifies these rows among others of the same number."""
        return fingerprint(self.arrays)

    @property
    def without_joint_terms(self) -> "RowLikelihood":
        """The same without the terms that read all levels together."""
        joint = dict(self.joint_terms)
        kept = tuple(term for k, term in enumerate(self.row_free_terms) if k not in joint)
        if len(kept) == len(self.row_free_terms):
            return self
        row_free = sum(t.sum() for t in kept)
        return replace(self, row_free=row_free, row_free_terms=kept, joint_terms=())

    def stale(self) -> list[str]:
        """Names of the data that were changed since the leaves were read.

        Returns
        -------
        list of str
            Empty as long as the leaves are the data of the model.
        """
        return [source.name for source in self.data_sources if source.is_stale()]


class ModelAt(NamedTuple):
    """A split log-density as a function of some variables, raveled and joined, and a point.

    Attributes
    ----------
    likelihood : RowLikelihood
        The split log-density.
    variables : sequence of variables
        Value variables that it is a function of, in the order of the raveled vector.
    shared : dict of variable to shared variable
        What stands for the other value variables, as made by
        ``pymc.pytensorf.make_shared_replacements``.
    point : dict of str to array
        Values of the value variables, for their shapes.
    """

    likelihood: RowLikelihood
    variables: Sequence[Variable]
    shared: Mapping[Variable, Variable]
    point: Mapping[str, NDArray]

    @property
    def raveled(self) -> NDArray:
        """The point as a vector, shape (d,)."""
        return np.concatenate([np.ravel(self.point[str(v.name)]) for v in self.variables])

    def joined(self, *graphs: Variable) -> tuple[list[Variable], Variable]:
        """Graphs as functions of the raveled vector, and this vector."""
        given = dict(self.point), list(graphs), list(self.variables), dict(self.shared)
        return join_nonshared_inputs(*given)


def random_variable_of(value: Variable, model: pm.Model) -> Variable:
    """The random variable of a value variable, or of levels that have its name."""
    return model.values_to_rvs.get(value, model.named_vars.get(value.name))


def data_sources_of(graphs: Iterable[Variable], model: pm.Model) -> tuple[DataSource, ...]:
    """Return the data that graphs read, as variables of the user's model.

    Parameters
    ----------
    graphs : iterable of variables
        Graphs of the model or of a copy of it.
    model : pymc.Model
        The user's model: data of a copy are traced back to it by name.
    """
    sources = {}
    for variable in ancestors(list(graphs)):
        own = variable
        if isinstance(variable, SharedVariable):
            counterpart = model.named_vars.get(variable.name, variable)
            own = counterpart if isinstance(counterpart, SharedVariable) else variable
        arrays = _arrays(array_of(own))
        if arrays and (arrays[0].size > 1 or isinstance(own, SharedVariable)):
            name = own.name or "an array without a name"
            sources[own] = DataSource(name, own, fingerprint(arrays))
    return tuple(sources.values())


def _arrays(data: Any) -> list[NDArray]:
    """The array that data are, or those of which a sparse matrix consists."""
    if sparse.issparse(data):
        return [data.data, data.indices, data.indptr]
    return [data] if isinstance(data, np.ndarray) else []


def variables_that_move_the_support(likelihood: RowLikelihood) -> list[Variable]:
    r"""Value variables on which the support of the rows depends.

    Such a likelihood has a branch of minus infinity, taken where data are larger or smaller than
    some function of the parameters. A single row then decides, and samples of the others tell
    nothing about it.

    Parameters
    ----------
    likelihood : RowLikelihood
        The split log-density.

    Returns
    -------
    list of variables
        In the order of the model; empty if the support is fixed, or known only when the graph is
        evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import split_log_density, variables_that_move_the_support
    >>> with pm.Model() as model:
    ...     low, width = pm.Normal("low", -1.0), pm.HalfNormal("width")
    ...     _ = pm.Uniform("y", low, 9.0, observed=np.arange(8.0))
    ...     _ = pm.Normal("z", 0.0, width, observed=np.arange(8.0))
    >>> variables_that_move_the_support(split_log_density(model))
    [low]
    """
    rows = [likelihood.rows]
    on_rows = computed_from(rows, likelihood.placeholders)
    on_parameters = computed_from(rows, likelihood.value_vars)
    inside: set[Variable] = set()
    for node in toposort(rows):
        if scalar_name(node) == "Switch" and any(map(_is_minus_infinity, node.inputs[1:])):
            for comparison in _comparisons(node.inputs[0]):
                data = on_rows.difference(on_parameters).intersection(comparison.inputs)
                moves = data and not on_parameters.isdisjoint(comparison.inputs)
                if moves and scalar_name(comparison) in ("LT", "LE", "GT", "GE"):
                    inside.update(ancestors(comparison.inputs))
    return [variable for variable in likelihood.value_vars if variable in inside]


def _comparisons(condition: Variable) -> Iterator[Any]:
    """Nodes that a condition combines, without what is inside of the numbers that they compare."""
    if condition.owner is not None:
        yield condition.owner
        for part in condition.owner.inputs:
            if getattr(part.type, "dtype", "") == "bool":
                yield from _comparisons(part)


def _is_minus_infinity(variable: Variable) -> bool:
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle | Alloc):
        variable = variable.owner.inputs[0]
    return isinstance(variable, Constant) and bool(np.all(variable.data == -np.inf))
