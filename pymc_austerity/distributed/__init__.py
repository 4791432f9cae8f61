"""Chains and passes over rows on a Dask cluster; needs ``pip install 'pymc-austerity[dask]'``."""

try:
    import dask.distributed
except ImportError as error:  # pragma: no cover - the tests have it
    raise ImportError(
        "pymc_austerity.distributed needs Dask, which is not installed: "
        "pip install 'pymc-austerity[dask]'."
    ) from error

from pymc_austerity.distributed.passes import passes_on
from pymc_austerity.distributed.sampling import sample

__all__ = ["passes_on", "sample"]
