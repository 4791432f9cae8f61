"""How many steps each epsilon gets: the papers' numbers, or the same share of all of them.

In every figure of a risk the papers give each epsilon the same time. How many steps that were is
what the figure is made of, and it does not depend on the machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def label(epsilon: float) -> str:
    """Name of a sampler of the papers."""
    return f"epsilon = {epsilon:g}"


def epsilon_of(name: str) -> float:
    """Epsilon of a sampler of the papers."""
    return float(name.removeprefix("epsilon = "))


@dataclass(frozen=True)
class Budget:
    """Steps of the papers' chains.

    Attributes
    ----------
    seconds : float
        How long each chain of the papers ran.
    steps : mapping of str to int
        How many steps it made, by the name of the sampler.

    Examples
    --------
    >>> Budget(400.0, {"epsilon = 0": 75_484}).steps_at(0.25)
    {'epsilon = 0': 18871}
    """

    seconds: float
    steps: Mapping[str, int]

    def steps_at(self, ratio: float) -> dict[str, int]:
        """Steps of every sampler in a share of the papers' time; two at least."""
        return {name: max(round(ratio * steps), 2) for name, steps in self.steps.items()}

    def record(self, ratio: float) -> dict[str, Any]:
        """What a figure has to know of it."""
        return {"seconds": self.seconds, "ratio": ratio, "steps": dict(self.steps)}
