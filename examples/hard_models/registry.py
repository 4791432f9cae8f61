"""What a hard model is, and the list of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pymc as pm

from examples.hard_models.moments import Moments

Answer = Callable[[], Mapping[str, Moments]]
"""Finds the posterior moments of some quantities without Markov chains."""


@dataclass(frozen=True)
class HardModel:
    """A model, the settings it is sampled with, and where its right answer comes from.

    Attributes
    ----------
    name : str
        Its key, unique.
    why : str
        What is hard about it, in one sentence.
    write : callable
        Writes the model; called inside of a ``pm.Model()`` context.
    answer : callable, "nuts" or None
        Moments by a formula or by quadrature; or those of a long run of NUTS; or None where
        there is no proper posterior, so that only a warning or a refusal is right.
    settings : dict
        Of `AusterityMH`; the defaults if empty.
    """

    name: str
    why: str
    write: Callable[[], None]
    answer: Answer | Literal["nuts"] | None
    settings: dict[str, Any] = field(default_factory=dict)

    def build(self) -> pm.Model:
        """The model."""
        with pm.Model() as model:
            self.write()
        return model


HARD_MODELS: dict[str, HardModel] = {}


def hard(
    answer: Answer | Literal["nuts"] | None, **settings: Any
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function that writes a model; its docstring says what is hard about it.

    Parameters
    ----------
    answer : callable, "nuts" or None
        See `HardModel`.
    **settings
        Of `AusterityMH`.
    """

    def register(write: Callable[[], None]) -> Callable[[], None]:
        name = write.__name__
        if name in HARD_MODELS or not write.__doc__:
            raise ValueError(f"{name} needs a name of its own and a docstring")
        why = " ".join(write.__doc__.split())
        HARD_MODELS[name] = HardModel(name, why, write, answer, settings)
        return write

    return register
