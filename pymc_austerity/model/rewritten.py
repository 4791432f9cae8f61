"""Rewrites of a model's graph: on full data, inlined, widened, small matrices spelled out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Blockwise,
    Cholesky,
    Constant,
    Elemwise,
    LogSoftmax,
    MinibatchOp,
    OpFromGraph,
    ScalarFromTensor,
    SharedVariable,
    Softmax,
    SolveTriangular,
    Variable,
    ancestors,
    clone_replace,
    constant_entry,
    indices_of,
    inner_outputs,
    is_dot,
    is_none,
    lower_xtensor,
    rebuilt,
    remove_minibatched_nodes,
    rewrite_graph,
    scalar_name,
    toposort,
)
from pymc_austerity.errors import DataError, NotRowwiseError, warn_user
from pymc_austerity.model.cut import Known
from pymc_austerity.model.cut.known import behind, has_axes_moved

_DEEPEST = 50
_NARROW = {"int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"}
"""Types in which whole numbers overflow, or cannot be negative."""
_SAME = 1e-4
"""Relative difference of two sums that only rounding may make."""
_LARGEST = 6
"""Rows of a matrix beyond which there would be too many operations."""


def inlined(outputs: Sequence[Variable]) -> list[Variable]:
    """Replace labeled and composite operations by the operations they are made of.

    Softmax and log-softmax stay: they have rules of their own. New axes in an index are taken
    apart from it, as later versions of PyTensor do.
    """
    current = lower_xtensor(outputs)
    for _ in range(_DEEPEST):
        contents: dict[Variable, Variable] = {}
        for node in toposort(current):
            if isinstance(node.op, OpFromGraph) and not isinstance(node.op, Softmax | LogSoftmax):
                arguments = dict(zip(node.op.inner_inputs, node.inputs, strict=True))
                outer = zip(node.outputs, inner_outputs(node.op, arguments), strict=True)
                contents.update(outer)
        if not contents:
            return rebuilt(current, _axes_apart)
        current = clone_replace(current, _outermost(contents, current), rebuild_strict=False)
    raise NotRowwiseError(
        "the log-likelihood has operations within operations more than 50 deep, which cannot be "
        "followed to the rows: use NUTS for this model."
    )


def _axes_apart(node: Any, inputs: list[Variable]) -> list[Variable] | None:
    """Give what is indexed the new axes of its index: ``x[i, None]`` is ``x[:, None][i, :]``."""
    if not isinstance(node.op, ADVANCED_SUBTENSOR_OPS):
        return None
    indices = indices_of(node.clone_with_new_inputs(inputs, strict=False))
    if not any(is_none(index) for index in indices):
        return None
    axes = iter(range(inputs[0].type.ndim))
    pattern: list[Any] = []
    taken = []
    for index in indices:
        is_new = is_none(index)
        n_axes = index.type.ndim if getattr(index, "dtype", "") == "bool" else 1
        pattern += ["x"] if is_new else [next(axes) for _ in range(n_axes)]
        taken.append(slice(None) if is_new else index)
    return [inputs[0].dimshuffle(*pattern, *axes)[tuple(taken)]]


def deduplicated(graph: Variable) -> Variable:
    """The graph in plain operations, in which equal nodes are one."""
    return rewrite_graph(*inlined([graph]), include=("merge",))


def _outermost(
    contents: dict[Variable, Variable], outputs: Sequence[Variable]
) -> dict[Variable, Variable]:
    """Replacements that do not depend on other replacements, so that none is undone by another."""
    used = set(ancestors(outputs))
    return {
        variable: content
        for variable, content in contents.items()
        if variable in used
        and not any(a in contents and a in used for a in ancestors(variable.owner.inputs))
    }


def widened(graphs: Sequence[Variable]) -> list[Variable]:
    """Compute whole numbers in 64 bits, and real ones in the precision of the model.

    PyTensor holds 10 in eight bits and 1.5 in single precision. ``3 * 10**2`` is then 44, the
    negative of an unsigned number is positive, and ``1 / 12.0`` has seven digits. It finds by
    chance alone that ``log(1 - (1 - z))`` is ``log(z)``, which is not -inf where z is tiny.

    Parameters
    ----------
    graphs : sequence of variables
        Without composite operations.

    Examples
    --------
    >>> nu, sigma = pt.constant(3), pt.constant(10)
    >>> (graph,) = widened([nu * sigma**2])
    >>> int((nu * sigma**2).eval()), int(graph.eval())
    (44, 300)
    """
    return rebuilt(graphs, _wide)


def refuse_overflow(
    terms: Mapping[str, Variable], value_vars: Sequence[Variable], start: Sequence[NDArray]
) -> None:
    """Refuse terms that are not finite in the model because of the bits of whole numbers.

    Parameters
    ----------
    terms : dict of str to variable
        Log-densities as the model has them, by the names of their variables.
    value_vars, start : sequences of variables and of arrays
        The point at which they are evaluated.

    Raises
    ------
    DataError
        PyMC's log-density is not finite, and that of the formula may be.

    Warns
    -----
    AusterityWarning
        PyMC's log-density is finite, and is not that of the formula.
    """
    for name, term in terms.items():
        overflow = next(filter(None, map(_overflow, ancestors([term]))), None)
        if overflow is None:
            continue
        if not np.isfinite(_sum_of(term, value_vars, "FAST_COMPILE")(*start)):
            raise DataError(
                f"the log-density of {name!r} is not finite in PyMC because {overflow}: write "
                "them with a decimal point, as in 100.0, and data with astype(float)."
            )
        if _differs_in_pymc(term, value_vars, start):
            warn_user(
                f"PyMC computes other numbers than the formula of {name!r} says because "
                f"{overflow}: exact and sequential decisions follow the formula, NUTS follows "
                "PyMC; give data with astype(float)."
            )


def _sum_of(term: Variable, value_vars: Sequence[Variable], mode: str | None) -> Callable:
    return pytensor.function(value_vars, term.sum(), mode=mode, on_unused_input="ignore")


def _differs_in_pymc(
    term: Variable, value_vars: Sequence[Variable], start: Sequence[NDArray]
) -> bool:
    """Whether what PyTensor compiles changes otherwise than the formula between two points."""
    other = [at + 0.25 if at.dtype.kind == "f" else at for at in start]
    found, exact = (
        function(*other) - function(*start)
        for function in (_sum_of(graph, value_vars, None) for graph in (term, *widened([term])))
    )
    return bool(np.isfinite(exact) and abs(found - exact) > _SAME * (1.0 + abs(exact)))


def _overflow(variable: Variable) -> str | None:
    """How whole numbers that no parameter changes overflow in a variable, as a clause."""
    if variable.owner is None or getattr(variable, "dtype", "") not in _NARROW:
        return None
    is_cast = not isinstance(variable.owner.op, Elemwise) or scalar_name(variable.owner) == "Cast"
    if is_cast or not all(
        v.owner or isinstance(v, Constant | SharedVariable) for v in ancestors([variable])
    ):
        return None
    found, exact = pytensor.function([], [variable, *widened([variable])], mode="FAST_COMPILE")()
    differ = np.flatnonzero(np.ravel(found) != np.ravel(exact))
    if not differ.size:
        return None
    first = differ[0]
    return (
        f"{np.ravel(exact)[first]} does not fit into the type of its whole numbers, {found.dtype}, "
        f"and becomes {np.ravel(found)[first]}"
    )


def _wide(node: Any, inputs: list[Variable]) -> list[Variable] | None:
    operands = inputs
    if (complement := _complement(node, inputs)) is not None:
        return [pt.log(complement).astype(node.outputs[0].dtype)]
    if isinstance(node.op, ScalarFromTensor):  # an index
        operands = _as_before(node, inputs)
    elif isinstance(node.op, Elemwise) and scalar_name(node) != "Cast":
        result = np.dtype(node.outputs[0].dtype)
        operands = [_converted(i, result) for i in inputs]
    if all(new is old for new, old in zip(operands, node.inputs, strict=True)):
        return None
    try:
        return list(node.clone_with_new_inputs(operands, strict=False).outputs)
    except TypeError:  # an operation of fixed types
        operands = _as_before(node, inputs)
        return list(node.clone_with_new_inputs(operands, strict=False).outputs)


def _complement(node: Any, inputs: list[Variable]) -> Variable | None:
    """The z of ``log(1 - (1 - z))`` and of ``log1p(-(1 - z))``."""
    inner = None
    if scalar_name(node) == "Log":
        inner = _taken_from_one(inputs[0])
    elif scalar_name(node) == "Log1p" and scalar_name(inputs[0].owner) == "Neg":
        (inner,) = inputs[0].owner.inputs
    return None if inner is None else _taken_from_one(inner)


def _taken_from_one(variable: Variable) -> Variable | None:
    if scalar_name(variable.owner) != "Sub":
        return None
    one, rest = variable.owner.inputs
    return rest if all(one.type.broadcastable) and constant_entry(one) == 1 else None


def _as_before(node: Any, inputs: list[Variable]) -> list[Variable]:
    types = (getattr(i, "dtype", "") for i in node.inputs)
    return [_cast(i, dtype) for i, dtype in zip(inputs, types, strict=True)]


def _converted(operand: Variable, result: np.dtype) -> Variable:
    """An operand of an operation whose result has this type in the model."""
    is_whole, is_single = np.dtype(operand.dtype).kind in "iu", result == np.float32
    precision = pytensor.config.floatX
    if result.kind in "iu" or (is_single and precision == "float64"):
        return _cast(operand, "int64" if is_whole else precision)
    is_narrow = operand.dtype in _NARROW and result.kind == "f"
    return _cast(operand, precision) if is_narrow or (is_single and is_whole) else operand


def _cast(variable: Variable, dtype: str) -> Variable:
    if dtype in ("", variable.dtype) or variable.dtype == "bool":
        return variable
    if all(variable.type.broadcastable) and (entry := constant_entry(variable)) is not None:
        return pt.constant(np.full((1,) * variable.type.ndim, entry, dtype=dtype))
    return pt.cast(variable, dtype)


def on_full_data(model: pm.Model) -> pm.Model:
    """Undo ``pm.Minibatch``: a copy of the model on its full data, or the model itself.

    Notes
    -----
    The log-likelihood of a minibatch is scaled by ``total_size``; that of the full data is not.
    """
    graphs = [*model.observed_RVs, *model.potentials, *model.rvs_to_values.values()]
    has_minibatch = any(isinstance(node.op, MinibatchOp) for node in toposort(graphs))
    return remove_minibatched_nodes(model) if has_minibatch else model


def counterpart(variable: Variable, model: pm.Model) -> Variable:
    """Value variable of the user's model that belongs to a value variable of its copy."""
    return next(v for v in model.value_vars if v is variable or v.name == variable.name)


