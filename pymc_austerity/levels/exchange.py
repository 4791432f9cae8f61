"""Moves along which no predictor changes, so that only priors decide."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import csr_array

from pymc_austerity.levels.moves import Moved
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.proposals.adaptation import ScaleSearch

_STEPS, _SHARE_ACCEPTED, _MOST_TERMS = 5, 0.4, 200_000
"""Steps of a move, the share of them to accept, and terms that all flows of a move may have."""

_SCALE, _FARTHEST = 2.0, 0.5
"""Size of steps at the beginning, and the largest one, in which fields change by half of what they
are."""

_PER_UNIT = 64
"""Runge-Kutta steps of a flow whose fields change by as much as they are: 1e-10 of error."""


_quiet = np.errstate(over="ignore", invalid="ignore")
"""Where a flow leads out of all bounds, the proposal is rejected."""


class Field(NamedTuple):
    r"""Vector fields :math:`\xi_k`, each a constant and a sum of multiples of entries.

    .. math:: \xi_{k,i}(\theta) = c_{k,i} + \sum_{m: i_m = i} w_{k,m} \phi_m(\theta_{j_m}),
        \qquad \phi_m(x) \in \{x, e^x\}

    Attributes
    ----------
    constant : float array or sparse array, shape (k, d)
    weights : float array, shape (k, m)
    changed, by : int arrays, shape (m,)
        The entries i and j of each term.
    exponential : bool array, shape (m,)
    """

    constant: NDArray[np.float64] | csr_array
    weights: NDArray[np.float64]
    changed: NDArray[np.int64]
    by: NDArray[np.int64]
    exponential: NDArray[np.bool_]

    @classmethod
    def of(cls, directions: NDArray[np.float64] | csr_array) -> "Field":
        """Constant fields."""
        none = np.empty(0, dtype=np.int64)
        weights = np.empty((directions.shape[0], 0))
        return cls(directions, weights, none, none, np.empty(0, dtype=np.bool_))

    @classmethod
    def joined(cls, fields: Sequence["Field"]) -> "Field":
        """All of them."""
        return cls(
            np.concatenate([field.constant for field in fields]),
            block_diag(*(field.weights for field in fields)),
            np.concatenate([field.changed for field in fields]),
            np.concatenate([field.by for field in fields]),
            np.concatenate([field.exponential for field in fields]),
        )

    @property
    def n_directions(self) -> int:
        """Number of fields, k."""
        return len(self.weights)

    def at(
        self, amounts: NDArray[np.float64], theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """A sum of the fields at a point, and its divergence."""
        weights, values = amounts @ self.weights, theta[self.by]
        values[self.exponential] = np.exp(values[self.exponential])
        slopes = np.where(self.exponential, values, 1.0)
        field = amounts @ self.constant
        field += np.bincount(self.changed, weights * values, theta.size)
        return field, float(weights @ np.where(self.changed == self.by, slopes, 0.0))

    @_quiet
    def flow(
        self, amounts: NDArray[np.float64], theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """Follow a sum of the fields for a unit of time; the point, and the log of the Jacobian."""
        if not self.changed.size:
            return theta + amounts @ self.constant, 0.0
        n_steps = 2 + math.ceil(_PER_UNIT * float(abs(amounts) @ abs(self.weights).max(axis=1)))
        amounts, volume = amounts / n_steps, 0.0
        for _ in range(n_steps):
            first, one = self.at(amounts, theta)
            second, two = self.at(amounts, theta + 0.5 * first)
            third, three = self.at(amounts, theta + 0.5 * second)
            last, four = self.at(amounts, theta + third)
            theta = theta + (first + 2.0 * (second + third) + last) / 6.0
            volume += (one + 2.0 * (two + three) + four) / 6.0
        return theta, volume

    def combined(self, amounts: NDArray[np.float64]) -> "Field":
        """Other fields, each a sum of these; `amounts` has shape (k', k)."""
        return self._replace(constant=amounts @ self.constant, weights=amounts @ self.weights)


@dataclass(frozen=True, eq=False)
class Exchange:
    """Moves along the flows of vector fields that change no predictor.

    Constant ones raise some entries while others fall, as an intercept and all levels. Others
    stretch some entries while their multipliers shrink, as abilities and discriminations.

    Attributes
    ----------
    fields : Field
        In units of the spread that the priors allow at the anchor.
    """

    fields: Field

    def begin(self) -> ScaleSearch:
        """The search for a scale: flows are not followed so far that they take long."""
        most = abs(self.fields.weights).max(initial=0.0)
        return ScaleSearch.begin(_SCALE, _FARTHEST / most if most else math.inf)

    def move(
        self,
        posterior: GroupedPosterior,
        theta: NDArray[np.float64],
        search: ScaleSearch,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[Moved, ScaleSearch]:
        """A few steps of a random walk, decided by the priors alone, without reading rows.

        Back along a flow leads the same amounts with the other sign, which are as likely.
        """
        k, n_accepted = self.fields.n_directions, 0
        n_steps = min(max(_MOST_TERMS // max(self.fields.by.size, 1), 1), _STEPS)
        for _ in range(n_steps):
            amounts = search.scale / math.sqrt(k) * rng.standard_normal(k)
            proposed, volume = self.fields.flow(amounts, theta)
            log_ratio = posterior.row_free_part(proposed, theta) + volume
            accept = -rng.standard_exponential() < log_ratio
            theta = proposed if accept else theta
            n_accepted += accept
            search = search.step(accept, _SHARE_ACCEPTED) if tuning else search
        return Moved(theta, n_accepted / n_steps, 0), search
