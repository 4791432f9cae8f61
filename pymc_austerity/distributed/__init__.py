"""Chains on the workers of a Dask cluster; needs ``pip install 'pymc-austerity[dask]'``."""

try:
    import dask.distributed  # noqa: F401
except ImportError as error:  # pragma: no cover - the tests have it
    raise ImportError(
        "pymc_austerity.distributed needs Dask, which is not installed: "
        "pip install 'pymc-austerity[dask]'."
    ) from error

from pymc_austerity.distributed.sampling import sample

__all__ = ["sample"]