def in_terms_of(model: pm.Model, whole: pm.Model, graphs: Sequence[Variable]) -> list[Variable]:
    """Graphs in terms of the value variables of the user's model instead of those of its copy."""
    if whole is model:
        return list(graphs)
    replacements = {v: counterpart(v, model) for v in whole.value_vars}
    return list(clone_replace(list(graphs), replacements, rebuild_strict=False))


def log_density_on_full_data(model: pm.Model) -> Variable:
    """Log-density of a model, scalar, in nats, on its full data."""
    whole = on_full_data(model)
    (log_density,) = in_terms_of(model, whole, widened(inlined([whole.logp()])))
    return log_density


def spelled_out(outputs: Sequence[Variable], known: Known) -> list[Variable]:
    """Write Cholesky factors, and solutions of triangular systems, of small matrices as formulas.

    What a multivariate normal prior says of thousands of levels is then a few operations on arrays,
    instead of a call of LAPACK for each level.

    Parameters
    ----------
    outputs : sequence of variables
    known : Known
        Tells shapes.

    Returns
    -------
    list of variables
    """

    def rule(node: Any, inputs: list[Variable]) -> list[Variable] | None:
        op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
        if not isinstance(op, Cholesky | SolveTriangular):
            return None
        size = known.shape(node.inputs[0])[-1]
        if size > _LARGEST:
            return None
        if isinstance(op, Cholesky):
            new = _known_root(inputs[0], known, lower=op.lower)
            if new is None:
                new = _cholesky(inputs[0], size, lower=op.lower)
        else:
            new = _solution(op, inputs[0], inputs[1], size)
        return [node.outputs[0].type.filter_variable(new, allow_convert=True)]

    return rebuilt(outputs, rule)


