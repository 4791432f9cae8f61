"""The contract of a proposal; what a proposal is given; a user's function as a proposal."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals.adaptation import covariance_estimate

State = TypeVar("State")
_METHODS = ("init", "propose", "tune", "freeze", "current_scaling")
_WANTED = (
    "it takes (point, rng) and returns (new point, log-ratio), an array of the shape of the point "
    "and a number of nats"
)


@dataclass(frozen=True)
class Block:
    """The entries of one variable in a raveled point.

    Attributes
    ----------
    name : str
        Name of the variable, in unconstrained space.
    shape : tuple of int
        Shape of its value.
    first : int
        Position of its first entry in the point.
    orthonormal : bool
        Whether it is known to be a matrix with orthonormal columns, or an array of such matrices.
    """

    name: str
    shape: tuple[int, ...]
    first: int
    orthonormal: bool = False

    @property
    def entries(self) -> slice:
        """Positions of the entries of the variable in the point."""
        return slice(self.first, self.first + math.prod(self.shape))


@dataclass(frozen=True, eq=False)
class Layout:
    """The kinds of the entries of a raveled point.

    Attributes
    ----------
    n_categories : int array, shape (d,)
        0 for a real number, 1 for an integer without bounds, ``k >= 2`` for one of the categories
        ``0, ..., k - 1`` (2: binary).
    blocks : tuple of Block
        The variables, in the order of their entries; empty where they do not matter.

    Examples
    --------
    >>> Layout.continuous(3).n_entries
    3
    """

    n_categories: NDArray[np.int64]
    blocks: tuple[Block, ...] = ()

    @classmethod
    def continuous(cls, n_entries: int) -> "Layout":
        """Layout of real numbers only."""
        return cls(np.zeros(n_entries, dtype=np.int64))

    @property
    def n_entries(self) -> int:
        """Length of a point."""
        return int(self.n_categories.size)

    @property
    def is_continuous(self) -> bool:
        """Whether all entries are real numbers."""
        return not self.n_categories.any()


def checked_covariance(name: str, value: Any, words: str) -> NDArray[np.float64]:
    """Check positive variances or a positive definite matrix, or raise an error.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : array_like, shape (d,) or (d, d)
        What the user gave.
    words : str
        What else may be given, for the message.
    """
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SettingTypeError(
            f"{name} of type {type(value).__name__} cannot be used: give {words}, variances of "
            "shape (d,) or a covariance of shape (d, d)."
        ) from error
    if not _is_covariance(array):
        raise SettingError(
            f"{name} of shape {array.shape} is not a covariance: give positive variances of shape "
            "(d,) or a symmetric positive definite array of shape (d, d)."
        )
    return array


def _is_covariance(array: NDArray[np.float64]) -> bool:
    if not np.isfinite(array).all():
        return False
    if array.ndim == 1:
        return bool((array > 0.0).all())
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        return False
    symmetric = np.allclose(array, array.T, atol=0.0)
    return symmetric and bool(np.linalg.eigvalsh(array)[0] > 0.0)


def root_of(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations, shape (d,), or a lower triangular square root, shape (d, d)."""
    root = np.sqrt(covariance) if covariance.ndim == 1 else np.linalg.cholesky(covariance)
    return np.asarray(root, dtype=np.float64)


def fitting_root(name: str, covariance: Any, n_entries: int) -> NDArray[np.float64]:
    """`root_of` a covariance that was checked, of so many entries."""
    matrix = np.asarray(covariance)
    if matrix.shape[0] != n_entries:
        raise SettingError(
            f"{name} of shape {matrix.shape} does not fit: the variables of this step method have "
            f"{n_entries} entries in unconstrained space; give one variance or one row and column "
            "for each."
        )
    return root_of(matrix)


