"""Surrogates in plain Python."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pymc_austerity.setup.surrogate import Expansion, SurrogatePosterior


@dataclass(frozen=True)
class LogGamma:
    """The logarithms of independent Gamma(3, 1) variables."""

    address: ClassVar[None] = None

    def __call__(self, point):
        return float((3.0 * point - np.exp(point)).sum()), 3.0 - np.exp(point)

    def difference(self, proposed, current):
        return self(proposed)[0] - self(current)[0]


def skewed(d=2):
    """Log-gamma priors, and rows that are normal in the second entry."""
    hessian = np.zeros((d, d))
    hessian[1, 1] = -2.0
    return SurrogatePosterior(
        exact=LogGamma(),
        row_free_difference=LogGamma().difference,
        expansion=Expansion(np.zeros(d), np.zeros(d), hessian),
        scaled=np.array([], dtype=np.int64),
        mean=np.zeros(d),
        root=np.eye(d),
    )
