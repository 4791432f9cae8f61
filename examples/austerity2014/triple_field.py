"""A field of binary variables with a potential for each triple, and a fast exact sampler of it."""

from dataclasses import dataclass
from itertools import combinations

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class TripleField:
    """Log-potentials of all triples of variables.

    Attributes
    ----------
    triples : int array, shape (n, 3)
        Variables of each potential.
    table : float array, shape (n, 8)
        Log-potential at (0, 0, 0), (0, 0, 1), ..., (1, 1, 1).
    """

    triples: Integers
    table: Floats

    @classmethod
    def draw(cls, n_variables: int, spread: float, rng: np.random.Generator) -> "TripleField":
        """Normal log-potentials of standard deviation `spread`."""
        triples = np.array(list(combinations(range(n_variables), 3)))
        return cls(triples, rng.normal(0.0, spread, size=(len(triples), 8)))

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.triples.max()) + 1

    def model(self) -> pm.Model:
        """The field in PyMC."""
        i, j, k = self.triples.T
        numbers = np.arange(len(self.triples))
        with pm.Model() as model:
            x = pm.Bernoulli("x", 0.5, shape=self.n_variables)
            state = 4 * x[i] + 2 * x[j] + x[k]
            pm.Potential("potentials", pt.constant(self.table)[numbers, state])
        return model

    def coefficients(self) -> tuple[Floats, Floats, Floats]:
        """The log-density as a polynomial: its coefficients, symmetric in their axes."""
        d = self.n_variables
        one, two, three = np.zeros(d), np.zeros((d, d)), np.zeros((d, d, d))
        t = self.table.reshape(-1, 2, 2, 2)
        i, j, k = self.triples.T
        for (a, b, c), values in _rotations(i, j, k, t):
            np.add.at(one, a, values[:, 1, 0, 0] - values[:, 0, 0, 0])
            slope = values[:, 1] - values[:, 0]  # of the first variable, by the other two
            np.add.at(two, (a, b), slope[:, 1, 0] - slope[:, 0, 0])
            np.add.at(two, (a, c), slope[:, 0, 1] - slope[:, 0, 0])
            mixed = slope[:, 1, 1] - slope[:, 1, 0] - slope[:, 0, 1] + slope[:, 0, 0]
            np.add.at(three, (a, b, c), mixed)
            np.add.at(three, (a, c, b), mixed)
        return one, two, three

    def sample(self, n_draws: int, rng: np.random.Generator, *, burn_in: int = 200) -> NDArray:
        """Draws of exact Gibbs sampling, a sweep each, int8, shape (n_draws, variables).

        Conditional probabilities come from the polynomial instead of the potentials.
        """
        state = rng.integers(0, 2, size=self.n_variables)
        draws = np.empty((n_draws, state.size), dtype=np.int8)
        coefficients = self.coefficients()
        _sweeps(state, *coefficients, np.empty((burn_in, state.size), dtype=np.int8), rng)
        _sweeps(state, *coefficients, draws, rng)
        return draws


def _rotations(
    i: Integers, j: Integers, k: Integers, t: Floats
) -> list[tuple[tuple[Integers, Integers, Integers], Floats]]:
    """Potentials with each of their variables first."""
    return [
        ((i, j, k), t),
        ((j, i, k), t.transpose(0, 2, 1, 3)),
        ((k, i, j), t.transpose(0, 3, 1, 2)),
    ]


@numba.njit
def log_odds(state, one, two, three, variable):  # type: ignore[no-untyped-def]
    """Log-odds of a variable given the others, nats."""
    ones = np.flatnonzero(state)
    total = one[variable]
    for b in ones:
        if b != variable:
            total += two[variable, b]
            row = three[variable, b]
            for c in ones:
                if c < b:
                    total += row[c]
    return total


@numba.njit
def _sweeps(state, one, two, three, draws, rng):  # type: ignore[no-untyped-def]
    for draw in range(len(draws)):
        for variable in range(state.size):
            u = rng.random()
            here = log_odds(state, one, two, three, variable)
            state[variable] = 1 if np.log(u / (1.0 - u)) < here else 0
            draws[draw, variable] = state[variable]
