"""Rows as one small compiled loop, written from the formula above the linear predictors."""

from pymc_austerity.model.kernel.kernel import Kernel, kernel_of
from pymc_austerity.model.kernel.verify_kernel import verify_kernel

__all__ = ["Kernel", "kernel_of", "verify_kernel"]