@dataclass(frozen=True, eq=False)
class GaussianApproximation:
    """Normal distribution N(mean, root root').

    Attributes
    ----------
    mean : float array, shape (d,)
        Center, in unconstrained space.
    root : float array, shape (d, d)
        Lower Cholesky factor of the covariance.
    """

    mean: NDArray[np.float64]
    root: NDArray[np.float64]

    @classmethod
    def of_points(cls, points: NDArray) -> "GaussianApproximation | None":
        """Distribution with the moments of a chain's draws, shape (n, d); None if few differ."""
        covariance = covariance_estimate(points, full=True)
        return None if covariance is None else cls(points.mean(axis=0), root_of(covariance))

    def marginal(self, entries: NDArray[np.bool_]) -> "GaussianApproximation":
        """Distribution of the entries that a mask of shape (d,) selects."""
        own = self.root[entries]
        return GaussianApproximation(self.mean[entries], root_of(own @ own.T))

    @cached_property
    def inverse_root(self) -> NDArray[np.float64]:
        """Inverse of `root`."""
        return solve_triangular(self.root, np.eye(self.mean.size), lower=True)

    def dispersed(self, width: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """A draw with `width` times the spread, shape (d,)."""
        return self.mean + width * self.root.dot(rng.standard_normal(self.mean.size))

    def log_density(self, point: NDArray) -> float:
        """Log-density up to a constant, nats."""
        standard = self.inverse_root.dot(point - self.mean)
        return -0.5 * float(standard.dot(standard))

    def log_densities(self, points: NDArray) -> NDArray[np.float64]:
        """The same at points, shape (n, d): float array, shape (n,)."""
        standard = (points - self.mean) @ self.inverse_root.T
        return -0.5 * np.einsum("ij,ij->i", standard, standard)


class Outcome(NamedTuple):
    """The result of a proposal.

    Attributes
    ----------
    previous, following : arrays, shape (d,)
        Where the chain was and where it is now.
    accepted : bool
        Whether it moved.
    n_rows_used : int
        Rows that the decision read.
    """

    previous: NDArray
    following: NDArray
    accepted: bool
    n_rows_used: int


class ProposalFunction(Protocol):
    """The simplest proposal: a function, which never adapts.

    It takes the current point (array, shape ``(d,)``: the variables of the step method in
    unconstrained space, raveled and joined) and a random generator; it returns a new array of the
    same shape and the log-ratio ``log q(current | new) - log q(new | current)`` in nats, which is
    0 for a symmetric proposal.
    """

    def __call__(self, point: NDArray, rng: np.random.Generator, /) -> tuple[NDArray, float]:
        """Propose a new point."""


class Proposal(Protocol[State]):
    """A proposal that may adapt while the chain is tuning.

    The object holds the settings and is immutable, so that chains can share it. Everything that
    changes is in a state, which is immutable too: methods take a state and return a new one, and
    the step method keeps and pickles the latest.

    More members are optional. An attribute ``unconstrained = False`` states that no normal
    approximation fits the coordinates in which the proposal moves, so that none is computed. A
    method ``disperse(layout, point, radius, rng)`` returns a possible start near a point; a
    larger radius, which is at most 1, gives a more distant start. A method ``check_model(model)``
    refuses models on which the proposal would not be valid. A method ``with_gradients(gradients)``
    returns the same proposal with `Gradients`, ready to propose; the attributes ``batch_size`` (a
    number of rows or "all") and ``control_variates`` ("auto", True or False) say which ones it
    needs, and ``n_rows_read`` how many rows are read for every proposal.
    """

    def init(self, layout: Layout, approximation: GaussianApproximation | None = None) -> State:
        """Initial state of a chain, given an approximation of the posterior if there is one."""

    def propose(
        self, state: State, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, State]:
        """New point, ``log q(point | new) - log q(new | point)`` in nats, and the new state.

        `current_scaling` and `tune` receive this state.
        """

    def tune(self, state: State, outcome: Outcome) -> State:
        """State after a decision of the tuning phase."""

    def freeze(self, state: State) -> State:
        """State at the end of the tuning phase, after which nothing changes."""

    def current_scaling(self, state: State) -> float:
        """Size of the proposal as one number, for the statistics; NaN if it has none."""


class Gradients(Protocol):
    """Gradients of the log-posterior, estimated from rows, for the proposals of a step method."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def batch_size(self) -> int:
        """Number of rows in a mini-batch; a mini-batch of all rows gives the exact gradient."""

    @property
    def decisions(self) -> Literal["metropolis", "barker", "poisson", "none"]:
        """Rule that decides on the proposals; with "none", all of them are accepted."""

    def draw(self, rng: np.random.Generator) -> Callable[[NDArray], NDArray[np.float64]]:
        """A new mini-batch, as a function from a point to the gradient there, shape ``(d,)``."""


class ConnectedProposal:
    """Part of a proposal that needs something from a step method, such as gradients."""

    _provided: Any = None

    def connected(self, provided: Any) -> Any:
        """A proposal with the same settings, for what a step method provides."""
        bound = copy.copy(self)
        object.__setattr__(bound, "_provided", provided)
        return bound

    @property
    def provided(self) -> Any:
        """What the step method provided."""
        if self._provided is None:
            raise SettingError(
                f"{type(self).__name__} is not connected to a model: give it to "
                "AusterityMH(proposal=...) by itself, not as part of another proposal."
            )
        return self._provided


@dataclass(frozen=True)
class UserProposal:
    """A function ``(point, rng) -> (new point, log-ratio)``, wrapped as a proposal.

    Parameters
    ----------
    function : callable
        See `ProposalFunction`. It must be picklable to run chains in several processes.
    """

    function: ProposalFunction

    def init(self, layout: Layout, approximation: GaussianApproximation | None = None) -> None:
        """No state."""
        return None

    def propose(
        self, state: None, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, None]:
        """Checked result of the function."""
        try:
            returned = self.function(point.copy(), rng)
        except Exception as error:
            raise SettingError(
                f"the proposal raised {type(error).__name__} ({error}): {_WANTED}."
            ) from error
        return *_checked(returned, point), None

    def tune(self, state: None, outcome: Outcome) -> None:
        """Nothing to learn."""
        return None

    def freeze(self, state: None) -> None:
        """Nothing to freeze."""
        return None

    def current_scaling(self, state: None) -> float:
        """Unknown."""
        return math.nan


def as_proposal(value: Any) -> Proposal[Any]:
    """A proposal, or a user's function wrapped as one.

    Raises
    ------
    SettingTypeError
        It is neither.
    """
    if isinstance(value, type):
        raise SettingTypeError(
            f"proposal={value.__name__} is a class: give an instance, such as RandomWalkProposal()."
        )
    missing = [name for name in _METHODS if not hasattr(value, name)]
    if not missing:
        return value
    if callable(value) and missing == list(_METHODS):
        return UserProposal(value)
    lacks = "" if missing == list(_METHODS) else f", as it lacks {', '.join(missing)}"
    raise SettingTypeError(
        f"proposal of type {type(value).__name__} cannot propose{lacks}: give a "
        "RandomWalkProposal() or a function (point, rng) -> (new point, log-ratio)."
    )


def try_proposal(
    proposal: Proposal[Any],
    layout: Layout,
    approximation: GaussianApproximation | None,
    start: NDArray,
) -> None:
    """Propose once at the start, so that an error is raised before the chains begin.

    Raises
    ------
    SettingError, SettingTypeError
        What the proposal returns cannot be used.
    """
    state = proposal.init(layout, approximation)
    returned = proposal.propose(state, start, np.random.default_rng(0))
    if not isinstance(returned, tuple) or len(returned) != 3:
        raise SettingTypeError(
            f"{type(proposal).__name__}.propose returned a {type(returned).__name__} that is not a "
            "triple: return (new point, log-ratio, state)."
        )
    _checked(returned[:2], start)


def _checked(returned: Any, point: NDArray) -> tuple[NDArray, float]:
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise SettingTypeError(
            f"the proposal returned a {type(returned).__name__} that is not a pair: {_WANTED}."
        )
    new = np.asarray(returned[0])
    if new.dtype.kind not in "fiub":
        raise SettingTypeError(
            f"the proposal returned a point of type {new.dtype}, which is not numeric: {_WANTED}."
        )
    if new.shape != point.shape:
        raise SettingTypeError(
            f"the proposal returned a point of shape {new.shape} for one of shape {point.shape}: "
            "return an array of the same shape."
        )
    return new.astype(point.dtype, copy=False), _checked_ratio(returned[1], new)


def _checked_ratio(value: Any, new: NDArray) -> float:
    try:
        log_ratio = float(value)
    except (TypeError, ValueError) as error:
        raise SettingTypeError(
            f"the proposal returned a log-ratio of type {type(value).__name__}, which is not a "
            f"number: {_WANTED}."
        ) from error
    if not log_ratio < math.inf and np.isfinite(new).all():  # -inf is a rejection
        raise SettingError(
            f"the proposal returned a log-ratio of {log_ratio} for a finite point: return "
            "log q(point | new) - log q(new | point) in nats, which is 0 if it is symmetric."
        )
    return log_ratio
