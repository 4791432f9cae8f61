"""A user's own function as a proposal."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals.protocols import (
    GaussianApproximation,
    Layout,
    Outcome,
    Proposal,
    ProposalFunction,
)

__all__ = ["UserProposal", "as_proposal", "try_proposal"]

_METHODS = ("init", "propose", "tune", "freeze", "current_scaling")

_WANTED = (
    "it takes (point, rng) and returns (new point, log-ratio), an array of the shape of the point "
    "and a number of nats"
)


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
