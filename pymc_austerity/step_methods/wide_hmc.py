"""Hamiltonian moves on all rows of wide models, about a normal distribution near the posterior."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import StepMethodState, dataclass_state
from pymc_austerity.control_variates import RowDensity
from pymc_austerity.errors import SettingError
from pymc_austerity.sequential import Decision, log_uniform
from pymc_austerity.setup.coordinates import Coordinates
from pymc_austerity.setup.earlier_run import EarlierRun, earlier_run
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.setup.wide import Reference, wide_reference
from pymc_austerity.step_methods.base import Phase, SubsamplingStep
from pymc_austerity.step_methods.request import Request
from pymc_austerity.step_methods.short_chains import Probe
from pymc_austerity.step_methods.statistics import of_decision
from pymc_austerity.step_methods.summary import Words
from pymc_austerity.time_limit import counted

_FEWEST_ACCEPTED, _TRIALS, _MOST_KICKS = 0.65, 8, 12
_AS_GOOD_AS = 1_600
"""Steps of short chains that would show no more."""


class Place(NamedTuple):
    """A point, and what is known of the posterior there.

    Attributes
    ----------
    point : float array, shape (d,)
    standard : float array, shape (d,)
        The point in standardized coordinates of the reference.
    log_density : float
        Log-posterior less that of the reference, nats.
    slope : float array, shape (d,)
        Gradient of the same, by standardized coordinates.
    """

    point: NDArray[np.float64]
    standard: NDArray[np.float64]
    log_density: float
    slope: NDArray[np.float64]


class SplitHamiltonian:
    r"""Trajectories that are exact where the posterior is the reference.

    In standardized coordinates :math:`u` the reference is :math:`N(0, I)`, and its part of the
    dynamics is a rotation of :math:`(u, p)`. Between L rotations by :math:`\pi / 2 L`, the gradient
    of what the reference leaves open changes the momentum. Trajectories are reversible and keep
    volume, so that the decision for the end point leaves the posterior invariant. Were nothing left
    open, the end point would be independent of the start.

    Parameters
    ----------
    posterior : RowDensity
        With all rows.
    reference : Reference
        A normal distribution near to it.
    n_kicks : int
        Rotations of a trajectory, L.

    References
    ----------
    Shahbaba, B., Lan, S., Johnson, W. O. and Neal, R. M. (2014). Split Hamiltonian Monte Carlo.
    Statistics and Computing 24, 339-349.

    Beskos, A., Pinski, F. J., Sanz-Serna, J. M. and Stuart, A. M. (2011). Hybrid Monte Carlo on
    Hilbert spaces. Stochastic Processes and their Applications 121(10), 2201-2230.
    """

    def __init__(self, posterior: RowDensity, reference: Reference, n_kicks: int) -> None:
        self.posterior, self.reference, self.n_kicks = posterior, reference, n_kicks

    def place(self, standard: NDArray[np.float64]) -> Place:
        """A point in standardized coordinates."""
        with np.errstate(all="ignore"):  # what is not finite is rejected
            point = self.reference.point(standard)
            value, gradient = self.posterior.gradient(point)
            log_density = value + 0.5 * float(standard.dot(standard))
            return Place(point, standard, log_density, self.reference.slope(gradient) + standard)

    def move(self, here: Place, rng: np.random.Generator) -> tuple[Place, float]:
        """The end of a trajectory, and the log of the Metropolis ratio."""
        end, log_ratio, _ = self.trajectory(here, rng.standard_normal(here.standard.size))
        return end, log_ratio

    def trajectory(
        self, here: Place, momentum: NDArray[np.float64]
    ) -> tuple[Place, float, NDArray[np.float64]]:
        """The same from a given momentum, and the momentum at the end."""
        angle = 0.5 * math.pi / self.n_kicks
        kick, (cosine, sine) = math.tan(0.5 * angle), (math.cos(angle), math.sin(angle))
        place, start = here, float(momentum.dot(momentum) + here.standard.dot(here.standard))
        for _ in range(self.n_kicks):
            momentum = momentum + kick * place.slope
            standard = cosine * place.standard + sine * momentum
            momentum = cosine * momentum - sine * place.standard
            place = self.place(standard)
            if not math.isfinite(place.log_density):
                return here, -math.inf, momentum
            momentum = momentum + kick * place.slope
        end = float(momentum.dot(momentum) + place.standard.dot(place.standard))
        return place, place.log_density - here.log_density - 0.5 * (end - start), momentum


@dataclass_state
class WideState(StepMethodState):
    """What changes while a chain runs."""

    phase: Phase


class WideHMC(SubsamplingStep, shown_as="AusterityMH"):
    """What `AusterityMH` is for wide models with sparse designs.

    Parameters
    ----------
    vars : sequence of variables
        Value variables.
    problem : Problem
        Of these, with a sparse design.
    model : pymc.Model
        The model.
    say : callable
        Shows the stage of set-up.
    rng : int or numpy.random.Generator, optional
        Source of draws outside ``pm.sample``.

    Attributes
    ----------
    tried : Probe
        What draws are expected to cost.

    Raises
    ------
    SettingError
        No normal distribution is near to the posterior, or other reasons.
    """

    name = "austerity_mh"
    _state_class = WideState
    learnt: EarlierRun | None

    def __init__(
        self, vars: Sequence, *, problem: Problem, request: Request, model: pm.Model, say: Say
    ) -> None:
        self.steps_per_draw = request.steps_per_draw
        self.learnt = earlier_run(request.resume, list(vars), list(vars), model)
        posterior, reference = wide_reference(problem, say)
        say("trying trajectories")
        self._moves, self._accepted, self.tried = _chosen(
            posterior, reference, problem.prepared.rng
        )
        self.coordinates = Coordinates(problem.start)
        self._begin(problem, blocked=True, rng=request.rng)
        self._describe(problem, structure=problem.structure)

    def reset_tuning(self) -> None:
        """Begin anew: nothing is learned."""
        self._place: Place | None = None
        self.tune = True

    def _start(self) -> NDArray:
        if self.learnt is None:
            standard = self.rng.standard_normal(self.coordinates.start.size)
        else:
            ends = self.learnt.own_last
            standard = self._moves.reference.standardized(ends[self.rng.integers(len(ends))])
        self._place = self._moves.place(standard)
        return self._point(self._place)

    def _row_free_part(self, point: NDArray) -> float:
        return self._place_of(point).log_density

    def _transition(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        place, moves = self._place_of(current), self._moves
        end, log_ratio = moves.move(place, self.rng)
        accept = log_uniform(self.rng) < log_ratio
        self._place = end if accept else place
        decision = Decision(accept, self.n_rows, 1, 0.0, math.nan, True)
        statistics = of_decision(decision, self.n_rows, scaling=moves.n_kicks, epsilon=math.nan)
        return self._point(self._place), statistics

    def _place_of(self, point: NDArray) -> Place:
        """The place of a point, which is known unless something else moved it."""
        if self._place is None or not np.array_equal(self._point(self._place), point):
            self._place = self._moves.place(self._moves.reference.standardized(point))
        return self._place

    def _point(self, place: Place) -> NDArray:
        return place.point.astype(self.coordinates.start.dtype)

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, as they are written to the attributes of ``sample_stats``."""
        return {
            **self._common_constants,
            "acceptance_rule": "metropolis",
            "epsilon": 0.0,
            "proposal": SplitHamiltonian.__name__,
            "proposal_rows": self._moves.n_kicks * self.n_rows,
        }

    @property
    def _words(self) -> Words:
        n_kicks, size = self._moves.n_kicks, self._moves.reference.mean.size
        return Words(
            f"Hamiltonian moves about a normal distribution of {size:,} dimensions; every decision "
            "uses all rows.",
            f"gradients of all {self.n_rows:,} rows, {n_kicks} for each draw",
            (
                f"Nearly independent proposals, of which {self._accepted:.0%} were accepted in a "
                f"trial; the factor of the precision takes {8e-9 * size**2:.2g} GB.",
            ),
        )


def _chosen(
    posterior: RowDensity, reference: Reference, rng: np.random.Generator
) -> tuple[SplitHamiltonian, float, Probe]:
    """As few rotations as are accepted often enough, how often that is, and what draws cost."""
    moves = SplitHamiltonian(posterior, reference, 1)
    place = moves.place(rng.standard_normal(reference.mean.size))
    while moves.n_kicks < _MOST_KICKS:
        moves = SplitHamiltonian(posterior, reference, moves.n_kicks + 1)
        accepted, began = 0.0, counted()
        for _ in range(_TRIALS):
            end, log_ratio = moves.move(place, rng)
            accepted += math.exp(min(log_ratio, 0.0)) / _TRIALS
            place = end if log_uniform(rng) < log_ratio else place
        if accepted > _FEWEST_ACCEPTED:
            share = accepted / (2.0 - accepted)  # of independent proposals
            per_move = (counted() - began) / _TRIALS
            return moves, accepted, Probe("", per_move / share, share, 1.0, _AS_GOOD_AS)
    raise SettingError("no normal distribution is near to the posterior")
