"""A warning where more decisions will be wrong than `epsilon` suggests."""

import math
import warnings

from pymc_austerity.deciding.exact import AnyDecider, ExactDecider
from pymc_austerity.deciding.promise import expected_errors
from pymc_austerity.design.wording import percentage
from pymc_austerity.errors import AusterityWarning

__all__ = ["warn_if_loose"]


def warn_if_loose(decider: AnyDecider) -> None:
    """Warn before the run that `epsilon` bounds the error of one look, if decisions take many.

    Parameters
    ----------
    decider : Decider or ExactDecider
        With the settings of the user.

    Warns
    -----
    AusterityWarning
        The expected share of wrong decisions is larger than the epsilon that was given.
    """
    epsilon = decider.settings.epsilon
    if isinstance(decider, ExactDecider) or epsilon is None or callable(epsilon):
        return
    if decider.target.sampling.is_exact:
        return
    expected = expected_errors(decider)
    if math.isnan(expected) or expected <= epsilon:
        return
    warnings.warn(
        f"epsilon={epsilon:g} bounds the error of one look, and decisions take many: about "
        f"{percentage(expected)} of all decisions will be wrong, which widens the posterior; use "
        f"max_error={epsilon:g} for whole decisions, epsilon=0 for none, or control variates.",
        AusterityWarning,
        stacklevel=4,
    )
