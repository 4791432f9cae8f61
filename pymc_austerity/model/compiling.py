"""Graphs as functions: compiled, or interpreted by NumPy."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    OF_BLAS,
    Blockwise,
    CheckParameterValue,
    Elemwise,
    Mode,
    RewriteDatabaseQuery,
    Scan,
    Variable,
    node_rewriter,
    out2in,
    rebuilt,
    scalar_name,
    underivable,
    without_reports,
)
from pymc_austerity.errors import SettingError
from pymc_austerity.time_limit import end_if_late

_SHIFT = 10
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)
_LAST = 100
"""Position of a rewrite after all of PyTensor's own."""
_CALLS_AS_WRITTEN = 200
"""Simplified functions are about 1.5 times as fast; to simplify one takes as long as 10 to 300
calls."""


def compiled(
    model: pm.Model, inputs: Sequence, outputs: Any, compile_kwargs: dict[str, Any] | None
) -> Callable[..., Any]:
    """Compile one graph, or a list of them.

    Parameters
    ----------
    model : pymc.Model
        Whose ``check_bounds`` is honored.
    inputs : sequence of variables
        Arguments of the function; it trusts them to have the right types, and may ignore some.
    outputs : variable or list of variables
        What it returns.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``. The mode is NUMBA unless it says otherwise.

    Raises
    ------
    SettingError
        PyTensor does not compile with these arguments.
    """
    end_if_late()
    kwargs = {"mode": "NUMBA", "on_unused_input": "ignore"} | (compile_kwargs or {})
    with model:
        try:
            function = pm.compile(list(inputs), expand_trigamma(outputs), **kwargs)
        except Exception as error:
            if not compile_kwargs or isinstance(error, underivable):
                raise
            reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            raise SettingError(
                f"compile_kwargs={compile_kwargs!r} is rejected by PyTensor ({reason}): leave out "
                "what it does not take, or install what it needs."
            ) from error
    function.trust_input = True
    return function


class AnyThread:
    """A function that runs operation by operation, with a copy for each thread that calls it now.

    It does not warn of overflow, like compiled code: callers check the result.

    Parameters
    ----------
    function : pytensor Function
        Of a linker for which a copy takes no compilation.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._free, self._lock = [function], threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns."""
        try:
            function = self._free.pop()
        except IndexError:
            function = self._copy()
        try:
            with np.errstate(all="ignore"):
                return function(*arguments)
        finally:
            self._free.append(function)

    def _copy(self) -> Any:
        with self._lock:
            copy = self._function.copy()
            copy.trust_input = self._function.trust_input
            return copy

    def __reduce__(self) -> tuple:
        return AnyThread, (self._function,)


class OneAtATime:
    """A compiled function that one thread calls at a time: it holds the interpreter's lock.

    Parameters
    ----------
    function : pytensor Function
    """

    def __init__(self, function: Any) -> None:
        self._function, self._lock = function, threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns, when no other thread waits for it."""
        with self._lock:
            return self._function(*arguments)

    def __reduce__(self) -> tuple:
        return OneAtATime, (self._function,)


def trigamma_series(x: Any) -> Any:
    r"""Second derivative of the log of the gamma function, for positive arguments.

    .. math::
        \psi'(x) = \sum_{k=0}^{9} \frac{1}{(x + k)^2}
        + \frac{1}{z} + \frac{1}{2 z^2} + \sum_{j=1}^{5} \frac{B_{2j}}{z^{2j+1}}, \quad z = x + 10

    The relative error is below 1e-13. Numba would call SciPy through Python for every element.

    Parameters
    ----------
    x : tensor variable
        Positive; elsewhere the result is NaN.

    References
    ----------
    Abramowitz, M. and Stegun, I. A. (1964). Handbook of Mathematical Functions, 6.4.6 and 6.4.12.

    Examples
    --------
    >>> import numpy as np
    >>> value = trigamma_series(pt.constant(1.0, dtype="float64")).eval()
    >>> bool(np.isclose(value, np.pi**2 / 6, rtol=1e-12))
    True
    """
    z = x + _SHIFT
    tail = 1 / z + 0.5 / z**2
    for j, bernoulli in enumerate(_BERNOULLI, start=1):
        tail = tail + bernoulli / z ** (2 * j + 1)
    terms = [1 / (x + k) ** 2 for k in range(_SHIFT)]
    return pt.switch(x > 0, pt.add(*terms, tail), float("nan"))


def _built_anew(outputs: Any, rule: Callable[[Any, list], list | None]) -> Any:
    """One graph, or a list of them, with other outputs for some nodes."""
    return rebuilt(outputs, rule) if isinstance(outputs, list) else rebuilt([outputs], rule)[0]


def expand_trigamma(outputs: Any) -> Any:
    """Replace PyTensor's trigamma, which second derivatives of gamma functions bring in."""

    def rule(node: Any, inputs: list[Variable]) -> list[Variable] | None:
        if scalar_name(node) != "TriGamma":
            return None
        return [trigamma_series(*inputs).astype(node.outputs[0].dtype)]

    return _built_anew(outputs, rule)


