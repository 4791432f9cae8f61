"""What tests of clusters share."""

import pytest
from dask.distributed import Client, LocalCluster


@pytest.fixture(scope="module")
def threads():
    """A client of workers in this process."""
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1}
    with LocalCluster(**options, dashboard_address=":0") as cluster, Client(cluster) as client:
        yield client
