"""Shapes of models, each with what should become of it when its likelihood is cut to rows."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pymc as pm
import pytensor
from numpy.typing import NDArray
from pytensor.tensor import TensorVariable

N_COLUMNS = 3
N_GROUPS = 7
N_CATEGORIES = 4
N_TIMES = 5


@dataclass(frozen=True)
class Data:
    """Random data for a model; arrays of real numbers have the precision of the model."""

    n: int
    rng: np.random.Generator
    X: NDArray
    eta: NDArray
    group: NDArray

    @classmethod
    def random(cls, n_rows: int) -> "Data":
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_rows, N_COLUMNS)).astype(pytensor.config.floatX)
        group = rng.integers(0, N_GROUPS, n_rows)
        group[:N_GROUPS] = np.arange(N_GROUPS)
        return cls(n_rows, rng, X, X @ np.array([0.5, -0.3, 0.2], dtype=X.dtype), group)

    def binary(self) -> NDArray:
        return self.rng.integers(0, 2, self.n)

    def counts(self, mean: float = 1.0) -> NDArray:
        return self.rng.poisson(mean, self.n)

    def categories(self) -> NDArray:
        return self.rng.integers(0, N_CATEGORIES, self.n)

    def normal(self, *shape: int) -> NDArray:
        return self.rng.normal(size=shape).astype(self.X.dtype)

    def multinomial(self, totals: NDArray) -> NDArray:
        """One draw for each total, with equal probabilities."""
        p = np.ones(N_CATEGORIES) / N_CATEGORIES
        return np.stack([self.rng.multinomial(total, p) for total in totals])


@dataclass(frozen=True)
class Shape:
    """A shape of model and what is expected of it.

    `expect` is "works", "refused" (with `because` in the message) or "local" (it has variables
    with one entry per row). `predictors` is the number of linear predictors of its rows.
    """

    name: str
    write: Callable[[Data], None]
    expect: Literal["works", "refused", "local"] = "works"
    because: str = ""
    settings: dict = field(default_factory=dict)
    predictors: int | None = None

    def build(self, n_rows: int) -> pm.Model:
        with warnings.catch_warnings(), pm.Model() as model:
            warnings.simplefilter("ignore")  # what PyMC says about a model is not tested here
            self.write(Data.random(n_rows))
        return model


def ordered(name: str, start) -> TensorVariable:
    """Numbers that rise."""
    transform = pm.distributions.transforms.ordered
    return pm.Normal(name, start, 1.0, shape=len(start), initval=start, transform=transform)


def written(write: Callable[..., None], *arguments) -> pm.Model:
    """The model that a function writes."""
    with pm.Model() as model:
        write(*arguments)
    return model


SHAPES: dict[str, Shape] = {}


def shape(**expectation) -> Callable:
    """Register a function that writes a model; its docstring says what is special about it."""

    def register(write: Callable[[Data], None]) -> Callable[[Data], None]:
        name = write.__name__
        assert write.__doc__ and name not in SHAPES
        SHAPES[name] = Shape(name, write, **expectation)
        return write

    return register


def works(predictors: int, **settings) -> Callable:
    """Mark a shape that must be cut right; `settings` are those of `split_log_density`."""
    return shape(predictors=predictors, settings=settings)


def refused(because: str, **more) -> Callable:
    """Mark a shape whose rows depend on each other; `because` must be in the message."""
    return shape(expect="refused", because=because, **more)


def local(predictors: int) -> Callable:
    """Mark a shape that has variables with one entry per row."""
    return shape(expect="local", predictors=predictors)
