"""How a run ended: right, warned, refused, foreign, or silently wrong."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from scipy import stats

from examples.hard_models.moments import Moments

Verdict = Literal["right", "warned", "refused", "foreign", "WRONG"]

MEAN_BAR, SPREAD_BAR = 0.1, 0.1
BARS = (MEAN_BAR, SPREAD_BAR)
"""Largest error of a mean in posterior standard deviations, and of a spread relative to it."""

_FALSE_ALARMS = 0.001
"""Probability that a correct run is found wrong because of its Monte Carlo error."""

_ENOUGH = 400.0
"""Effective draws that a run has to have: one that did not mix is not forgiven for it."""

LARGEST_R_HAT = 1.05
"""Chains that disagree more are right by luck, as with two of four chains in each of two modes."""


@dataclass(frozen=True)
class Found:
    """What a run found of one quantity, with Monte Carlo standard errors."""

    moments: Moments
    r_hat: float
    ess: float


@dataclass(frozen=True)
class Record:
    """What one run did.

    Attributes
    ----------
    found : dict
        What was found of every quantity of the reference; empty if the run broke off.
    said : list of str
        Warnings of ours.
    foreign : list of str
        Warnings of other libraries.
    error : str
        What ended the run, if anything did.
    refused : bool
        Whether that was an error of ours, in one line.
    """

    found: dict[str, Found] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    error: str = ""
    refused: bool = False
    facts: dict[str, Any] = field(default_factory=dict)


def measured_with(*runs: Mapping[str, Record]) -> str:
    """The versions that records name, as a sentence; empty if none does.

    Examples
    --------
    >>> measured_with({"one": Record(facts={"python": "3.13.0", "pymc": "6.4.0"})}, {})
    'Measured with PyMC 6.4.0, Python 3.13.0.'
    """
    found = []
    for name, label in {"pymc": "PyMC", "nutpie": "nutpie", "python": "Python"}.items():
        records = [record for each in runs for record in each.values()]
        versions = sorted({record.facts[name] for record in records if name in record.facts})
        found += [f"{label} {' and '.join(versions)}"] if versions else []
    return f"Measured with {', '.join(found)}." if found else ""


@dataclass(frozen=True)
class Errors:
    """The errors of one quantity, and what chance allows for.

    Attributes
    ----------
    mean : float
        Error of the mean, in standard deviations of the reference.
    spread : float
        Standard deviation over that of the reference, minus 1.
    mean_bound, spread_bound : float
        Largest absolute values that are right.
    """

    mean: float
    spread: float
    mean_bound: float
    spread_bound: float

    @property
    def excess(self) -> float:
        """The larger of the two in multiples of what is right; infinite if not a number."""
        shares = (abs(self.mean) / self.mean_bound, abs(self.spread) / self.spread_bound)
        return max(math.inf if math.isnan(share) else share for share in shares)


def errors_of(found: Mapping[str, Found], reference: Mapping[str, Moments]) -> dict[str, Errors]:
    """Errors of every quantity of the reference.

    The bounds are 0.1 sd and 10 %, and what the Monte Carlo errors of run and reference explain:
    as many standard errors as keep the probability of a false alarm, over all the quantities of
    a model, below one in a thousand. The run's own error counts no more than that of 400
    effective draws.
    """
    quantile = float(stats.norm.isf(_FALSE_ALARMS / 2.0 / max(1, 2 * len(reference))))
    errors = {}
    for name, right in reference.items():
        run = found[name].moments
        mean_error = min(run.mean_error / right.sd, _ENOUGH**-0.5)
        sd_error = min(run.sd_error / right.sd, (2.0 * _ENOUGH) ** -0.5)
        errors[name] = Errors(
            mean=(run.mean - right.mean) / right.sd,
            spread=run.sd / right.sd - 1.0,
            mean_bound=MEAN_BAR + quantile * math.hypot(mean_error, right.mean_error / right.sd),
            spread_bound=SPREAD_BAR + quantile * math.hypot(sd_error, right.sd_error / right.sd),
        )
    return errors


def verdict_of(record: Record, reference: Mapping[str, Moments] | None) -> Verdict:
    """How a run ended.

    Parameters
    ----------
    record : Record
        What it did.
    reference : dict or None
        The right moments; None if there is no posterior, so that no answer is right.
    """
    if record.refused:
        return "refused"
    if record.error:
        return "foreign"
    is_right = reference is not None and _is_right(record.found, reference)
    if not is_right:
        return "warned" if record.said else "WRONG"
    return "foreign" if record.foreign else "right"


def _is_right(found: Mapping[str, Found], reference: Mapping[str, Moments]) -> bool:
    return all(
        errors.excess <= 1.0 and not found[name].r_hat > LARGEST_R_HAT
        for name, errors in errors_of(found, reference).items()
    )