def interpreted(
    model: pm.Model,
    inputs: Sequence,
    outputs: Any,
    *,
    few_batches: bool = False,
    is_stable: bool = False,
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
    inputs : sequence of variables
    outputs : variable or list of variables
    few_batches : bool
        Whether what PyTensor calls Python for in batches has few of them.
    is_stable : bool
        Whether the graph needs no other form for its digits, and one thread calls the function,
        during set-up alone, as chains in other processes would round otherwise: it is evaluated as
        written until its simplification, seconds for a Hessian, pays.

    Examples
    --------
    >>> import numpy as np
    >>> x = pt.vector("x", dtype="float64")
    >>> interpreted(pm.Model(), [x], pt.softplus(x))(np.zeros(2))
    array([0.69314718, 0.69314718])
    """
    outputs = expand_trigamma(outputs)

    def made(mode: Any) -> Callable | None:
        end_if_late()
        with model:
            function = pm.compile(inputs, outputs, mode=mode, on_unused_input="ignore")
        if any(_is_slow(node, few_batches) for node in function.maker.fgraph.apply_nodes):
            return None
        function.trust_input = True
        return AnyThread(function)

    if is_stable:
        outputs = with_checks_as_values(model, outputs)
        if (as_written := made(_MERGED)) is not None:
            return _SimplifiedLater(as_written, partial(made, NUMPY_MODE))
    return made(NUMPY_MODE)


def with_checks_as_values(model: pm.Model, outputs: Any) -> Any:
    """Minus infinity where a parameter is not in its domain, which PyMC's simplifications make."""

    def rule(node: Any, inputs: list[Variable]) -> list[Variable] | None:
        if not isinstance(node.op, CheckParameterValue):
            return None
        value, *conditions = inputs
        if not model.check_bounds:
            return [value]
        if not node.op.can_be_replaced_by_ninf:
            return None
        is_valid = reduce(pt.and_, map(pt.all, conditions))
        return [pt.switch(is_valid, value, -np.inf).astype(value.dtype)]

    return _built_anew(outputs, rule)


class _SimplifiedLater:
    """A function that is simplified after some calls, or where it is not finite as it is written.

    Parameters
    ----------
    as_written : callable
    simplified : callable
        ``f()``: a faster function of the same values, or None. Other processes go on without it.
    """

    def __init__(self, as_written: Callable, simplified: Callable[[], Callable | None]) -> None:
        self._function, self._simplified, self._left = as_written, simplified, _CALLS_AS_WRITTEN

    def __call__(self, *arguments: NDArray) -> Any:
        """What the function returns."""
        result = self._function(*arguments)
        if not self._left:
            return result
        self._left -= 1
        if self._left and all(np.isfinite(r).all() for r in _listed(result)):
            return result
        self._left = 0
        with suppress(AssertionError), without_reports():  # of a rewrite, beside random walks
            self._function = self._simplified() or self._function
        return self._function(*arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {"_function": self._function, "_left": 0}


def _listed(result: Any) -> list:
    return result if isinstance(result, list) else [result]


def evaluated(
    model: pm.Model,
    inputs: Sequence,
    outputs: Any,
    compile_kwargs: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Function that NumPy evaluates where it can do so fast, or else a compiled one."""
    function = interpreted(model, inputs, outputs)
    return function or OneAtATime(compiled(model, inputs, outputs, compile_kwargs))


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
    return AnyThread(pytensor.function(graph.inputs, outputs, mode=mode, on_unused_input="ignore"))


@dataclass(frozen=True)
class OfTypes:
    """A function that gets arguments of its types.

    Attributes
    ----------
    function : callable
        From arrays to a list of them.
    dtypes : tuple of str
    """

    function: Callable[..., list]
    dtypes: tuple[str, ...]

    def __call__(self, *arguments: NDArray) -> list[NDArray]:
        """What the function returns, in a list."""
        typed = zip(arguments, self.dtypes, strict=True)
        return self.function(*(a if a.dtype == t else a.astype(t) for a, t in typed))


def _in_terms_of_numpy(fgraph: Any, node: Any) -> list | None:
    """Sums and products of two, casts as sums, and functions that NumPy does not have."""
    kind, (first, *others), dtype = scalar_name(node), node.inputs, node.outputs[0].dtype
    if kind in ("Add", "Mul") and len(others) > 1:
        return [reduce(Elemwise(node.op.scalar_op), others, first)]
    if kind == "Second":  # in the shape of both
        kept = pt.switch(np.ones((1,) * first.ndim, dtype=bool), others[0], first)
        return [kept] if kept.dtype == dtype else None
    if kind == "Cast":
        kept = pt.add(first, np.zeros((1,) * first.ndim, dtype=dtype))
        return [kept] if kept.dtype == dtype else None
    if kind == "Softplus":
        return [pt.maximum(first, 0) + pt.log1p(pt.exp(-abs(first)))]
    if kind == "Log1mexp":  # log(1 - exp(x)), by Maechler (2012)
        near = pt.log(-pt.expm1(first))
        return [pt.switch(first > -0.6931471805599453, near, pt.log1p(-pt.exp(first)))]
    return None


def _numpy_mode(*include: str) -> Any:
    query = RewriteDatabaseQuery(
        include=include,
        exclude=["fusion", "inplace", "local_pow_to_nested_squaring", *OF_BLAS],
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

_MERGED = _numpy_mode("merge")
"""The same, with nothing computed twice."""


def _is_slow(node: Any, few_batches: bool) -> bool:
    if isinstance(node.op, Scan | Blockwise):
        return isinstance(node.op, Scan) or not few_batches
    if not isinstance(node.op, Elemwise) or all(node.outputs[0].type.broadcastable):
        return False
    known = node.op.nfunc_spec
    return known is None or known[1] != len(node.inputs)
