"""Decisions that are checked on all rows, for the record."""

from dataclasses import dataclass

import numpy as np

from pymc_austerity.sequential.protocols import Decision, SequentialTest, Survey, TestDescription
from pymc_austerity.sequential.stopping import exceeds_on_all_rows

__all__ = ["Audited", "audited"]


@dataclass(frozen=True)
class Audited:
    """A test that reads the remaining rows after every decision, without changing the decision.

    Parameters
    ----------
    test : SequentialTest
        The test whose decisions are checked.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sequential import Audited, StudentTTest, UniformSurvey
    >>> class Stream:
    ...     def __init__(self, values):
    ...         self.values, self.n_seen = values, 0
    ...     def read(self, n_rows):
    ...         self.n_seen += n_rows
    ...         yield self.values[self.n_seen - n_rows : self.n_seen]
    >>> rng = np.random.default_rng(1)
    >>> survey = UniformSurvey(Stream(rng.normal(0.5, size=9_000)), n_rows=9_000, batch_size=500)
    >>> decision = Audited(StudentTTest(0.05)).decide(survey, 0.0, rng)
    >>> decision.n_rows_used, decision.exact_accept
    (500, True)
    """

    test: SequentialTest

    @property
    def description(self) -> TestDescription:
        """Description of the test."""
        return self.test.description

    def decide(self, survey: Survey, log_ratio: float, rng: np.random.Generator) -> Decision:
        """The decision of the test, and that of all rows."""
        return audited(self.test.decide(survey, log_ratio, rng), survey)


def audited(decision: Decision, survey: Survey) -> Decision:
    """A decision on a survey, together with the decision of all rows."""
    if decision.exact:
        return decision._replace(exact_accept=decision.accept)
    with np.errstate(invalid="ignore", over="ignore"):
        return decision._replace(exact_accept=exceeds_on_all_rows(survey, decision.log_threshold))
