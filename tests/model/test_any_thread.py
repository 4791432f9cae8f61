"""Functions of PyTensor that several threads call at a time."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity.model.compiling import NUMPY_MODE, AnyThread, OneAtATime


def function():
    x = pt.vector("x", dtype="float64")
    return pm.compile([x], [pt.exp(pt.sin(x)) * x + pt.log1p(x**2)], mode=NUMPY_MODE)


@pytest.mark.parametrize("kind", [AnyThread, OneAtATime])
def test_threads_do_not_meet(kind):
    safe = pickle.loads(pickle.dumps(kind(function())))
    arrays = [np.random.default_rng(k).normal(size=20_000) for k in range(60)]
    expected = [np.exp(np.sin(x)) * x + np.log1p(x**2) for x in arrays]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(safe, arrays))
    for (one,), other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_an_error_costs_no_copy():
    safe = AnyThread(function())
    with pytest.raises((TypeError, ValueError)):
        safe("no vector")
    assert safe(np.zeros(2))[0].tolist() == [0.0, 0.0]
    assert len(safe._free) == 1
