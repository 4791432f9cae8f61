"""What compiled code knows of a target, or why it cannot do without Python."""

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import CompiledPosterior, CompiledRows, CompiledTarget
from pymc_austerity.deciding.sampling import StratifiedSampling
from pymc_austerity.model import DensityKernel, Kernel
from pymc_austerity.rows import SharedRows
from pymc_austerity.setup.target import Target

__all__ = ["compiled_target", "why_python"]


def why_python(target: Target) -> str:
    """Why decisions about a target need Python, as half a sentence; empty if they do not."""
    if not isinstance(target.sampling, StratifiedSampling):
        return "rows are not sampled in strata"
    if not isinstance(target.row_function, Kernel):
        return "there is no compiled loop over rows"
    if not isinstance(target.exact_difference, DensityKernel):
        return "the terms that are evaluated in full need PyTensor"
    return ""


def compiled_target(target: Target) -> CompiledTarget:
    """Addresses and arrays of a target whose decisions do not need Python."""
    sampling, kernel, exact = target.sampling, target.row_function, target.exact_difference
    anchor, source = target.anchor, target.source
    assert isinstance(sampling, StratifiedSampling)
    assert isinstance(kernel, Kernel) and isinstance(exact, DensityKernel)
    assert anchor is not None and isinstance(source, SharedRows)
    arrays, strata = source.window(0, source.n_rows), sampling.strata
    own_order = np.arange(target.start.size)
    entries = own_order if kernel.entries is None else kernel.entries
    hessian = anchor.hessian if anchor.order > 1 else np.zeros_like(anchor.hessian)
    return CompiledTarget(
        CompiledPosterior(
            exact.address,
            np.ascontiguousarray(anchor.point, dtype=np.float64),
            np.ascontiguousarray(anchor.gradient),
            np.ascontiguousarray(hessian),
        ),
        CompiledRows(
            kernel.address,
            kernel.starts,
            entries.astype(np.int64),
            _table(arrays),
            _places(arrays),
            strata.sizes.astype(np.int64),
            strata.offsets.astype(np.int64),
            strata.first_counts.astype(np.int64),
        ),
        strata,
        (kernel, exact, arrays),
    )


def _table(arrays: tuple[NDArray, ...]) -> NDArray[np.int64]:
    """Address and shape of each array."""
    numbers = [number for array in arrays for number in (array.ctypes.data, *array.shape)]
    return np.array(numbers, dtype=np.int64)


def _places(arrays: tuple[NDArray, ...]) -> NDArray[np.int64]:
    """Address of each array, and the bytes of a row."""
    return np.array([(array.ctypes.data, array.strides[0]) for array in arrays], dtype=np.int64)
