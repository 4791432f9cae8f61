"""The loop over looks, and tests that are made from a stopping rule or from another test."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numba import typeof, types

from pymc_austerity.errors import SettingTypeError
from pymc_austerity.parts import method, part
from pymc_austerity.sequential.protocols import (
    Decision,
    Estimate,
    Evidence,
    SequentialTest,
    StoppingRule,
    Survey,
    TestDescription,
)
from pymc_austerity.sequential.surveys import ESTIMATE

_DECISION = typeof(Decision(True, 0, 0, 0.0, 0.0, True, None, 0.0))
"""Type of a `Decision` in compiled code."""

_ACCEPTED = Decision(True, 0, 0, 0.0, math.nan, False)


class StoppingTest(ABC):
    r"""Metropolis-Hastings by a stopping rule.

    Accepts iff :math:`\sum_{i=1}^N l_i > \log u - r` with :math:`u` uniform and :math:`r` the rest
    of the log-ratio, as judged from a sample of the rows. Subclasses define when to stop reading
    rows, and the error of the resulting decision.
    """

    @abstractmethod
    def stops(self, evidence: Evidence) -> bool:
        """Whether the evidence suffices to decide now."""

    @abstractmethod
    def error(self, evidence: Evidence) -> float:
        """Bound or estimate of the probability that a decision on this evidence is wrong."""

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses."""
        name = type(self).__name__
        return TestDescription(name=name, summary=name)

    def decide(self, survey: Survey, log_ratio: float, rng: np.random.Generator) -> Decision:
        """Accept or reject a proposal.

        Parameters
        ----------
        survey : Survey
            A sample of which no rows have been read.
        log_ratio : float
            Log of the Metropolis-Hastings ratio without the sum of all differences, nats.
        rng : numpy.random.Generator
            Draws the uniform number, before the survey looks at rows.
        """
        return exceeds(survey, log_uniform(rng) - log_ratio, rule=self)


@part(types.float64)
def log_uniform(rng: np.random.Generator) -> float:
    """Log of a uniform random number, which a log-ratio must exceed."""
    uniform = rng.random()
    return math.log(uniform) if uniform > 0.0 else -math.inf


def exceeds(survey: Survey, log_threshold: float, *, rule: StoppingRule) -> Decision:
    r"""Decide whether the sum of all differences exceeds a threshold, reading no more than needed.

    Metropolis-Hastings accepts iff :math:`\sum_{i=1}^N l_i > \psi` (Korattikara, Chen and Welling
    2014, section 4, where both sides are divided by :math:`N`).

    Parameters
    ----------
    survey : Survey
        A sample of which no rows have been read.
    log_threshold : float
        :math:`\psi`, nats.
    rule : StoppingRule
        When to stop.

    Returns
    -------
    Decision
        A rejection as soon as a difference is not finite; exact when all rows were read.

    Notes
    -----
    ``standardized_mean`` is the distance of the estimated sum from :math:`\psi` in units of the
    estimate's spread. For uniform samples that is the paper's
    :math:`\mu_{std} = (\mu - \mu_0) \sqrt{N - 1} / \sigma_l`.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sequential import StudentTTest, UniformSurvey, exceeds
    >>> class Stream:
    ...     def __init__(self, values):
    ...         self.values, self.n_seen = values, 0
    ...     def read(self, n_rows):
    ...         self.n_seen += n_rows
    ...         yield self.values[self.n_seen - n_rows : self.n_seen]
    >>> differences = np.random.default_rng(1).normal(0.5, 1.0, size=10_000)
    >>> survey = UniformSurvey(Stream(differences), n_rows=10_000, batch_size=500)
    >>> decision = exceeds(survey, 0.0, rule=StudentTTest(epsilon=0.05))
    >>> decision.accept, decision.n_rows_used, decision.exact
    (True, 500, False)
    """
    with np.errstate(invalid="ignore", over="ignore"):  # differences that are not finite reject
        return read_until_clear(survey, log_threshold, rule)


@method(ESTIMATE)
def look(survey: Any) -> Estimate:
    """Read more rows."""
    return survey.look()


@method(ESTIMATE)
def finish(survey: Any) -> Estimate:
    """Read all remaining rows."""
    return survey.finish()


@method(types.float64)
def error_if_clear(rule: Any, evidence: Evidence) -> float:
    """Error of a decision on this evidence; NaN if a rule reads on."""
    return rule.error(evidence) if rule.stops(evidence) else math.nan


