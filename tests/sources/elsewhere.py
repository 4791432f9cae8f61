"""What a process does that is given a pickled source."""

import pickle

import numpy as np

from pymc_austerity.sources import take


def read_pickled(pickled, start, stop):
    """Rows in order, and taken in reverse order."""
    source = pickle.loads(pickled)
    return source.read(start, stop), take(source, np.arange(start, stop)[::-1])
