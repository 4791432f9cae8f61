"""The decider, ready for the first chain."""

import math
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pymc_austerity.deciding.exact import AnyDecider, ExactDecider, decider_of
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.promise import expected_errors
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import NormalityCheck
from pymc_austerity.design.wording import percentage
from pymc_austerity.errors import AusterityWarning
from pymc_austerity.setup.earlier_run import Learnt, learn
from pymc_austerity.setup.normality import check_normality
from pymc_austerity.setup.some_variables import Built


class Ready(NamedTuple):
    """A decider, and the results of set-up that belong to it.

    Attributes
    ----------
    settings : Settings
        The user's, with open choices filled in: exact decisions where these are cheap, and the
        defaults without control variates if there are none.
    decider : Decider or ExactDecider
        Accepts or rejects.
    learnt : Learnt or None
        What chains begin with after an earlier run.
    normality : NormalityCheck or None
        Result of the check of the test's assumption.
    """

    settings: Settings
    decider: AnyDecider
    learnt: Learnt | None
    normality: NormalityCheck | None


def make_ready(built: Built, settings: Settings, rng: np.random.Generator) -> Ready:
    """Choose the test, tune it on an earlier run if there is one, and check its assumption.

    Parameters
    ----------
    built : Built
        The target of the step method.
    settings : Settings
        What the user chose.
    rng : numpy.random.Generator
        Source of randomness.

    Warns
    -----
    AusterityWarning
        The means of first looks are not normal enough for the test, or the expected share of wrong
        decisions is larger than `epsilon`.
    """
    target, moving_support = built.target, built.about.moving_support
    if isinstance(target.sampling, PoissonSampling) and not settings.decides_exactly:
        settings = replace(settings, test="exact", max_error=None)
    elif target.anchor is None:
        settings = settings.without_control_variates(by_single_rows=bool(moving_support))
    decider = decider_of(settings, target)
    learnt = None
    if built.earlier is not None:
        learnt = learn(built.earlier, built.proposal, decider, built.embedding, rng)
    warn_if_loose(decider)
    normality = check_normality(
        target, built.usual, settings, moving_support=moving_support, rng=rng
    )
    return Ready(settings, decider, learnt, normality)


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
