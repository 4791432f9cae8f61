"""The difference of the exact part between two points: written for the model, or by PyTensor."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_austerity.model import (
    DensityKernel,
    compile_exact_difference,
    density_kernel_of,
    verify_exact_difference,
)
from pymc_austerity.setup.problem import Problem

__all__ = ["exact_difference"]


def exact_difference(problem: Problem) -> Callable[..., Any]:
    """Compile the difference; what is called once is ready when the chains start."""
    likelihood, variables, shared, point = problem.parts
    function: Callable[..., Any] | str = density_kernel_of(
        likelihood.exact, variables, shared, point, check_bounds=problem.model.check_bounds
    )
    if isinstance(function, DensityKernel):
        verified, rng = problem.prepared.verified, np.random.default_rng(0)
        verify_exact_difference(function, likelihood, verified, variables, point, rng=rng)
        return function
    function = compile_exact_difference(*problem.parts, compile_kwargs=problem.compile_kwargs)
    function(problem.start, problem.start)
    return function
