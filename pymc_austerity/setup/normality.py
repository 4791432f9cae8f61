"""The check of the t-test's assumption, before a run."""

import math
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import differences_of_all
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import NormalityCheck, first_look_statistics
from pymc_austerity.errors import AusterityWarning
from pymc_austerity.proposals import Proposal
from pymc_austerity.setup.rows_to_check import RowsToCheck
from pymc_austerity.setup.target import Target
from pymc_austerity.strata import Strata

SINGLE_ROWS_DECIDE = (
    "if these rows are not sampled, points of zero posterior density can be accepted; use "
    "epsilon=0, or write the bound as a prior or a transform."
)
"""Consequence and remedy, as the end of a sentence."""

_PAIRS = 3
_SAMPLES = 1_000

_A_LITTLE = 1e-3
_USUAL_SPREAD = 2.38
"""Spread of the sum of the differences along a step of a tuned random walk, nats."""


def check_normality(
    target: Target,
    proposal: Proposal,
    settings: Settings,
    *,
    moving_support: Sequence[str] = (),
    rng: np.random.Generator,
) -> NormalityCheck | None:
    """Compare the t statistic of first looks at differences of the rows with Student's t.

    Parameters
    ----------
    target : Target
        Differences, and how they are sampled.
    proposal : Proposal
        Makes pairs of points where there is no approximation of the posterior.
    settings : Settings
        Which test decides, and how strictly.
    moving_support : sequence of str
        Names of the variables on which the support of the rows depends.
    rng : numpy.random.Generator
        Draws pairs of points and samples.

    Returns
    -------
    NormalityCheck or None
        None where the test does not assume normality, no differences are finite, or all of them
        are the same.

    Warns
    -----
    AusterityWarning
        The t statistic has tails that are too heavy, or single rows can exclude a point.
    """
    sampling = target.sampling
    if settings.description.assumption != "normal means" or isinstance(sampling, PoissonSampling):
        return None
    if sampling.is_exact:
        return None
    strata = sampling.strata
    pairs = _pairs(target, proposal, rng)
    rows = RowsToCheck.of(target.source, strata)
    differences = [rows.differences(target.row_function, *pair) for pair in pairs]
    _warn_of_hard_supports(differences, moving_support)
    differences = [values for values in differences if np.isfinite(values).all()]
    if not differences:
        return None
    samples = first_look_statistics(
        differences, strata, n_samples=_SAMPLES, rng=rng, counts=rows.counts
    )
    if not samples[0].size:
        return None
    n_independent = max(1, len(differences) * rows.n_rows // strata.n_first)
    n_independent = min(samples[0].size, n_independent)
    check = NormalityCheck(*samples, epsilon=settings.tail, n_independent=n_independent)
    if not check.passes:
        warnings.warn(f"{check} {_remedy(check, strata)}", AusterityWarning, stacklevel=4)
    return check


def _pairs(
    target: Target, proposal: Proposal, rng: np.random.Generator
) -> Iterator[tuple[NDArray, NDArray]]:
    approximation, layout, start = target.approximation, target.layout, target.start
    scalable = bool((layout.n_categories == 0).all()) and getattr(proposal, "unconstrained", True)
    for _ in range(_PAIRS):
        if approximation is not None:
            both = approximation.root @ rng.standard_normal((start.size, 2))
            proposed, current = (approximation.mean[:, None] + both).T.astype(start.dtype)
            yield proposed, current
            continue
        proposed, _, _ = proposal.propose(proposal.init(layout, None), start, rng)
        yield (_shortened(target, proposed) if scalable else proposed), start


def _shortened(target: Target, proposed: NDArray) -> NDArray:
    """A step of the length that a tuned random walk will take: see `expected_error`."""
    start, length = target.start, _A_LITTLE
    near = (start + length * (proposed - start)).astype(start.dtype)
    differences = differences_of_all(target.row_function, near, start, target.source)
    spread = math.sqrt(differences.size) * float(np.std(differences))
    if not 0.0 < spread < math.inf:
        return proposed
    return (start + length * _USUAL_SPREAD / spread * (proposed - start)).astype(start.dtype)


def _warn_of_hard_supports(
    differences: list[NDArray[np.float64]], moving_support: Sequence[str]
) -> None:
    """Warn of rows that exclude a point, but only if they are read."""
    shares = [np.mean(values == -np.inf) for values in differences]
    found = ""
    if moving_support:
        names = ", ".join(map(repr, moving_support))
        found = f"Single rows make a proposal impossible, as their support depends on {names}"
    elif any(0.0 < share < 1.0 for share in shares):
        found = f"{max(shares):.2%} of the rows make a proposal impossible that the others permit"
    if found:
        warnings.warn(f"{found}: {SINGLE_ROWS_DECIDE}", AusterityWarning, stacklevel=5)


def _remedy(check: NormalityCheck, strata: Strata) -> str:
    if strata.sizes.size == 1:
        return (
            "A few rows weigh too much for uniform samples of this size: sample by influence "
            "(control_variates='auto', sampling='auto'), choose a larger batch_size, or a test "
            "that does not need normal means (pymc_austerity.EmpiricalBernsteinTest)."
        )
    return (
        f"Stratum {check.worst_stratum} deviates most from normality: choose a larger batch_size; "
        "more rows are then always read, and the first look takes more from every stratum."
    )
