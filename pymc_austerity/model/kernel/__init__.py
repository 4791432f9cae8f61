"""Rows as one small compiled loop, written from the formula above the linear predictors."""

from pymc_austerity.model.kernel.density import DensityKernel, density_kernel_of
from pymc_austerity.model.kernel.density_gradient import DensityGradient, density_gradient_of
from pymc_austerity.model.kernel.kernel import Kernel, kernel_of
from pymc_austerity.model.kernel.row_derivatives import RowDerivatives, row_derivatives_of

__all__ = [
    "DensityGradient",
    "DensityKernel",
    "Kernel",
    "RowDerivatives",
    "density_gradient_of",
    "density_kernel_of",
    "kernel_of",
    "row_derivatives_of",
]
