"""What all tests share."""

import os

# One thread for each worker of pytest-xdist: two workers with all the threads get in each other's way.
for library in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(library, "1")
os.environ.setdefault("MPLBACKEND", "agg")

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers for every test and every run."""
    return np.random.default_rng(20140621)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets; without it the test is skipped."""
    folder = os.environ.get("PYMC_AUSTERITY_DATA")
    if not folder:
        pytest.skip("PYMC_AUSTERITY_DATA does not name a folder of data sets")
    if not Path(folder).is_dir():
        pytest.skip(f"PYMC_AUSTERITY_DATA names {folder}, which is not a folder")
    return Path(folder)
