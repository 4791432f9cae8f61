"""Compiled differences, gradients and derivatives of the row part and of the row-free part."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Blockwise,
    Variable,
    clone_replace,
    grad,
    jit_function,
    pushforward,
    stabilized,
    toposort,
    vectorize_graph,
)
from pymc_austerity.model.compiling import (
    OneAtATime,
    compiled,
    evaluated,
    interpreted,
    with_checks_as_values,
)
from pymc_austerity.model.kernel.cells import Cells, filled, unrolled
from pymc_austerity.model.kernel.formula import cast, derivatives, indented, module_with, stripped
from pymc_austerity.model.kernel.generated import Generated, pointer
from pymc_austerity.model.kernel.row_formula import prepared
from pymc_austerity.model.kernel.scalar import Dependence, Names, given, or_reason, statements
from pymc_austerity.model.row_likelihood import ModelAt

_DENSITY = """
@njit(error_model="numpy", cache=CACHE)
def log_density({arrays}):
{body}


def log_density_at({arrays}):
    shape = ({size},)
    return log_density({from_addresses})
"""


_ENTRIES = 32_768
"""Rows times dimensions of a Hessian at once: intermediate results stay in the cache."""
_FEW_ROWS = 10_000
"""With no more, simplifying the Hessian of the rows takes longer than what it saves; with more,
threads share the blocks."""


def compile_row_differences(
    at: ModelAt, *, compile_kwargs: dict[str, Any] | None = None
) -> Callable[..., NDArray]:
    """Compile the differences of the row part between two points.

    Differences are taken in the graph, in the precision of the model, and only then turned into
    float64: in float32, log-densities that were rounded one by one would cancel.

    Parameters
    ----------
    at : ModelAt
        The split log-density, and its variables.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``. The mode is NUMBA unless it says otherwise.

    Returns
    -------
    callable
        ``f(proposed, current, *leaf_rows)``: differences of the log-likelihoods of the rows given
        between two raveled points of shape (d,), float64 array, shape (m,), nats. It trusts its
        inputs: arrays of the right dtype, nothing else. A failed check of parameters gives -inf,
        or is left out if the model has ``check_bounds=False``.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import ModelAt, compile_row_differences, split_log_density
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     _ = pm.Normal("y", mu, 1.0, observed=np.arange(10.0))
    >>> differences = compile_row_differences(
    ...     ModelAt(split_log_density(model), model.value_vars, {}, model.initial_point()),
    ...     compile_kwargs={"mode": "FAST_COMPILE"},
    ... )
    >>> differences(np.array([1.0]), np.array([0.0]), np.array([0.0, 2.0]))
    array([-0.5,  1.5])
    """
    points, difference = _difference(at, at.likelihood.rows)
    inputs = [*points, *at.likelihood.placeholders]
    return compiled(at.likelihood.model, inputs, difference, compile_kwargs)


def compile_row_free_difference(
    at: ModelAt, *, compile_kwargs: dict[str, Any] | None = None
) -> Callable[..., NDArray]:
    """Compile the difference of the row-free part between two points.

    Parameters
    ----------
    at, compile_kwargs
        As in `compile_row_differences`.

    Returns
    -------
    callable
        ``f(proposed, current)``: float64 array, 0-d, nats.
    """
    points, difference = _difference(at, at.likelihood.row_free)
    return compiled(at.likelihood.model, points, difference, compile_kwargs)


def _difference(at: ModelAt, graph: Variable) -> tuple[list[Variable], Variable]:
    """Raveled points, the proposed one first, and the difference of a graph between them."""
    (old,), current = at.joined(graph)
    proposed = current.type("proposed")
    (new,) = clone_replace([old], {current: proposed}, rebuild_strict=False)
    return [proposed, current], (new - old).astype("float64")


def compile_gradient(
    at: ModelAt, *, order: int = 0, compile_kwargs: dict[str, Any] | None = None
) -> Callable[..., NDArray]:
    r"""Compile the gradient of the row-free part and of some rows, minus its expansion on request.

    .. math::
        w_e \nabla \log \rho(\theta) + w_r \sum_{i \in \text{block}}
        [\nabla \log p(x_i | \theta) - g_i - H_i (\theta - \theta^*)]

    where :math:`g_i, H_i` are gradient and Hessian of the row at the anchor :math:`\theta^*`;
    neither term is there for order 0, and only the first one for order 1.

    Parameters
    ----------
    at : ModelAt
        The split log-density, and its variables.
    compile_kwargs
        As in `compile_row_differences`.
    order : {0, 1, 2}
        Order of the expansion of the log-density that is subtracted.

    Returns
    -------
    callable
        ``f(theta, anchor, row_weight, prior_weight, *block)``: float64 array, shape (d,), nats per
        unit of the unconstrained variables. Weights are 0-d arrays of the points' type.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    likelihood = at.likelihood
    (rows, exact), theta = at.joined(likelihood.rows, likelihood.row_free)
    anchor = theta.type("anchor")
    row_weight, prior_weight = theta.sum().type("row_weight"), theta.sum().type("prior_weight")
    of_rows = _residual(stabilized(rows.sum()), theta, anchor, order)
    of_exact = grad(stabilized(exact), theta, disconnected_inputs="ignore")
    gradient = row_weight * of_rows + prior_weight * of_exact
    inputs = [theta, anchor, row_weight, prior_weight, *likelihood.placeholders]
    return compiled(likelihood.model, inputs, gradient.astype("float64"), compile_kwargs)


