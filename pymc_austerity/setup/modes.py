"""Results of the search for modes, for chains and in words."""

import warnings

import numpy as np

from pymc_austerity.control_variates import Modes
from pymc_austerity.errors import AusterityWarning
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.setup.problem import Problem


def normal_approximations(modes: Modes) -> tuple[GaussianApproximation, ...]:
    """Normal approximations about the modes of comparable weight, the best first."""
    best = GaussianApproximation(modes.anchor.point, modes.anchor.root)
    return (best, *(GaussianApproximation(mode.point, mode.root) for mode in modes.others))


def warn_of_modes(modes: Modes, problem: Problem) -> None:
    """Warn that the posterior has several modes, or that a better one may have been missed.

    Warns
    -----
    AusterityWarning
        Either of these is the case; the message is one sentence with a remedy.
    """
    if modes.n_found > 1 and modes.n_at_best <= 1:
        sentence = (
            f"Searches from dispersed points found {modes.n_found} modes, and only one search "
            "reached the highest: there may be a higher one; give initial_point= near the intended "
            "mode, or a more informative prior."
        )
    elif modes.others:
        sentence = (
            f"The posterior has {1 + len(modes.others)} modes of comparable weight, which differ "
            f"most in {_where_apart(modes, problem)!r}: chains start at any of them and may never "
            "reach the others; constrain what the data do not identify, such as a sign or an "
            "order, or give anchor= near the intended mode."
        )
    else:
        return
    warnings.warn(sentence, AusterityWarning, stacklevel=6)


def _where_apart(modes: Modes, problem: Problem) -> str:
    """Name of the variable in which the modes differ most."""
    apart = np.abs(modes.others[0].point - modes.anchor.point)
    entry = int(np.argmax(apart / np.linalg.norm(modes.anchor.root, axis=1)))
    blocks = zip(problem.layout.blocks, problem.variables, strict=True)
    (variable,) = [v for block, v in blocks if entry in range(*block.entries.indices(apart.size))]
    name: str = problem.model.values_to_rvs[variable].name
    return name


def words_on_mode(modes: Modes) -> str:
    """Where the anchor is, as a phrase."""
    if modes.n_found == 1:
        return "the mode"
    if modes.rise <= 0.0:
        return f"the best of {modes.n_found} modes"
    return (
        f"the best of {modes.n_found} modes, {modes.rise:,.0f} nats above the one nearest to the "
        "start"
    )
