"""What the tests of the plots share."""

import matplotlib as mpl
import pytest

from tests.diagnostics.runs import real
from tests.step_methods.models import normal_mean

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="session")
def run():
    """A real run, all of whose decisions were audited."""
    return real(normal_mean, audit=1.0)