def _residual(value: Any, theta: Any, anchor: Any, order: int) -> Any:
    """Gradient of a graph, minus its Taylor expansion about the anchor of one order lower."""
    gradient = grad(value, theta, disconnected_inputs="ignore")
    if order == 0:
        return gradient
    direction = theta.type("direction")
    expansion = gradient
    if order == 2:
        along = (gradient * direction).sum()
        expansion = gradient + grad(along, theta, disconnected_inputs="ignore")
    # theta in the direction must not be replaced by the anchor: two steps
    (there,) = clone_replace([expansion], {theta: anchor}, rebuild_strict=False)
    (there,) = clone_replace([there], {direction: theta - anchor}, rebuild_strict=False)
    return gradient - there


@dataclass(frozen=True, eq=False)
class RowFreeGradient:
    """The row-free part and its gradient.

    Attributes
    ----------
    function : callable
        ``f(point)``, in double precision: the part, 0-d, nats, and its gradient, shape (d,).
    size : int
        d.
    """

    function: Callable[..., Any]
    size: int

    def __call__(self, point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The row-free part, nats, and its gradient, at a point of shape (d,)."""
        value, gradient = self.function(point)
        return float(value), gradient

    @cached_property
    def address(self) -> int | None:
        """Of a function from the addresses of a point and of a gradient, which it writes.

        It returns the row-free part; all are NaN where PyTensor's function raises an error. None
        where numba did not compile it.
        """
        return None if self._by_address is None else int(self._by_address.address)

    @cached_property
    def _by_address(self) -> Any:
        inner, shape = jit_function(self.function), (self.size,)
        if inner is None:
            return None

        def exact_at(point: int, gradient: int) -> Any:
            found = numba.carray(pointer(gradient), shape, np.float64)
            try:  # an error would be lost: the caller is compiled code
                value, slope = inner(numba.carray(pointer(point), shape, np.float64))
                found[:] = slope
                return value[()]
            except Exception:  # noqa: BLE001  of a linear algebra library, say
                found[:] = np.nan
                return np.nan

        signature = numba.float64(numba.intp, numba.intp)
        return numba.cfunc(signature, error_model="numpy")(exact_at)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the address."""
        return {"function": self.function, "size": self.size}


def compile_row_free_gradient(
    at: ModelAt, *, compile_kwargs: dict[str, Any] | None = None
) -> RowFreeGradient:
    """Compile the row-free part and its gradient.

    Parameters
    ----------
    at, compile_kwargs
        As in `compile_row_differences`.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    (exact,), theta = at.joined(at.likelihood.row_free)
    value = stabilized(exact)
    gradient = grad(value, theta, disconnected_inputs="ignore")
    size = at.raveled.size
    x = pt.tensor("x", dtype="float64", shape=(size,))
    outputs = clone_replace([value, gradient], {theta: x.astype(theta.dtype)}, rebuild_strict=False)
    outputs = [output.astype("float64") for output in outputs]
    return RowFreeGradient(compiled(at.likelihood.model, [x], outputs, compile_kwargs), size)


class Derivatives(NamedTuple):
    """Derivatives of a part of the log-density, for the passes over all rows that set-up takes.

    Attributes
    ----------
    gradient : callable
        ``f(point, *block)``: the log-density in nats, float64, and its gradient, shape ``(d,)``.
        Of rows, the sums over the block.
    hessian : callable
        ``f(point, *block)``: its Hessian, float64 array, shape ``(d, d)``.
    """

    gradient: Callable[..., Sequence[NDArray]]
    hessian: Callable[..., NDArray]


def compile_row_derivatives(
    at: ModelAt, *, compile_kwargs: dict[str, Any] | None = None
) -> Derivatives:
    """Compile gradient and Hessian of the row part.

    Only the gradient is worth the seconds that it takes to compile; NumPy evaluates the Hessian,
    where it can do so fast.

    Parameters
    ----------
    at : ModelAt
        The split log-density, and its variables.
    compile_kwargs
        As in `compile_row_differences`.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    (rows,), theta = at.joined(at.likelihood.rows)
    inputs, model = [theta, *at.likelihood.placeholders], at.likelihood.model
    few = at.likelihood.n_rows <= _FEW_ROWS
    first, hessian = _derivatives(model, inputs, rows.sum(), compile_kwargs, few_rows=few)
    gradient = OneAtATime(compiled(model, inputs, first, compile_kwargs))
    return Derivatives(gradient, _by_piece(OneAtATime(hessian)))


def compile_row_free_derivatives(
    at: ModelAt, *, compile_kwargs: dict[str, Any] | None = None
) -> Derivatives:
    """Make gradient and Hessian of the row-free part, by NumPy where it can do so fast.

    Parameters
    ----------
    at, compile_kwargs
        As in `compile_row_derivatives`, and so is what is raised.
    """
    (exact,), theta = at.joined(at.likelihood.row_free)
    model = at.likelihood.model
    first, hessian = _derivatives(model, [theta], exact, compile_kwargs)
    return Derivatives(evaluated(model, [theta], first, compile_kwargs), hessian)


def _by_piece(hessian: Callable[..., NDArray]) -> Callable[..., NDArray]:
    """Sum over pieces of a block whose intermediate results fit in memory."""

    def of_block(point: NDArray, *block: NDArray) -> NDArray:
        n_rows = max(_ENTRIES // point.size, 1)
        starts = range(0, len(block[0]), n_rows)
        pieces = ([array[start : start + n_rows] for array in block] for start in starts)
        return np.sum([hessian(point, *piece) for piece in pieces], axis=0)

    return of_block


def _derivatives(
    model: pm.Model,
    inputs: list,
    value: Any,
    compile_kwargs: dict[str, Any] | None,
    *,
    few_rows: bool = True,
) -> tuple[list, Callable[..., NDArray]]:
    """Graphs of a value and of its gradient by the first input, and the Hessian.

    The Hessian is compiled when it is asked for first: not every use of a gradient needs it.
    """
    value, theta = stabilized(value), inputs[0]
    gradient = grad(value, theta, disconnected_inputs="ignore")
    direction = theta.type("direction")
    product = grad((gradient * direction).sum(), theta, disconnected_inputs="ignore")
    product = (product + 0.0 * direction).astype("float64")  # a constant gets dimensions, too
    its = model, inputs, product, direction, compile_kwargs
    made = cache(lambda: _compiled_hessian(*its, few_rows=few_rows))
    return [v.astype("float64") for v in (value, gradient)], lambda *a: made()(*a)


def _compiled_hessian(
    model: pm.Model,
    inputs: list,
    product: Any,
    direction: Any,
    compile_kwargs: dict[str, Any] | None,
    *,
    few_rows: bool,
) -> Callable[..., NDArray]:
    """All directions at once in NumPy, or else one after the other.

    At once, what does not depend on the direction is computed once, the rest by matrix products.
    """
    directions, function = pt.matrix("directions", dtype=direction.dtype), None
    with suppress(NotImplementedError):  # not every operation knows how to
        at_once = vectorize_graph(product, {direction: directions})
        few = not any(isinstance(node.op, Blockwise) for node in toposort([product]))
        how = {"few_batches": few, "is_stable": few_rows}
        function = interpreted(model, [directions, *inputs], at_once, **how)
    if function is not None:
        return lambda point, *block: function(_every(point), point, *block)
    one = compiled(model, [direction, *inputs], product, compile_kwargs)
    return lambda point, *block: np.stack([one(along, point, *block) for along in _every(point)])


def _every(point: NDArray) -> NDArray:
    """Directions of all entries of a point."""
    return np.eye(point.size, dtype=point.dtype)


def compile_residuals(
    at: ModelAt, *, order: int = 2, compile_kwargs: dict[str, Any] | None = None
) -> Callable[..., NDArray]:
    r"""Compile the row differences minus their Taylor expansion about an anchor.

    With :math:`d = \theta' - \theta` and :math:`s = (\theta' - \theta^*) + (\theta - \theta^*)`,

    .. math:: r_i = l_i - g_i \cdot d - \tfrac12 d' H_i s

    where :math:`g_i, H_i` are gradient and Hessian of the row at the anchor; neither is ever
    formed, only directional derivatives of the row graph (Bardenet, Doucet and Holmes 2017).

    Parameters
    ----------
    at : ModelAt
        The split log-density, and its variables.
    compile_kwargs
        As in `compile_row_differences`.
    order : {1, 2}
        Order of the expansion.

    Returns
    -------
    callable
        ``f(proposed, current, anchor, *block)``: float64 array, shape (rows in the block,), nats.
    """
    (rows,), theta = at.joined(at.likelihood.rows)
    proposed, current, anchor = (theta.type(name) for name in ("proposed", "current", "anchor"))
    d, s = theta.type("d"), theta.type("s")
    stable = stabilized(rows)
    first = pushforward(stable, theta, d)
    terms = first
    if order == 2:
        terms = first + 0.5 * pushforward(first, theta, s)
    moved = {d: proposed - current, s: (proposed - anchor) + (current - anchor)}
    (expansion,) = clone_replace([terms], moved | {theta: anchor}, rebuild_strict=False)
    (at_proposed,) = clone_replace([rows], {theta: proposed}, rebuild_strict=False)
    (at_current,) = clone_replace([rows], {theta: current}, rebuild_strict=False)
    residual = (at_proposed - at_current - expansion).astype("float64")
    inputs = [proposed, current, anchor, *at.likelihood.placeholders]
    return compiled(at.likelihood.model, inputs, residual, compile_kwargs)


# ------------------------------------------------------------------ generated code


@dataclass(frozen=True, eq=False)
class _Density(Generated):
    """A log-density, up to a constant, written for a model."""

    arrays: ClassVar[tuple[str, ...]]
    most_operations: ClassVar[int]

    @classmethod
    @or_reason
    def of(cls, at: ModelAt, graph: Variable) -> Self:
        """Write it; it is compiled when it is called first.

        Parameters
        ----------
        at : ModelAt
            What the log-density is a function of.
        graph : scalar variable
            The log-density.

        Returns
        -------
        The same kind of object, or str
            The reason why there is none.
        """
        (joined,), x = at.joined(graph)
        plain = with_checks_as_values(at.likelihood.model, prepared(joined))
        size = at.raveled.size
        entries = [given(f"point[{k}]", "f", Dependence.PREDICTOR) for k in range(size)]
        (root,) = unrolled([plain], {x: Cells(filled((size,), entries))})
        formula, names = stripped(cast(root.only, "f")), Names("t")
        slopes = derivatives(formula, entries) if "gradient" in cls.arrays else []
        body = statements([formula, *slopes], names)
        body += [f"gradient[{k}] = {names.of(slope)}" for k, slope in enumerate(slopes)]
        pointers = [f"carray(pointer({array}), shape, np.float64)" for array in cls.arrays]
        functions = _DENSITY.format(
            arrays=", ".join(cls.arrays),
            body=indented(1, [*body, f"return {names.of(formula)}"]),
            size=size,
            from_addresses=", ".join(pointers),
        )
        title, most = "Row-free part of a log-density", cls.most_operations
        return cls(module_with(title, [formula, *slopes], functions, most))


@dataclass(frozen=True, eq=False)
class DensityKernel(_Density):
    """Difference of a log-density between two points, as a compiled function.

    The function at `address` is one from the address of a point to the log-density.
    """

    by_address: ClassVar = ("log_density_at", 1, numba.float64)
    arrays: ClassVar = ("point",)
    most_operations: ClassVar = 600

    def __call__(self, proposed: NDArray, current: NDArray) -> float:
        """Difference between two points, float arrays of shape (d,), in nats."""
        new, old = (np.ascontiguousarray(point, dtype=np.float64) for point in (proposed, current))
        return float(self.on_arrays(new) - self.on_arrays(old))


@dataclass(frozen=True, eq=False)
class DensityGradient(_Density):
    """A log-density, up to a constant, and its gradient, as a compiled function.

    The function at `address` is one of the addresses of a point and of a gradient, which it writes.
    """

    by_address: ClassVar = ("log_density_at", 2, numba.float64)
    arrays: ClassVar = ("point", "gradient")
    most_operations: ClassVar = 2_000

    def __call__(self, point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """At a point, shape (d,): log-density, nats, and gradient, shape (d,)."""
        where, gradient = np.ascontiguousarray(point, dtype=np.float64), np.empty(point.size)
        return float(self.on_arrays(where, gradient)), gradient
