"""What the model computes from the data of a row alone, once for every row it reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Alloc,
    TensorType,
    Variable,
    ancestors,
    clone_replace,
    computed_from,
    equal_computations,
    toposort,
)
from pymc_austerity.model.compiling import NUMPY_MODE, AnyThread
from pymc_austerity.model.cut import RowLeaf
from pymc_austerity.model.cut.known import is_cast, is_view
from pymc_austerity.model.rearranging import FEW, MANY, axes_of_rows


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
            with np.errstate(all="ignore"):
                made = self.function(*arrays)
        computed = iter(made)
        return tuple(
            np.require(next(computed), requirements=("C", "W", "O")) if k is None else arrays[k]
            for k in self.leaves
        )


def leaf_recipes(leaves: Sequence[RowLeaf], inputs: Mapping[str, Variable]) -> LeafRecipes:
    """Compile the recipes of leaves.

    Parameters
    ----------
    leaves : sequence of RowLeaf
        With recipes.
    inputs : dict of str to variable
        Placeholders of the named data.
    """
    given = list(inputs.values())
    computed = [leaf.recipe for leaf in leaves if leaf.recipe not in given]
    function = None
    if computed:
        function = pytensor.function(given, computed, mode=NUMPY_MODE, on_unused_input="ignore")
        function.trust_input = True
        function = AnyThread(function)
    places = [given.index(leaf.recipe) if leaf.recipe in given else None for leaf in leaves]
    return LeafRecipes(tuple(inputs), tuple(places), function)


def computed_leaves(
    rows: Variable, leaves: Sequence[RowLeaf], parameters: Sequence[Variable]
) -> tuple[Variable, tuple[RowLeaf, ...]]:
    """Make leaves of variables that a row graph computes from its data alone.

    Parameters
    ----------
    rows : variable, shape (m,)
        Log-likelihoods of rows; a graph of parameters and of the leaves' placeholders.
    leaves : sequence of RowLeaf
        The named data.
    parameters : sequence of variables
        Value variables.

    Returns
    -------
    rows : variable
        The same, of the placeholders of the leaves that are left.
    leaves : tuple of RowLeaf
        Data that the graph reads directly, and computed ones.
    """
    data = {leaf.placeholder: leaf.array for leaf in leaves}
    found = _largest_of_data(rows, list(data), parameters)
    made: list[RowLeaf] = []
    placeholders: dict[Variable, Variable] = {}
    for variable in found:
        known = next((m for m in made if _are_equal(m.recipe, variable)), None)
        if known is None:
            known = _computed(variable, data)
            if known is None:
                continue
            made.append(known)
        placeholders[variable] = _in_place(known.placeholder, variable, known)
    (rows,) = clone_replace([rows], placeholders, rebuild_strict=False)
    read = set(ancestors([rows]))
    return rows, tuple(leaf for leaf in (*leaves, *made) if leaf.placeholder in read)


def _largest_of_data(
    rows: Variable, data: Sequence[Variable], parameters: Sequence[Variable]
) -> list[Variable]:
    """Variables computed from data and combined with parameters, without views and casts."""
    by_row, beyond = (computed_from([rows], r, through_shapes=False) for r in (data, parameters))
    found: dict[Variable, None] = {}
    wanted = [rows] if rows not in beyond else []
    for node in toposort([rows]):
        if any(o in beyond for o in node.outputs):
            wanted += [i for i in node.inputs if i in by_row and i not in beyond]
    for variable in wanted:
        core = variable
        while is_view(core) or is_cast(core):
            core = core.owner.inputs[0]
        worth = core.owner is not None and not isinstance(core.owner.op, Alloc)
        if worth and core in by_row and isinstance(core.type, TensorType):
            found[core] = None
    return list(found)


def _computed(variable: Variable, data: Mapping[Variable, NDArray]) -> RowLeaf | None:
    """The leaf of a graph of data, with its rows first; None where it has no axis of rows."""
    given = list(data)
    function = pytensor.function(given, variable, mode=NUMPY_MODE, on_unused_input="ignore")
    with np.errstate(all="ignore"):
        few, many = (function(*[data[p][np.zeros(n, int)] for p in given]) for n in (FEW, MANY))
        axes = axes_of_rows(few, many)
        if len(axes) != 1:
            return None
        array = np.moveaxis(function(*data.values()), axes[0], 0)
    recipe = pt.moveaxis(variable, axes[0], 0) if axes[0] else variable
    placeholder = pt.tensor("computed", dtype=array.dtype, shape=(None, *array.shape[1:]))
    return RowLeaf(placeholder, array, is_computed=True, recipe=recipe)


def _in_place(placeholder: Variable, variable: Variable, leaf: RowLeaf) -> Variable:
    """A placeholder with the rows where the variable has them."""
    recipe = leaf.recipe
    assert recipe is not None
    if recipe.type.ndim < 2 or recipe is variable or _are_equal(recipe, variable):
        return placeholder
    order = recipe.owner.op.new_order
    return placeholder.dimshuffle([order.index(k) for k in range(len(order))])


def _are_equal(one: Variable | None, other: Variable) -> bool:
    return one is not None and (one is other or equal_computations([one], [other]))
