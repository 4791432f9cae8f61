"""Compiled differences that select their own rows, from arrays of all rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Constant,
    SharedVariable,
    Variable,
    ancestors,
    clone_replace,
    join_nonshared_inputs,
)
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = ["GatheredDifferences", "compile_gathered_differences"]

_LARGE = 1_000
"""Entries above which a constant is passed at every call instead of being compiled in."""


@dataclass(frozen=True)
class GatheredDifferences:
    """Functions of two points, both raveled vectors of shape (d,).

    Attributes
    ----------
    rows : callable
        ``rows(proposed, current, positions, *leaves, *tables, *shared)``: differences of the
        log-likelihoods of the rows at some positions, float64 array, shape (m,), nats.
    exact : callable
        ``exact(proposed, current, *shared)``: difference of the exact part, float64, 0-d, nats.
    leaves : list of arrays, each of shape (n_rows, ...)
        Data of the rows, in the user's order; integers use as few bytes as possible.
    tables : list of arrays
        Large constants of the row part other than data of the rows.
    shared : list of shared variables
        Other inputs of the functions: values of variables of other step methods, and data of the
        exact part. `values` reads them.
    """

    rows: Callable[..., NDArray[np.float64]]
    exact: Callable[..., NDArray[np.float64]]
    leaves: list[NDArray]
    tables: list[NDArray]
    shared: list[Any]

    def values(self) -> tuple[NDArray, ...]:
        """Current values of the shared variables."""
        return tuple([np.asarray(v.get_value(borrow=True), order="C") for v in self.shared])


def compile_gathered_differences(
    row_likelihood: RowLikelihood,
    vars: Sequence[Variable],
    shared: Mapping[Variable, Variable],
    point: Mapping[str, NDArray],
    *,
    positions_dtype: Any = np.int64,
    compile_kwargs: dict[str, Any] | None = None,
) -> GatheredDifferences:
    """Compile differences between two points that take their rows by position.

    Everything that the compiled functions read is an argument, so that they can be called from
    other compiled code.

    Parameters
    ----------
    row_likelihood, vars, shared, point, compile_kwargs
        As in `compile_row_differences`.
    positions_dtype : dtype
        Type of the positions.

    Returns
    -------
    GatheredDifferences
        They do not check their inputs, which must be arrays of the right dtype.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.gibbs import compile_gathered_differences
    >>> from pymc_austerity.model import split_log_density
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     _ = pm.Normal("y", mu, 1.0, observed=np.arange(10.0))
    >>> split = split_log_density(model)
    >>> differences = compile_gathered_differences(
    ...     split, model.value_vars, {}, model.initial_point(),
    ...     compile_kwargs={"mode": "FAST_COMPILE"},
    ... )
    >>> positions = np.array([0, 2])
    >>> leaves = differences.leaves
    >>> differences.rows(np.array([1.0]), np.array([0.0]), positions, *leaves)
    array([-0.5,  1.5])
    """
    positions = pt.tensor("positions", dtype=positions_dtype, shape=(None,))
    leaves = [_narrow(array) for array in row_likelihood.arrays]
    wholes = [pt.tensor(dtype=array.dtype, shape=(None, *array.shape[1:])) for array in leaves]
    picked = {
        leaf.placeholder: whole[positions].astype(leaf.placeholder.dtype)
        for leaf, whole in zip(row_likelihood.leaves, wholes, strict=True)
    }
    (rows,) = clone_replace([row_likelihood.rows], picked, rebuild_strict=False)
    graphs, current = join_nonshared_inputs(
        dict(point), [rows, row_likelihood.exact], list(vars), dict(shared)
    )
    proposed = current.type("proposed")
    moved = clone_replace(graphs, {current: proposed}, rebuild_strict=False)
    differences = [(m - g).astype("float64") for m, g in zip(moved, graphs, strict=True)]
    constants = _large_constants(differences[0])
    others = [v for v in ancestors(differences) if isinstance(v, SharedVariable)]
    tables, values = [_argument(v) for v in constants], [_argument(v) for v in others]
    arguments = dict(zip([*constants, *others], [*tables, *values], strict=True))
    rows, exact = clone_replace(differences, arguments, rebuild_strict=False)
    model = row_likelihood.model
    inputs = [proposed, current, positions, *wholes, *tables, *values]
    rows_function = compiled(model, inputs, rows, compile_kwargs)
    exact_function = compiled(model, [proposed, current, *values], exact, compile_kwargs)
    arrays = [np.array(constant.data, order="C") for constant in constants]
    return GatheredDifferences(rows_function, exact_function, leaves, arrays, others)


def _narrow(array: NDArray) -> NDArray:
    """Integers in few bytes: rows are read at random, and more of them fit the cache."""
    if array.dtype.kind not in "iu":
        return array
    smallest, largest = int(array.min()), int(array.max())
    return array.astype(np.promote_types(np.min_scalar_type(smallest), np.min_scalar_type(largest)))


def _large_constants(graph: Variable) -> list[Variable]:
    return [
        v
        for v in ancestors([graph])
        if isinstance(v, Constant) and isinstance(v.data, np.ndarray) and v.data.size >= _LARGE
    ]


def _argument(variable: Variable) -> Variable:
    """An input of the same type, without a value, in place of a constant or shared variable."""
    return pt.tensor(dtype=variable.type.dtype, shape=variable.type.shape)