@part(types.float64)
def error_if_decided(
    estimate: Estimate, n_rows: int, n_looks: int, largest_difference: float,
    log_threshold: float, rule: Any,
) -> float:  # fmt: skip
    """Error of a decision after a look, 0 where it is that of all rows; NaN if a rule reads on.

    A sum that is not finite decides; a sample without spread does not. The parameters are those of
    `read_until_clear`, and what a `Survey` knows.
    """
    total, variance, degrees_of_freedom, n_seen, _ = estimate
    if n_seen >= n_rows or not math.isfinite(total):
        return 0.0
    if not variance > 0.0:
        return math.nan
    evidence = Evidence(
        total - log_threshold,
        math.sqrt(variance),
        degrees_of_freedom,
        n_seen,
        n_rows,
        n_looks,
        largest_difference,
    )
    return error_if_clear(rule, evidence)


@part(_DECISION)
def read_until_clear(survey: Any, log_threshold: float, rule: Any) -> Decision:
    """`exceeds`, for Python and for compiled code.

    There, `survey` is a named tuple with `n_rows`, `largest_difference` and the methods `look` and
    `finish` of a `Survey`, and `rule` is one with the method `error_if_clear`.
    """
    n_looks, error = 0, math.nan
    while error != error:
        estimate = look(survey)
        n_looks += 1
        error = error_if_decided(
            estimate, survey.n_rows, n_looks, survey.largest_difference, log_threshold, rule
        )
    standardized, accept, total = math.nan, False, estimate.total
    is_exact = estimate.n_seen >= survey.n_rows or not math.isfinite(total)
    if math.isfinite(total):
        accept = total - log_threshold > 0.0
        if estimate.spread > 0.0:
            standardized = (total - log_threshold) / estimate.spread
    seen = estimate.n_seen, n_looks, error
    return Decision(accept, *seen, standardized, is_exact, None, log_threshold)


@part(types.boolean)
def exceeds_on_all_rows(survey: Any, log_threshold: float) -> bool:
    """Whether the sum of all differences exceeds a threshold; reads the remaining rows."""
    total = finish(survey).total
    return math.isfinite(total) and total > log_threshold


@dataclass(frozen=True)
class UserTest(StoppingTest):
    """A test made from an object with the methods ``stops`` and ``error``.

    Parameters
    ----------
    rule : StoppingRule
        Its attributes ``epsilon`` and ``growth`` are used if it has them.
    """

    rule: StoppingRule

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses."""
        name, growth = type(self.rule).__name__, getattr(self.rule, "growth", 1.0)
        epsilon = getattr(self.rule, "epsilon", math.nan)
        summary = name if math.isnan(epsilon) else f"{name} with epsilon={epsilon:g}"
        return TestDescription(name, summary, epsilon=epsilon, growth=growth)

    def stops(self, evidence: Evidence) -> bool:
        """Whether the evidence suffices to decide now."""
        return self.rule.stops(evidence)

    def error(self, evidence: Evidence) -> float:
        """Bound or estimate of the probability that a decision on this evidence is wrong."""
        return self.rule.error(evidence)


def as_test(value: Any) -> SequentialTest:
    """A test, or a user's stopping rule wrapped as one.

    Raises
    ------
    SettingTypeError
        It is neither.
    """
    if isinstance(value, type):
        raise SettingTypeError(
            f"test={value.__name__} is not a test but its class: give an instance of it."
        )
    if all(hasattr(value, name) for name in ("decide", "description")):
        return value
    if all(hasattr(value, name) for name in ("stops", "error")):
        return UserTest(value)
    raise SettingTypeError(
        f"test={value!r} is not a test: give a StudentTTest(epsilon), another test of "
        "pymc_austerity.sequential, 'exact', 'auto' or None."
    )


def audited(decision: Decision, survey: Survey) -> Decision:
    """A decision on a survey, together with the decision of all rows."""
    if decision.exact:
        return decision._replace(exact_accept=decision.accept)
    with np.errstate(invalid="ignore", over="ignore"):
        return decision._replace(exact_accept=exceeds_on_all_rows(survey, decision.log_threshold))


@dataclass(frozen=True)
class AcceptAll:
    """Accepts every proposal and reads no rows, for chains that are not corrected.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sequential import AcceptAll
    >>> AcceptAll().decide(None, -1e9, np.random.default_rng(1)).accept
    True
    """

    description: ClassVar[TestDescription] = TestDescription(
        name="None",
        summary="no test: every proposal is accepted, and draws have the error of the proposal",
        acceptance="none",
    )

    def decide(self, survey: Survey, log_ratio: float, rng: np.random.Generator) -> Decision:
        """Accept."""
        return _ACCEPTED
