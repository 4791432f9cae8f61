"""A sweep as one compiled function, from the source that Python interprets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba

from pymc_austerity.compiled import CompiledTest, address_of_tail, compiled_test
from pymc_austerity.gibbs.factors import Factors
from pymc_austerity.gibbs.reference import ReferenceSweep, sweep
from pymc_austerity.sequential import StudentTTest

__all__ = ["CompiledSweep"]


_compiled_sweep = numba.njit(sweep)


@dataclass(frozen=True)
class CompiledSweep(ReferenceSweep):
    """`ReferenceSweep` with `StudentTTest`, without Python code between two factors."""

    rule: StudentTTest

    @staticmethod
    def is_possible(factors: Factors) -> bool:
        """Whether compiled code can call the functions of the factors, and Student's t."""
        compiled = hasattr(getattr(factors.functions.rows, "vm", None), "jit_fn")
        return compiled and address_of_tail() is not None

    @staticmethod
    def _sweep() -> Callable[..., None]:
        return _compiled_sweep

    @property
    def _functions(self) -> tuple[Any, Any]:
        functions = self.factors.functions
        return functions.rows.vm.jit_fn, functions.exact.vm.jit_fn  # type: ignore[attr-defined]

    @property
    def _rule(self) -> CompiledTest:
        return compiled_test(self.rule)
