"""Langevin moves: steps up the gradient of a mini-batch, plus noise (SGLD without a test)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from pymc_austerity.arguments import (
    checked_count,
    checked_positive,
    checked_schedule,
    checked_target_acceptance,
    unless_auto,
)
from pymc_austerity.errors import SettingError, warn_user
from pymc_austerity.proposals.adaptation import ScaleSearch
from pymc_austerity.proposals.protocols import (
    ConnectedProposal,
    GaussianApproximation,
    Gradients,
    Layout,
    Outcome,
    checked_covariance,
    fitting_root,
)

StepSizeSchedule = Callable[[int], float]
"""Maps the number of a step of the chain, counted from 0, to the step size."""

_ACCEPTANCE = {"metropolis": 0.574, "barker": 0.347, "poisson": 0.574}
"""Most efficient acceptance rates of long chains in many dimensions: see `LangevinProposal`."""

_STRONG_PULL, _LONG_PULL = 10, 100
"""A chain near its posterior does not move ten times as far along the gradient as by noise for a
hundred steps in a row, even with the noise of mini-batches."""

_OPTIMAL_STEP = 1.65**2
"""Step size for a standard normal target, times d**(1/3): Roberts and Rosenthal (1998)."""


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """A covariance matrix M, stored as its square root: ``root root' = M``.

    Attributes
    ----------
    root : float array, shape (d,) or (d, d)
        Standard deviations, or a lower triangular matrix.
    """

    root: NDArray[np.float64]

    @cached_property
    def _inverse_root(self) -> NDArray[np.float64]:
        if self.root.ndim == 1:
            return 1.0 / self.root
        return solve_triangular(self.root, np.eye(len(self.root)), lower=True)

    def times(self, gradient: NDArray) -> NDArray[np.float64]:
        """``M gradient``."""
        return self.spread(_product(self.root.T, gradient))

    def spread(self, standard: NDArray) -> NDArray[np.float64]:
        """``root standard``: noise with covariance M from standard normal noise."""
        return _product(self.root, standard)

    def squared_length(self, difference: NDArray) -> float:
        """``difference' M^-1 difference``."""
        standard = _product(self._inverse_root, difference)
        return float(standard.dot(standard))


def _product(matrix: NDArray, vector: NDArray) -> NDArray[np.float64]:
    return matrix * vector if matrix.ndim == 1 else matrix.dot(vector)


def _checked_size(name: str, value: Any) -> float:
    return checked_positive(name, value, "a step size")


class LangevinState(NamedTuple):
    """State of a chain of Langevin moves.

    Attributes
    ----------
    preconditioner : Preconditioner
        M.
    search : ScaleSearch
        Search for the step size that gives the target acceptance rate.
    n_steps : int
        Proposals so far.
    n_pulled : int
        Number of latest successive proposals that moved much farther by gradient than by noise.
    """

    preconditioner: Preconditioner
    search: ScaleSearch
    n_steps: int = 0
    n_pulled: int = 0


