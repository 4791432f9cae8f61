"""The decisions that are checked on all rows: a fixed share, selected at random."""

import numpy as np

from pymc_austerity.deciding.sampling import Sampling

_BUDGET = 0.05
"""Rows read by audits, as a share of the cost of decisions."""

_ROWS_OF_A_STEP = 1_000
"""Rows that can be evaluated in about the time that a step takes apart from reading rows."""


def affordable_share(sampling: Sampling) -> float:
    r"""Share of decisions whose audits cost about 5 % of the run.

    .. math:: \min\left(1,\ 0.05\,\frac{m + 1000}{N}\right)

    with :math:`m` rows at the first look, the fewest that a decision reads, and :math:`N`
    rows altogether, which an audit reads; the rest of a step takes about as long as 1,000
    rows. Thus the cost of a draw does not grow with the data, and few decisions are checked if
    there are many rows.

    Parameters
    ----------
    sampling : Sampling
        Source of the rows of decisions.

    Examples
    --------
    >>> from pymc_austerity.deciding.sampling import UniformSampling
    >>> affordable_share(UniformSampling(None, None, n_rows=50_000, batch_size=500))
    0.0015
    """
    strata = sampling.strata
    return min(1.0, _BUDGET * (strata.n_first + _ROWS_OF_A_STEP) / strata.n_rows)


class RandomAudits:
    """Audits of every decision with the same probability, using separate random numbers.

    Parameters
    ----------
    share : float
        The probability.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.rng = np.random.default_rng(0)

    def begin(self, rng: np.random.Generator) -> None:
        """Begin a chain; `rng` is not the generator of the draws."""
        self.rng = rng

    def wants(self) -> bool:
        """Whether to check the next decision."""
        return self.share > 0.0 and self.rng.random() < self.share
