"""The row-free part of a log-density, and its gradient, as compiled functions of a point."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import CheckParameterValue, Variable, rebuilt
from pymc_austerity.model.kernel.cells import Cells, filled, unrolled
from pymc_austerity.model.kernel.formula import cast, derivatives, indented, module_with, stripped
from pymc_austerity.model.kernel.generated import Generated
from pymc_austerity.model.kernel.row_formula import prepared
from pymc_austerity.model.kernel.scalar import Dependence, Names, given, or_reason, statements
from pymc_austerity.model.row_likelihood import ModelAt

_FUNCTIONS = """
@njit(error_model="numpy", cache=CACHE)
def log_density({arrays}):
{body}


def log_density_at({arrays}):
    shape = ({size},)
    return log_density({from_addresses})
"""


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
        if not at.likelihood.model.check_bounds:
            (joined,) = rebuilt([joined], _passed)
        size = at.raveled.size
        entries = [given(f"point[{k}]", "f", Dependence.PREDICTOR) for k in range(size)]
        (root,) = unrolled([prepared(joined)], {x: Cells(filled((size,), entries))})
        formula, names = stripped(cast(root.only, "f")), Names("t")
        slopes = derivatives(formula, entries) if "gradient" in cls.arrays else []
        body = statements([formula, *slopes], names)
        body += [f"gradient[{k}] = {names.of(slope)}" for k, slope in enumerate(slopes)]
        pointers = [f"carray(pointer({array}), shape, np.float64)" for array in cls.arrays]
        functions = _FUNCTIONS.format(
            arrays=", ".join(cls.arrays),
            body=indented(1, [*body, f"return {names.of(formula)}"]),
            size=size,
            from_addresses=", ".join(pointers),
        )
        title, most = "Row-free part of a log-density", cls.most_operations
        return cls(module_with(title, [formula, *slopes], functions, most))


def _passed(node: Any, inputs: list[Variable]) -> list[Variable] | None:
    """What a check lets through."""
    return inputs[:1] if isinstance(node.op, CheckParameterValue) else None


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
