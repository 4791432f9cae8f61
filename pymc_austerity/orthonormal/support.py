"""Variables on the manifold, which a random walk would leave."""

from typing import Any

from pymc_austerity.errors import SettingError
from pymc_austerity.orthonormal.uniform import UniformStiefelRV

__all__ = ["on_manifold", "refuse_ordinary_moves"]


def on_manifold(random_variable: Any) -> bool:
    """Whether a variable of a model is a matrix with orthonormal columns.

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_austerity.orthonormal import UniformStiefel, on_manifold
    >>> on_manifold(UniformStiefel.dist(3)), on_manifold(pm.Normal.dist())
    (True, False)
    """
    return isinstance(random_variable.owner.op, UniformStiefelRV)


def refuse_ordinary_moves(random_variable: Any) -> None:
    """Reject moves that would certainly leave the manifold.

    Raises
    ------
    SettingError
        Names the variable and the proposal to use.
    """
    if on_manifold(random_variable):
        name = random_variable.name
        raise SettingError(
            f"{name!r} has orthonormal columns, which the default proposals would not keep: "
            f"use AusterityMH(vars=[{name!r}], proposal=StiefelProposal())."
        )
