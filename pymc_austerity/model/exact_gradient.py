"""The exact part with its gradient, as one compiled function for many calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    clone_replace,
    grad,
    jit_function,
    join_nonshared_inputs,
    stabilized,
)
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.kernel.addresses import pointer
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = ["ExactGradient", "compile_exact_gradient"]


@dataclass(frozen=True, eq=False)
class ExactGradient:
    """The exact part and its gradient.

    Attributes
    ----------
    function : callable
        ``f(point)``, in double precision: the exact part, 0-d, nats, and its gradient, shape (d,).
    size : int
        d.
    """

    function: Callable[..., Any]
    size: int

    def __call__(self, point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The exact part, nats, and its gradient, at a point of shape (d,)."""
        value, gradient = self.function(point)
        return float(value), gradient

    @cached_property
    def address(self) -> int | None:
        """Of a function from the addresses of a point and of a gradient, which it writes.

        It returns the exact part. None where numba did not compile it.
        """
        return None if self._by_address is None else int(self._by_address.address)

    @cached_property
    def _by_address(self) -> Any:
        inner, shape = jit_function(self.function), (self.size,)
        if inner is None:
            return None

        def exact_at(point: int, gradient: int) -> Any:
            value, slope = inner(numba.carray(pointer(point), shape, np.float64))
            numba.carray(pointer(gradient), shape, np.float64)[:] = slope
            return value[()]

        return numba.cfunc(numba.float64(numba.intp, numba.intp))(exact_at)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the address."""
        return {"function": self.function, "size": self.size}


def compile_exact_gradient(
    likelihood: RowLikelihood,
    variables: Sequence,
    shared: Mapping,
    point: Mapping[str, NDArray],
    *,
    compile_kwargs: dict[str, Any] | None = None,
) -> ExactGradient:
    """Compile the exact part and its gradient.

    Parameters
    ----------
    likelihood, variables, shared, point, compile_kwargs
        As in `compile_row_differences`.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    (exact,), theta = join_nonshared_inputs(
        dict(point), [likelihood.exact], list(variables), dict(shared)
    )
    value = stabilized(exact)
    gradient = grad(value, theta, disconnected_inputs="ignore")
    size = sum(np.size(point[variable.name]) for variable in variables)
    x = pt.tensor("x", dtype="float64", shape=(size,))
    outputs = clone_replace([value, gradient], {theta: x.astype(theta.dtype)}, rebuild_strict=False)
    outputs = [output.astype("float64") for output in outputs]
    return ExactGradient(compiled(likelihood.model, [x], outputs, compile_kwargs), size)
