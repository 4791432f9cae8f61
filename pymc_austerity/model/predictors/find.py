"""Detection of the linear predictors that rows are functions of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import SharedVariable, Variable, ancestors, clone_replace, toposort
from pymc_austerity.model.predictors import rules  # noqa: F401 (importing registers them)
from pymc_austerity.model.predictors.affine import Affine, TooLargeError, parameter
from pymc_austerity.model.predictors.columns import (
    Column,
    ColumnArray,
    Identity,
    Multiple,
    as_multiple,
    mapped,
    multiplied,
    singles,
    total_of,
)
from pymc_austerity.model.predictors.linear import (
    BeyondError,
    GraphFacts,
    MixedRowsError,
    Walk,
    rule,
)
from pymc_austerity.model.predictors.rewrites import CannotLiftError, lifted, pushed
from pymc_austerity.model.predictors.structure import PointMap, Predictor, RowStructure, Term, named
from pymc_austerity.model.rewritten import deduplicated
from pymc_austerity.model.row_likelihood import ModelAt, RowLikelihood

MOST_PREDICTORS = 64
"""Linear predictors beyond which formulas of a row are too long."""

_MOST_PUSHES = 20


def find_predictors(at: ModelAt) -> RowStructure | str:
    r"""Find the linear predictors that the log-likelihoods of rows are functions of.

    .. math:: \log p(x_i | \theta) = f_i(\eta_i), \quad \eta_i = A_i \theta + o_i

    Parameters
    ----------
    at : ModelAt
        The split log-density, its variables, and a point at which shapes are read.

    Returns
    -------
    RowStructure or str
        The structure; or the reason why there is none, as half a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import ModelAt, find_predictors, split_log_density
    >>> X, group = np.ones((100, 2)), np.arange(100) % 5
    >>> with pm.Model() as model:
    ...     a, b = pm.Normal("a", shape=5), pm.Normal("b", shape=2)
    ...     _ = pm.Poisson("y", pm.math.exp(a[group] + X @ b), observed=group)
    >>> at = ModelAt(split_log_density(model), model.value_vars, {}, model.initial_point())
    >>> structure = find_predictors(at)
    >>> [predictor.name for predictor in structure.predictors]
    ['a[data] + data @ b']
    """
    if at.shared:
        return "other step methods move other variables"
    variables, point = list(at.variables), at.point
    layout = PointMap.of(variables, point)
    values = {v: np.asarray(point[v.name], dtype=v.dtype) for v in variables}
    parameters = {
        v: parameter(start, np.shape(point[v.name]), layout.size)
        for v, start in zip(variables, layout.starts, strict=True)
    }
    try:
        rows, found = _walked(at.likelihood, values, parameters, layout.size)
        return _structure(rows, found, at.likelihood, layout)
    except (CannotLiftError, _NoStructureError) as error:
        return str(error)
    except MixedRowsError:
        return "an operation of its log-likelihood has more than one axis of rows"


class _NoStructureError(Exception):
    """There are no predictors, or too many; the message says why, as half a sentence."""


def _walked(
    split: RowLikelihood,
    values: Mapping[Variable, NDArray],
    parameters: Mapping[Variable, Affine],
    size: int,
) -> tuple[Variable, Walk]:
    """The graph with all indices pushed down, and what is linear in it."""
    rows = deduplicated(clone_replace(split.rows, _constants(split.rows), rebuild_strict=False))
    facts = GraphFacts(values, split.leaves)
    for _ in range(_MOST_PUSHES):
        facts.learn(rows)
        found = _linear_variables(rows, parameters, facts, size)
        before, rows = rows, pushed(rows, found)
        if rows is before:
            break
    return rows, found


def _linear_variables(
    output: Variable, parameters: Mapping[Variable, Affine], facts: GraphFacts, size: int
) -> Walk:
    """Find everything linear in a graph.

    Parameters
    ----------
    output : variable
        Log-likelihoods of rows.
    parameters : mapping of variable to Affine
        The value variables as arrays of entries of the raveled vector.
    facts : GraphFacts
        Properties of the graph.
    size : int
        Length of the raveled vector.
    """
    result = Walk(facts, size)
    result.linear.update(parameters)
    for node in toposort([output], blockers=list(parameters)):
        inputs = [i for i in node.inputs if facts.depends(i)]
        if not inputs or any(result.is_beyond(i) for i in inputs) or len(node.outputs) > 1:
            continue
        if not getattr(node.outputs[0].type, "dtype", "").startswith("float"):
            continue
        try:
            found = rule(node.op, node, result)
        except (BeyondError, TooLargeError):
            continue
        result.linear[node.outputs[0]] = found
    return result


def _structure(rows: Variable, found: Walk, split: RowLikelihood, layout: PointMap) -> RowStructure:
    frontier = _frontier(rows, found)
    identity = Identity()
    arrays = {variable: _multiples(variable, found, identity) for variable in frontier}
    families: dict[Any, list[Multiple]] = {}
    for array in arrays.values():
        for multiple in array.flat:
            if multiple.terms:
                families.setdefault(multiple.key, []).append(multiple)
    if not families:
        raise _NoStructureError("its rows do not depend on the parameters")
    offsets = {key: _common_offset(family, identity) for key, family in families.items()}
    own = [key for key in families if not _is_combination(families[key][0], offsets, families)]
    if len(own) > MOST_PREDICTORS:
        raise _too_many(len(own))
    dtype = np.dtype(rows.dtype)
    etas = {key: pt.vector(f"eta_{k}", dtype=dtype) for k, key in enumerate(own)}
    predictors = [named(Predictor(families[key][0].terms, offsets[key], ""), layout) for key in own]
    made = etas | {key: _combined(families[key][0], etas) for key in families if key not in etas}
    by_row, batched = {}, {}
    length = etas[own[0]].shape[0]
    for variable, array in arrays.items():
        if not array.size:
            raise _NoStructureError("its rows read an empty array")
        vectors = mapped(lambda m: _vector(m, made, offsets), array)
        axis = found.facts.axis(variable)
        if axis is None:
            batched[variable] = _stacked(vectors[None], 0, length, variable.dtype)
        else:
            by_row[variable] = _stacked(vectors, axis, length, variable.dtype)
    function = lifted(rows, by_row, batched, found.facts)
    return RowStructure(
        tuple(predictors), tuple(etas.values()), function, split.leaves, layout.size, dtype
    )


def _constants(rows: Variable) -> dict[Variable, Variable]:
    """The values of data that all rows share, such as the school of each class."""
    return {
        variable: pt.constant(variable.get_value(borrow=True), name=variable.name)
        for variable in ancestors([rows])
        if isinstance(variable, SharedVariable)
    }


def _is_combination(
    multiple: Multiple, offsets: Mapping[Any, Variable | None], families: Mapping[Any, Any]
) -> bool:
    """Whether all that a predictor combines are parameters that are predictors themselves."""
    terms = multiple.terms
    if len(terms) < 2 or offsets[multiple.key] is not None:
        return False
    keys = [_key_of_entry(t) if t.is_plain else None for t in terms]
    return all(key in families and offsets[key] is None for key in keys)


def _key_of_entry(term: Term) -> Any:
    return as_multiple(Column((Term(term.entries),)), Identity()).key


def _combined(multiple: Multiple, etas: Mapping[Any, Variable]) -> Variable:
    return total_of([multiplied(etas[_key_of_entry(t)], t.scale) for t in multiple.terms])


def _too_many(n: int) -> _NoStructureError:
    return _NoStructureError(
        f"it is a function of {n} linear predictors, more than {MOST_PREDICTORS}"
    )


def _frontier(rows: Variable, found: Walk) -> list[Variable]:
    """Linear variables that are read by something that is not linear."""
    if rows in found.linear:
        return [rows]
    frontier: dict[Variable, None] = {}
    for node in toposort([rows], blockers=list(found.linear)):
        if any(found.is_beyond(o) for o in node.outputs) or _is_cut_off(node, found):
            frontier.update(dict.fromkeys(i for i in node.inputs if i in found.linear))
    return list(frontier)


def _is_cut_off(node: Any, found: Walk) -> bool:
    return any(found.facts.depends(i) for i in node.inputs) and not any(
        o in found.linear for o in node.outputs
    )


def _multiples(variable: Variable, found: Walk, identity: Identity) -> NDArray[Any]:
    """What each entry of a linear variable is a multiple of."""
    linear = found.linear[variable]
    if isinstance(linear, Affine):
        n = np.unique(linear.matrix.indices).size
        if n > MOST_PREDICTORS:
            raise _too_many(n)
        linear = singles(linear, 0)
    assert isinstance(linear, ColumnArray)
    return mapped(lambda column: as_multiple(column, identity), linear.array)


def _common_offset(family: Sequence[Multiple], identity: Identity) -> Variable | None:
    """Offset of the predictor: that of all its multiples, if they have the same."""
    if len({(identity.of(m.offset), m.scale) for m in family}) > 1:
        return None
    offset, scale = family[0].offset, family[0].scale
    return None if offset is None else multiplied(offset, 1.0 / scale)


def _vector(
    multiple: Multiple,
    etas: Mapping[Any, Variable],
    offsets: Mapping[Any, Variable | None],
) -> Any:
    """A linear function in terms of its predictor: a vector, or a number without one."""
    parts: list[Any] = []
    offset = multiple.offset
    if multiple.terms:
        eta = etas[multiple.key]
        parts.append(multiplied(eta, multiple.scale))
        if offsets[multiple.key] is not None:
            offset = None  # it is in eta
    if offset is not None:
        parts.append(offset)
    if multiple.constant or not parts:
        parts.append(multiple.constant)
    return total_of(parts)


def _stacked(vectors: NDArray[Any], axis: int, length: Any, dtype: str) -> Variable:
    """Vectors over the rows as an array with the rows on an axis."""
    whole = mapped(lambda v: _whole(v, length, dtype), vectors)
    others = tuple(n for k, n in enumerate(vectors.shape) if k != axis)
    flat = list(whole.ravel())
    if not others:
        return flat[0]
    table = flat[0][:, None] if len(flat) == 1 else pt.stack(flat, axis=1)
    if len(others) > 1:
        table = table.reshape((length, *others))
    return pt.moveaxis(table, 0, axis) if axis else table


def _whole(vector: Any, length: Any, dtype: str) -> Variable:
    if not isinstance(vector, Variable):
        return pt.alloc(np.asarray(vector, dtype=dtype), length)
    return vector if vector.dtype == dtype else vector.astype(dtype)
