"""What a family of models is, and the list of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pymc as pm

from examples.hard_models.moments import Moments


@dataclass(frozen=True)
class Family:
    """A model of a kind that users write, and how it is sampled.

    Attributes
    ----------
    name : str
        Its key, unique.
    title : str
        What it is, in one line.
    build : callable
        Makes the model.
    settings : dict
        Of `AusterityMH`; the defaults if empty.
    is_row_wise : bool
        Whether the likelihood is a product over rows. If not, a refusal is right.
    beside : str
        Name of a variable that keeps the step method PyMC gives it. The peer is then the NUTS of
        PyMC beside that step method, because nutpie takes no other beside it.
    needs : str
        Optional package.
    nuts_draws : int
        Draws of a chain of NUTS, where chains of the usual length do not agree.
    compared : tuple of str
        Names of the variables whose means and standard deviations are compared; all free ones if
        empty. Others may have no variance.
    reference : callable, optional
        Moments by other means, where chains of NUTS do not agree.
    """

    name: str
    title: str
    build: Callable[[], pm.Model]
    settings: dict[str, Any] = field(default_factory=dict)
    is_row_wise: bool = True
    beside: str = ""
    needs: str = ""
    nuts_draws: int = 0
    compared: tuple[str, ...] = ()
    reference: Callable[[], dict[str, Moments]] | None = None


FAMILIES: dict[str, Family] = {}


def add(name: str, title: str, build: Callable[[], pm.Model], **about: Any) -> None:
    """Register a function that makes a model.

    Parameters
    ----------
    name, title, build
        See `Family`.
    **about
        Other attributes of `Family`.
    """
    if name in FAMILIES or not title:
        raise ValueError(f"{name} needs a name of its own and a title")
    FAMILIES[name] = Family(name, title, build, **about)


def family(**about: Any) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function that writes a model inside of ``pm.Model()``; its docstring is the title.

    Parameters
    ----------
    **about
        Other attributes of `Family`.
    """

    def register(write: Callable[[], None]) -> Callable[[], None]:
        def build() -> pm.Model:
            with pm.Model() as model:
                write()
            return model

        add(write.__name__, " ".join((write.__doc__ or "").split()).rstrip("."), build, **about)
        return write

    return register