def inverse_of_lower(matrix: Variable, size: int) -> Variable:
    """Inverse of a lower triangular matrix of shape (size, size).

    Examples
    --------
    >>> import numpy as np
    >>> inverse_of_lower(pt.as_tensor(np.array([[2.0, 0.0], [1.0, 4.0]])), 2).eval()
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    """
    a, zero = _entries(matrix, size), pt.zeros_like(matrix[..., 0, 0])
    columns = []
    for j in range(size):
        column = [zero] * j + [1.0 / a[j][j]]
        for i in range(j + 1, size):
            column.append(-sum(a[i][k] * column[k] for k in range(j, i)) / a[i][i])
        columns.append(pt.stack(column))
    return pt.stack(columns, axis=1)


def _known_root(matrix: Variable, known: Known, *, lower: bool) -> Variable | None:
    """The factor of a matrix that was made as the product of a triangular one and its transpose."""
    product = behind(matrix, lambda v: has_axes_moved(v) and _adds_axes(v.owner.op.new_order))
    node = product.owner
    if node is None or not is_dot(node) or product.type.ndim != 2:
        return None
    factor, other = node.inputs
    is_turned = has_axes_moved(other) and other.owner.op.new_order == (1, 0)
    if (
        not is_turned
        or other.owner.inputs[0] is not factor
        or not known.is_lower_triangular(factor)
    ):
        return None
    root = factor * pt.sign(pt.diagonal(factor))  # that of Cholesky is positive on its diagonal
    root = root if lower else root.T
    for _ in range(matrix.type.ndim - 2):
        root = root[None]
    return root


