"""Which variables live where a random walk cannot go."""

from typing import Any

from pymc_austerity.distributions.spike_and_slab import SpikeAndSlabRV
from pymc_austerity.distributions.stiefel import UniformStiefelRV

__all__ = ["has_point_masses", "on_manifold"]


def on_manifold(random_variable: Any) -> bool:
    """Whether a variable of a model is a matrix with orthonormal columns.

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_austerity.distributions import UniformStiefel, on_manifold
    >>> on_manifold(UniformStiefel.dist(3)), on_manifold(pm.Normal.dist())
    (True, False)
    """
    return isinstance(random_variable.owner.op, UniformStiefelRV)


def has_point_masses(random_variable: Any) -> bool:
    """Whether a variable of a model is exactly zero with positive probability.

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_austerity.distributions import SpikeAndSlab, has_point_masses
    >>> has_point_masses(SpikeAndSlab.dist([0, 1], pm.Normal.dist()))
    True
    """
    return isinstance(random_variable.owner.op, SpikeAndSlabRV)