@dataclass(frozen=True, eq=False)
class LangevinProposal(ConnectedProposal):
    r"""Steps along the gradient of a mini-batch of rows, with noise.

    .. math::
        \theta' \sim N(\theta + \tfrac h2 M \, g(\theta), \; h M), \qquad
        g(\theta) = \nabla \log \rho(\theta)
        + \frac Nn \sum_{i \in X_n} \nabla \log p(x_i | \theta)

    The mini-batch :math:`X_n` is drawn anew for every step, independently of :math:`\theta`, and
    the reverse move is evaluated with the same one. Each :math:`X_n` then gives a valid proposal,
    and so does their mixture: the decision makes the posterior the target at any step size.
    With control variates

    .. math::
        g(\theta) = \nabla \log \rho(\theta) + G + H (\theta - \theta^*)
        + \frac Nn \sum_{i \in X_n} [\nabla \log p(x_i | \theta) - g_i - H_i (\theta - \theta^*)]

    whose error falls with the distance from the anchor :math:`\theta^*`.

    With ``AusterityMH(test=None)`` every proposal is accepted: this is stochastic gradient Langevin
    dynamics, whose error is of the order of the step size. With ``batch_size="all"`` it is the
    Metropolis-adjusted Langevin algorithm (MALA), which reads all rows.

    Parameters
    ----------
    step_size : float, callable or "auto"
        :math:`h`, in units of M, at the start of the tuning phase, which tunes it to the target
        acceptance rate. A function from the number of the step, counted from 0, to a step size is
        used as it is, and so is a number with ``test=None``, where one of the two is required.
        "auto" is :math:`1.65^2 d^{-1/3}`, over the number of rows if there is no preconditioner.
    batch_size : int or "all"
        Number of rows for the gradient, n.
    control_variates : {"auto", True, False}
        Whether the gradient has control variates. "auto" follows the decisions of the step method;
        the order is always that of the decisions.
    preconditioner : {"auto", None} or array, shape (d,) or (d, d)
        M, in unconstrained space: variances, or a covariance. "auto" is the covariance of the
        normal approximation at the anchor if there is one, else the identity; None is the identity.
    target_acceptance : float or "auto"
        Acceptance rate to which the step size is tuned; "auto" is 0.574, or 0.347 if the decisions
        are Barker's.

    Raises
    ------
    SettingError, SettingTypeError
        A setting cannot be used; or, when the proposal is given to a step method, the variables are
        not continuous, the log-density has no gradient, control variates are requested but there is
        no anchor, or there is no step size for an uncorrected chain.

    Notes
    -----
    The rows of the gradient are evaluated at two points, as those of a decision are (at one point
    without a test). They are not part of ``n_rows_used``; the constant ``proposal_rows`` in the
    attributes of ``sample_stats`` is their number in every step. A proposal whose gradient is not
    finite is rejected. Without a test, a chain whose steps are too large can diverge; a
    warning reports this.

    References
    ----------
    Welling, M. and Teh, Y. W. (2011). Bayesian learning via stochastic gradient Langevin dynamics.
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land, section 6.4.
    Roberts, G. O. and Rosenthal, J. S. (1998). Optimal scaling of discrete approximations to
    Langevin diffusions. JRSS B 60(1), 255-268: step size and acceptance rate.
    Baker, J., Fearnhead, P., Fox, E. B. and Nemeth, C. (2019). Control variates for stochastic
    gradient MCMC. Statistics and Computing 29, 599-615.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity import AusterityMH, LangevinProposal
    >>> y = np.random.default_rng(1).normal(2.0, 1.0, size=5_000)
    >>> with pm.Model():
    ...     mu = pm.Normal("mu", 0.0, 10.0)
    ...     _ = pm.Normal("y", mu, 1.0, observed=y)
    ...     step = AusterityMH(proposal=LangevinProposal(batch_size=100))
    ...     idata = pm.sample(
    ...         draws=500, step=step, chains=2, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> bool(abs(idata.posterior["mu"].mean() - y.mean()) < 0.01)
    True
    """

    step_size: float | StepSizeSchedule | Literal["auto"] = "auto"
    batch_size: int | Literal["all"] = 500
    control_variates: Literal["auto"] | bool = "auto"
    preconditioner: Literal["auto"] | ArrayLike | None = "auto"
    target_acceptance: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        size = unless_auto("step_size", self.step_size)
        if size is not None:
            checked_schedule("step_size", size, _checked_size, of="step", what="a step size")
        if not _is("all", self.batch_size):
            rows = "'all' or a number of rows for the gradient"
            checked_count("batch_size", self.batch_size, what=rows)
        if not (_is("auto", self.control_variates) or isinstance(self.control_variates, bool)):
            raise SettingError(
                f"control_variates={self.control_variates!r} is not a choice for a gradient: use "
                "'auto', True or False."
            )
        if self.preconditioner is not None and not _is("auto", self.preconditioner):
            matrix = checked_covariance("preconditioner", self.preconditioner, "'auto', None")
            object.__setattr__(self, "preconditioner", matrix)
        if self.control_variates is True and _is("all", self.batch_size):
            raise SettingError(
                "control_variates=True has no effect when the gradient uses all rows "
                "(batch_size='all'): leave one of them out."
            )
        if checked_target_acceptance(self.target_acceptance) and callable(size):
            raise SettingError(
                "target_acceptance has no effect on a step_size that is a function, which is not "
                "tuned: leave one of them out."
            )

    # ------------------------------------------------------------------ in a step method

    def with_gradients(self, gradients: Gradients) -> "LangevinProposal":
        """A proposal with the same settings, for the gradients and decisions of a step method."""
        if gradients.decisions == "none" and _is("auto", self.step_size):
            raise SettingError(
                "With test=None the step size cannot be tuned: give step_size=, a number or a "
                "function from the number of the step."
            )
        if gradients.decisions == "none" and not _is("auto", self.target_acceptance):
            raise SettingError(
                "target_acceptance has no effect with test=None, which accepts every proposal: "
                "leave one of them out."
            )
        return self.connected(gradients)

    @property
    def gradients(self) -> Gradients:
        """The gradients that the step method provided."""
        return self.provided

    @property
    def n_rows_read(self) -> int:
        """Number of rows for the gradient of every step."""
        return self.gradients.batch_size

    @property
    def _aim(self) -> float | None:
        """Acceptance rate to tune to; None if nothing is tuned."""
        decisions = self.gradients.decisions
        if decisions == "none" or callable(self.step_size):
            return None
        return checked_target_acceptance(self.target_acceptance) or _ACCEPTANCE[decisions]

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> LangevinState:
        """Initial preconditioner and step size of a chain."""
        n_rows, size = self.gradients.n_rows, unless_auto("step_size", self.step_size)
        matrix = self._preconditioner(layout.n_entries, approximation)
        if callable(size):
            size = size(0)
        if size is None:
            size = _OPTIMAL_STEP / math.cbrt(layout.n_entries)
            size /= n_rows if matrix is None else 1
        return LangevinState(
            matrix or Preconditioner(np.ones(layout.n_entries)), ScaleSearch.begin(float(size))
        )

    def _preconditioner(
        self, n_entries: int, approximation: GaussianApproximation | None
    ) -> Preconditioner | None:
        if self.preconditioner is None:
            return None
        if _is("auto", self.preconditioner):
            return None if approximation is None else Preconditioner(approximation.root)
        return Preconditioner(fitting_root("preconditioner", self.preconditioner, n_entries))

    # ------------------------------------------------------------------ a step

    def propose(
        self, state: LangevinState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, LangevinState]:
        """New point, log-ratio (-inf where a gradient is not finite), and new state.

        Without a test, the reverse move is not evaluated, and the log-ratio is 0.
        """
        state = self._next_step(state)
        size, matrix = state.search.scale, state.preconditioner
        gradient = self.gradients.draw(rng)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is rejected
            ahead = point + 0.5 * size * matrix.times(gradient(point))
            noise = matrix.spread(rng.standard_normal(point.size))
            new = (ahead + math.sqrt(size) * noise).astype(point.dtype, copy=False)
            if self.gradients.decisions == "none":
                state = _watched(state, matrix.squared_length(ahead - point) / (size * point.size))
            if not np.isfinite(new).all():
                return point, -math.inf, state
            if self.gradients.decisions == "none":
                return new, 0.0, state
            back = new + 0.5 * size * matrix.times(gradient(new))
            forth = matrix.squared_length(new - ahead)
            log_ratio = (forth - matrix.squared_length(point - back)) / (2.0 * size)
        return new, log_ratio if math.isfinite(log_ratio) else -math.inf, state

    def _next_step(self, state: LangevinState) -> LangevinState:
        number, search = state.n_steps, state.search
        if callable(self.step_size):
            size = _checked_size(f"step_size({number})", self.step_size(number))
            search = ScaleSearch.begin(size)
        return state._replace(search=search, n_steps=number + 1)

    def tune(self, state: LangevinState, outcome: Outcome) -> LangevinState:
        """One Robbins-Monro step on the step size, unless there is a schedule or no test."""
        aim = self._aim
        if aim is None:
            return state
        return state._replace(search=state.search.step(outcome.accepted, aim))

    def freeze(self, state: LangevinState) -> LangevinState:
        """The average step size of the tuning phase."""
        return state._replace(search=state.search.end())

    def current_scaling(self, state: LangevinState) -> float:
        """Step size."""
        return state.search.scale


def _watched(state: LangevinState, pull: float) -> LangevinState:
    """Warn of a chain without a test whose steps are too long for the posterior.

    `pull` is the squared length of the move along the gradient over that of the noise.
    """
    n_pulled = 0 if pull < _STRONG_PULL**2 else state.n_pulled + 1  # NaN is strong
    if n_pulled == _LONG_PULL:
        warn_user(
            "LangevinProposal with test=None diverges or is far from the posterior: in "
            f"{_LONG_PULL} steps in a row the gradient moved the chain over {_STRONG_PULL} times "
            "as far as the noise did, or to a point that is not finite; choose a step_size smaller "
            f"than {state.search.scale:.3g}, or discard more draws."
        )
    return state._replace(n_pulled=n_pulled)


def _is(word: str, value: Any) -> bool:
    return isinstance(value, str) and value == word