def _adds_axes(order: Sequence[Any]) -> bool:
    """Whether axes of length one are put before those of a matrix."""
    return tuple(order[-2:]) == (0, 1) and set(order[:-2]) == {"x"}


def _entries(matrix: Variable, size: int) -> list[list[Variable]]:
    """The entries of matrices, each of the shape of the axes before the last two."""
    return [[matrix[..., i, j] for j in range(size)] for i in range(size)]


def _cholesky(matrix: Variable, size: int, *, lower: bool) -> Variable:
    a = _entries(matrix, size)
    zero = pt.zeros_like(a[0][0])
    root = [[zero] * size for _ in range(size)]
    for j in range(size):
        square = a[j][j] - sum((root[j][k] ** 2 for k in range(j)), start=zero)
        root[j][j] = pt.sqrt(square)
        for i in range(j + 1, size):
            rest = a[i][j] - sum((root[i][k] * root[j][k] for k in range(j)), start=zero)
            root[i][j] = rest / root[j][j]
    rows = root if lower else [list(column) for column in zip(*root, strict=True)]
    return pt.stack([pt.stack(row, axis=-1) for row in rows], axis=-2)


def _solution(op: Any, matrix: Variable, right: Variable, size: int) -> Variable:
    """The solution of a triangular system, with a vector or a matrix on the right."""
    is_vector = op.b_ndim == 1
    a = _entries(matrix, size)
    if op.unit_diagonal:
        for k in range(size):
            a[k][k] = pt.ones_like(a[k][k])
    if not is_vector:
        a = [[entry[..., None] for entry in row] for row in a]
    b = [right[..., k] if is_vector else right[..., k, :] for k in range(size)]
    if not op.lower:  # backwards is forwards in the order from the last row to the first
        a, b = [row[::-1] for row in a[::-1]], b[::-1]
    x = _forward(a, b)
    return pt.stack(x if op.lower else x[::-1], axis=-1 if is_vector else -2)


def _forward(a: list[list[Variable]], b: list[Variable]) -> list[Variable]:
    """Solve a lower triangular system by substitution."""
    x: list[Variable] = []
    for k, right in enumerate(b):
        for j in range(k):
            right = right - a[k][j] * x[j]
        x.append(right / a[k][k])
    return x
