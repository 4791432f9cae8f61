"""The log-density of a model as an exact part and a sum over rows, evaluated at any rows."""

from pymc_austerity.likelihood.compile import CompiledDifferences, compile_differences
from pymc_austerity.likelihood.explain import explain, row_length_deterministics
from pymc_austerity.likelihood.gathered import (
    GatheredDifferences,
    compile_gathered_differences,
)
from pymc_austerity.likelihood.gradient import compile_gradient
from pymc_austerity.likelihood.row_likelihood import RowLeaf, RowLikelihood
from pymc_austerity.likelihood.split import split_log_density
from pymc_austerity.likelihood.taylor import (
    Derivatives,
    compile_derivatives,
    compile_residuals,
)
from pymc_austerity.likelihood.touching import Touches, touching_rows
from pymc_austerity.likelihood.verify import verify
from pymc_austerity.likelihood.verify_touching import verify_touching

__all__ = [
    "CompiledDifferences",
    "Derivatives",
    "GatheredDifferences",
    "RowLeaf",
    "RowLikelihood",
    "Touches",
    "compile_derivatives",
    "compile_differences",
    "compile_gathered_differences",
    "compile_gradient",
    "compile_residuals",
    "explain",
    "row_length_deterministics",
    "split_log_density",
    "touching_rows",
    "verify",
    "verify_touching",
]
