"""Chains and passes over rows on a Dask cluster; needs Dask and cloudpickle."""

try:
    import dask.distributed
except ImportError as error:  # pragma: no cover - the tests have it
    raise ImportError(
        "pymc_austerity.distributed needs Dask: "
        "pip install 'dask[array,dataframe,distributed]' cloudpickle."
    ) from error

from pymc_austerity.distributed.passes import passes_on
from pymc_austerity.distributed.sampling import sample

__all__ = ["passes_on", "sample"]
