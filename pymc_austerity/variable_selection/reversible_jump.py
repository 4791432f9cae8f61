"""Moves that add a coefficient to a model, drop one, or change one."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.arguments import checked_positive, checked_rate
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals.adaptation import ScaleSearch
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.protocols import Outcome
from pymc_austerity.variable_selection.births import Births
from pymc_austerity.variable_selection.selection import find_selection

__all__ = ["ReversibleJumpProposal", "ReversibleJumpState"]

_LONG_ENOUGH = 30


class ReversibleJumpState(NamedTuple):
    """State of the moves.

    Attributes
    ----------
    coefficients, inclusion : slice
        Their positions in the point.
    others : int array
        Other entries of the point, which update moves change too.
    searches : tuple of ScaleSearch
        Standard deviation of the update moves of each coefficient, then of the others.
    births : Births
        Distributions of new coefficients.
    updated : int
        Position in `searches` of the last update move; -1 after another move.
    scale : float
        Standard deviation of the latest update move.
    """

    coefficients: slice
    inclusion: slice
    others: NDArray[np.int64]
    searches: tuple[ScaleSearch, ...]
    births: Births
    updated: int
    scale: float


@dataclass(frozen=True)
class ReversibleJumpProposal:
    r"""Update, birth and death moves on coefficients that can be out of the model.

    With probability `jump_share`, the move is a birth or a death, otherwise an update. Half of the
    jumps are births; all of them if no coefficient is in the model, and none if all are.

    - A birth draws one of the coefficients that are out, and its value from a mixture of a wide
      and a narrow normal distribution, with density :math:`g_j`.
    - A death sets one of the coefficients that are in to zero.
    - An update adds a normal step to one of the coefficients that are in, or to an entry of the
      other variables of the step method.

    With :math:`k` of :math:`n` coefficients in the model, the log-ratio of a birth is

    .. math:: \log \frac{p_d(k + 1) / (k + 1)}{p_b(k) \, g_j(\beta_j) / (n - k)}

    and that of the death that undoes it is its negative; an update is symmetric. The Jacobian is 1.
    During tuning, the step of each coefficient is adapted to the usual acceptance rate in
    one dimension, and the narrow normal distribution of its births is learned.

    Parameters
    ----------
    coefficients : str
        Name of the variable with the coefficients, which are zero if not in the model: a
        `SpikeAndSlab`, or another distribution with this support.
    inclusion : str
        Name of the variable of the same shape that is 1 for coefficients in the model and 0 for
        the others: `InclusionIndicators` or ``pm.Bernoulli``.
    scaling : float
        Initial standard deviation of the update moves, in units of the coefficients.
    birth_scale : float
        Standard deviation of the wide normal distribution of new coefficients, about 0; all of
        them are drawn from it until something has been learned.
    jump_share : float
        Share of births and deaths, in (0, 1).
    target_acceptance : float
        Acceptance rate to which the update moves are tuned.

    Raises
    ------
    SettingError
        A setting cannot be used.

    References
    ----------
    Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model
    determination. Biometrika 82(4), 711-732.
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land, section 6.3.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.proposals import Block, Layout
    >>> from pymc_austerity.variable_selection import ReversibleJumpProposal
    >>> layout = Layout(np.array([0, 0, 2, 2]), (Block("beta", (2,), 0), Block("gamma", (2,), 2)))
    >>> jump = ReversibleJumpProposal("beta", "gamma", jump_share=0.9)
    >>> point, log_ratio, state = jump.propose(
    ...     jump.init(layout), np.array([0.0, 3.0, 0.0, 1.0]), np.random.default_rng(2)
    ... )
    >>> point.round(2), round(log_ratio, 2)
    (array([-0.52,  3.  ,  1.  ,  1.  ]), 1.06)
    """

    coefficients: str
    inclusion: str
    scaling: float = 0.1
    birth_scale: float = 1.0
    jump_share: float = 0.5
    target_acceptance: float = 0.44

    unconstrained: ClassVar[bool] = False
    """No normal approximation fits the coordinates in which this proposal moves."""

    def __post_init__(self) -> None:
        for name in ("coefficients", "inclusion"):
            if not isinstance(getattr(self, name), str):
                raise SettingTypeError(
                    f"{name}={getattr(self, name)!r} is not a name: give that of a variable of the "
                    "model, as in ReversibleJumpProposal('beta', 'gamma')."
                )
        if self.coefficients == self.inclusion:
            raise SettingError(
                f"{self.inclusion!r} cannot be both the coefficients and their indicators: name "
                "two variables."
            )
        for name in ("scaling", "birth_scale"):
            checked_positive(name, getattr(self, name), "a size")
        for name in ("jump_share", "target_acceptance"):
            checked_rate(name, getattr(self, name), "a share of the moves")

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> ReversibleJumpState:
        """Initial state, with the positions of coefficients and indicators."""
        coefficients, inclusion, others = find_selection(layout, self.coefficients, self.inclusion)
        n_coefficients = coefficients.stop - coefficients.start
        return ReversibleJumpState(
            coefficients,
            inclusion,
            others,
            (ScaleSearch.begin(self.scaling),) * (n_coefficients + others.size),
            Births.begin(n_coefficients, self.birth_scale),
            updated=-1,
            scale=self.scaling,
        )

    def propose(
        self, state: ReversibleJumpState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, ReversibleJumpState]:
        """New point, the log-ratio, and which entry was updated."""
        included = point[state.inclusion] > 0.5
        inside, outside = np.flatnonzero(included), np.flatnonzero(~included)
        birth, death = self._jumps(state, inside.size)
        uniform = rng.random()
        new = point.copy()
        state = state._replace(updated=-1)
        if uniform < birth:
            j = int(outside[rng.integers(outside.size)])
            _place(state, new, j, 1, state.births.draw(j, rng))
            return new, self._log_birth_ratio(state, new, inside.size, j), state
        if uniform < birth + death:
            j = int(inside[rng.integers(inside.size)])
            _place(state, new, j, 0, 0.0)
            return new, -self._log_birth_ratio(state, point, inside.size - 1, j), state
        return new, 0.0, _update(state, new, inside, rng)

    def _jumps(self, state: ReversibleJumpState, n_inside: int) -> tuple[float, float]:
        """Probabilities of a birth and of a death."""
        if n_inside == 0:
            return (self.jump_share if state.others.size else 1.0), 0.0
        if n_inside == state.births.means.size:
            return 0.0, self.jump_share
        return self.jump_share / 2, self.jump_share / 2

    def _log_birth_ratio(
        self, state: ReversibleJumpState, larger: NDArray, n_before: int, j: int
    ) -> float:
        birth, _ = self._jumps(state, n_before)
        _, death = self._jumps(state, n_before + 1)
        n_outside = state.births.means.size - n_before
        log_density = state.births.log_density(j, float(larger[state.coefficients][j]))
        log_forth = math.log(birth / n_outside) + log_density
        return math.log(death / (n_before + 1)) - log_forth

    def disperse(
        self, layout: Layout, point: NDArray, radius: float, rng: np.random.Generator
    ) -> NDArray:
        """Start of a chain: indicators changed at random, real entries moved within `radius`."""
        state = self.init(layout)
        moved = point + rng.uniform(-radius, radius, size=point.size)
        flipped = rng.random(state.births.means.size) < radius / 4.0
        included = (point[state.inclusion] > 0.5) ^ flipped
        moved[state.inclusion] = included
        moved[state.coefficients] *= included
        return moved

    def tune(self, state: ReversibleJumpState, outcome: Outcome) -> ReversibleJumpState:
        """Learn the step of the coefficient that was updated, and moments of the coefficients."""
        updated, searches, usual_step = state.updated, state.searches, None
        if updated >= 0:
            search = searches[updated].step(outcome.accepted, self.target_acceptance)
            searches = (*searches[:updated], search, *searches[updated + 1 :])
            if updated < state.births.means.size and search.n_steps >= _LONG_ENOUGH:
                usual_step = search.scale
        inside = np.flatnonzero(outcome.following[state.inclusion] > 0.5)
        values = outcome.following[state.coefficients][inside]
        births = state.births.learn(inside, values, usual_step)
        return state._replace(searches=searches, births=births)

    def freeze(self, state: ReversibleJumpState) -> ReversibleJumpState:
        """Average steps, and no more learning; the usual step if too little was learned."""
        coefficients = state.searches[: state.births.means.size]
        learnt = [x.mean_log_scale for x in coefficients if x.n_steps >= _LONG_ENOUGH]
        usual_step = math.exp(float(np.median(learnt))) if learnt else self.scaling
        searches = tuple(
            search.end() if search.n_steps >= _LONG_ENOUGH else ScaleSearch.begin(usual_step)
            for search in state.searches
        )
        births = replace(state.births, usual_step=usual_step if learnt else 0.0)
        return state._replace(searches=searches, births=births)

    def current_scaling(self, state: ReversibleJumpState) -> float:
        """Standard deviation of the latest update move."""
        return state.scale


def _place(state: ReversibleJumpState, point: NDArray, j: int, included: int, value: float) -> None:
    point[state.inclusion.start + j] = included
    point[state.coefficients.start + j] = value


def _update(
    state: ReversibleJumpState, point: NDArray, inside: NDArray, rng: np.random.Generator
) -> ReversibleJumpState:
    """Move one of the entries that can be moved, in place, and record it in the state."""
    chosen = int(rng.integers(inside.size + state.others.size))
    if chosen < inside.size:
        updated = int(inside[chosen])
        entry = state.coefficients.start + updated
    else:
        other = chosen - inside.size
        updated = state.births.means.size + other
        entry = int(state.others[other])
    scale = state.searches[updated].scale
    point[entry] += scale * rng.standard_normal()
    return state._replace(updated=updated, scale=scale)
