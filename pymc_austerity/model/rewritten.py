"""Rewrites of a model that come first: graphs inlined, whole numbers widened, batches undone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor import function

from pymc_austerity._pymc import (
    Cast,
    Constant,
    Elemwise,
    Log,
    Log1p,
    LogSoftmax,
    MinibatchOp,
    Neg,
    OpFromGraph,
    ScalarFromTensor,
    Softmax,
    Sub,
    Variable,
    ancestors,
    clone_replace,
    constant_entry,
    inner_outputs,
    lower_xtensor,
    rebuilt,
    remove_minibatched_nodes,
    toposort,
)
from pymc_austerity.errors import DataError, NotRowwiseError

__all__ = [
    "counterpart",
    "in_terms_of",
    "inlined",
    "log_density_on_full_data",
    "on_full_data",
    "refuse_overflow",
    "widened",
]

_DEEPEST = 50


def inlined(outputs: Sequence[Variable]) -> list[Variable]:
    """Replace labeled and composite operations by the operations they are made of.

    Softmax and log-softmax stay: they have rules of their own.
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
            return current
        current = clone_replace(current, _outermost(contents, current), rebuild_strict=False)
    raise NotRowwiseError(
        "the log-likelihood has operations within operations more than 50 deep, which cannot be "
        "followed to the rows: use NUTS for this model."
    )


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


_NARROW = {"int8", "int16", "int32", "uint8", "uint16", "uint32"}


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
    """
    for name, term in terms.items():
        narrow = [v for v in ancestors([term]) if _is_narrow(v)]
        values = function([], [*narrow, *widened(narrow)], mode="FAST_COMPILE")() if narrow else []
        pairs = zip(values[: len(narrow)], values[len(narrow) :], strict=True)
        wrong = [(found, exact) for found, exact in pairs if found != exact]
        if not wrong:
            continue
        evaluate = function(value_vars, term.sum(), mode="FAST_COMPILE", on_unused_input="ignore")
        if not np.isfinite(evaluate(*start)):
            found, exact = wrong[0]
            raise DataError(
                f"the log-density of {name!r} is not finite in PyMC because {exact} does not fit "
                f"into the type of its whole numbers, {found.dtype}, and becomes {found}: write "
                "them with a decimal point, as in 100.0."
            )


def _is_narrow(variable: Variable) -> bool:
    """Whether it is one whole number of few bits that is computed from constants."""
    if variable.owner is None or getattr(variable, "dtype", "") not in _NARROW:
        return False
    is_one = isinstance(variable.owner.op, Elemwise) and all(variable.type.broadcastable)
    return is_one and all(v.owner or isinstance(v, Constant) for v in ancestors([variable]))


def _wide(node: Any, inputs: list[Variable]) -> list[Variable] | None:
    operands = inputs
    if (complement := _complement(node, inputs)) is not None:
        return [pt.log(complement).astype(node.outputs[0].dtype)]
    if isinstance(node.op, ScalarFromTensor):  # an index
        operands = _as_before(node, inputs)
    elif isinstance(node.op, Elemwise) and not isinstance(node.op.scalar_op, Cast):
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
    if _is(node, Log):
        inner = _taken_from_one(inputs[0])
    elif _is(node, Log1p) and _is(inputs[0].owner, Neg):
        (inner,) = inputs[0].owner.inputs
    return None if inner is None else _taken_from_one(inner)


def _taken_from_one(variable: Variable) -> Variable | None:
    if not _is(variable.owner, Sub):
        return None
    one, rest = variable.owner.inputs
    return rest if all(one.type.broadcastable) and constant_entry(one) == 1 else None


def _is(node: Any, kind: type) -> bool:
    return node is not None and isinstance(getattr(node.op, "scalar_op", None), kind)


def _as_before(node: Any, inputs: list[Variable]) -> list[Variable]:
    types = (getattr(i, "dtype", "") for i in node.inputs)
    return [_cast(i, dtype) for i, dtype in zip(inputs, types, strict=True)]


def _converted(operand: Variable, result: np.dtype) -> Variable:
    """An operand of an operation whose result has this type in the model."""
    is_whole, is_single = np.dtype(operand.dtype).kind in "iu", result == np.float32
    precision = pytensor.config.floatX
    if result.kind in "iu" or (is_single and precision == "float64"):
        return _cast(operand, "int64" if is_whole else precision)
    return _cast(operand, precision) if is_single and is_whole else operand


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
    if not any(_is_minibatch(variable) for variable in ancestors(graphs)):
        return model
    return remove_minibatched_nodes(model)


def _is_minibatch(variable: Variable) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, MinibatchOp)


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
