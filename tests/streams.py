"""Differences in a given order, as surveys read them."""

import numpy as np

from pymc_austerity.sequential import UniformSurvey


class Stream:
    """Blocks of at most `block` values."""

    def __init__(self, values, block=10**9):
        self.values, self.block, self.n_read = values, block, 0

    def read(self, n_rows):
        chosen = self.values[self.n_read : self.n_read + n_rows]
        self.n_read += n_rows
        for start in range(0, n_rows, self.block):
            yield chosen[start : start + self.block]


class Stratum(Stream):
    """A single stratum."""

    def read(self, counts):
        return next(super().read(int(np.sum(counts))))


def survey_of(values, batch_size=50):
    """A uniform sample of values in their order."""
    return UniformSurvey(Stream(values), n_rows=len(values), batch_size=batch_size)
