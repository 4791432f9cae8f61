"""Functions that run operation by operation in NumPy, without compilation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Add,
    Blockwise,
    Cast,
    Elemwise,
    Log1mexp,
    Mode,
    Mul,
    RewriteDatabaseQuery,
    Scan,
    Second,
    Softplus,
    node_rewriter,
    out2in,
    rebuilt,
)
from pymc_austerity.model.compiling import AnyThread, expand_trigamma

__all__ = ["AS_WRITTEN", "NUMPY_MODE", "interpreted", "rounded_otherwise"]

_LAST = 100
"""Position of a rewrite after all of PyTensor's own."""


def interpreted(
    model: pm.Model, inputs: Sequence, outputs: list[Any], *, few_batches: bool = False
) -> Callable | None:
    """Function of the graph that NumPy evaluates, or None where that would be slow.

    Numba takes seconds to compile functions that set-up calls some dozen times. NumPy is a few
    times slower on arrays of ten thousand entries and needs no compilation. It is slow where
    PyTensor would call Python for every entry or row: scans, and functions that neither NumPy nor
    SciPy has.

    Parameters
    ----------
    model : pymc.Model
        Its ``check_bounds`` is honored.
    inputs, outputs : variables
    few_batches : bool
        Whether what PyTensor calls Python for in batches has few of them.

    Examples
    --------
    >>> import numpy as np
    >>> x = pt.vector("x", dtype="float64")
    >>> interpreted(pm.Model(), [x], [pt.softplus(x)])(np.zeros(2))
    [array([0.69314718, 0.69314718])]
    """
    with model:
        function = pm.compile(
            inputs, expand_trigamma(outputs), mode=NUMPY_MODE, on_unused_input="ignore"
        )
    if any(_is_slow(node, few_batches) for node in function.maker.fgraph.apply_nodes):
        return None
    function.trust_input = True
    return _Quiet(AnyThread(function))


def rounded_otherwise(function: Any, rng: np.random.Generator) -> Callable[..., Any]:
    """A compiled function with random results of operations one unit in the last place smaller.

    How much it differs shows what rounding does to the function.
    """

    def rule(node: Any, inputs: list) -> list | None:
        is_real = isinstance(node.op, Elemwise) and node.outputs[0].dtype == "float64"
        if not is_real or rng.random() < 0.5:
            return None
        return [node.clone_with_new_inputs(inputs).outputs[0] * (1.0 - np.finfo(float).eps)]

    graph = function.maker.fgraph
    outputs = rebuilt(graph.outputs, rule)
    mode = Mode(linker="py", optimizer=None)
    return _Quiet(pytensor.function(graph.inputs, outputs, mode=mode, on_unused_input="ignore"))


@dataclass(frozen=True)
class _Quiet:
    """A function without warnings of overflow, like compiled code: callers check the result."""

    function: Callable

    def __call__(self, *arguments: NDArray) -> Any:
        with np.errstate(all="ignore"):
            return self.function(*arguments)


def _in_terms_of_numpy(fgraph: Any, node: Any) -> list | None:
    """Sums and products of two, casts as sums, and functions that NumPy does not have."""
    kind, (first, *others) = node.op.scalar_op, node.inputs
    if isinstance(kind, Add | Mul) and len(others) > 1:
        return [reduce(Elemwise(kind), others, first)]
    if isinstance(kind, Second):  # in the shape of both
        kept = pt.switch(np.ones((1,) * first.ndim, dtype=bool), others[0], first)
        return [kept] if kept.dtype == node.outputs[0].dtype else None
    if isinstance(kind, Cast):
        kept = pt.add(first, np.zeros((1,) * first.ndim, dtype=kind.o_type.dtype))
        return [kept] if kept.dtype == kind.o_type.dtype else None
    if isinstance(kind, Softplus):
        return [pt.maximum(first, 0) + pt.log1p(pt.exp(-abs(first)))]
    if isinstance(kind, Log1mexp):  # log(1 - exp(x)), by Maechler (2012)
        near = pt.log(-pt.expm1(first))
        return [pt.switch(first > -0.6931471805599453, near, pt.log1p(-pt.exp(first)))]
    return None


def _numpy_mode(*include: str) -> Any:
    query = RewriteDatabaseQuery(
        include=include,
        exclude=["fusion", "inplace", "local_pow_to_nested_squaring", "BlasOpt", "c_blas"],
    )
    # not as a decorator: pickling looks the function up by its name
    by_node = node_rewriter([Elemwise])(_in_terms_of_numpy)
    rewriter = out2in(by_node, name="in_terms_of_numpy")
    return Mode(linker="py", optimizer=query).register((rewriter, _LAST))


NUMPY_MODE = _numpy_mode("merge", "ShapeOpt", "canonicalize", "stabilize", "specialize", "py_only")
"""Mode of PyTensor in which every operation is one call of NumPy or SciPy, where it can be.

With PyTensor's simplifications and stable forms, without fused or destructive operations. Stable
forms need ``specialize``: ``canonicalize`` hides ``log1p(-sigmoid(x))``, which is 1e-5 off at
x = 31 and infinite at 37, from ``stabilize``.
"""
AS_WRITTEN = _numpy_mode("nothing")
"""The same without simplifications: intermediate results are freed as soon as they have been used,
where constant folding would keep them all."""


def _is_slow(node: Any, few_batches: bool) -> bool:
    if isinstance(node.op, Scan | Blockwise):
        return isinstance(node.op, Scan) or not few_batches
    if not isinstance(node.op, Elemwise) or all(node.outputs[0].type.broadcastable):
        return False
    known = node.op.nfunc_spec
    return known is None or known[1] != len(node.inputs)
