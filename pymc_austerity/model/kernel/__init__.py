"""Rows as one small compiled loop, written from the formula above the linear predictors."""

from pymc_austerity.model.kernel.kernel import Kernel, kernel_of

__all__ = ["Kernel", "kernel_of"]
