"""A saved run is as large as its posterior, whatever the data."""

import arviz as az
import pytest
import xarray as xr

from tests.running import assert_same_draws, built, sample
from tests.step_methods.models import normal_mean

N_ROWS = 200_000


@pytest.fixture(scope="module")
def run():
    """Few draws on many rows."""
    model = normal_mean(n_rows=N_ROWS)
    return sample(built(model), model, draws=100, tune=20)


def test_without_the_data_a_file_is_small(run, tmp_path):
    path = tmp_path / "posterior.nc"
    if isinstance(run, xr.DataTree):
        small = run.copy()
        for name in {"observed_data", "constant_data"} & set(small.children):
            del small[name]
        small.to_netcdf(path)
    else:
        run.to_netcdf(path, groups=["posterior", "sample_stats"])
    assert path.stat().st_size < 200_000 < 8 * N_ROWS
    saved = az.from_netcdf(path)
    assert_same_draws(run, saved)
    assert saved.sample_stats.attrs["n_rows"] == N_ROWS


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_a_zarr_store(run, tmp_path):
    pytest.importorskip("zarr")
    path = tmp_path / "posterior.zarr"
    tree = run if isinstance(run, xr.DataTree) else run.to_datatree()
    tree.to_zarr(path)
    assert_same_draws(run, xr.open_datatree(path, engine="zarr"))
