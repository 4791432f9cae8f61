"""Log-likelihoods that are computed when they are used."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core import indexing

from pymc_austerity.pointwise.asked import Asked

__all__ = ["lazy_variable"]


class _LazyArray(BackendArray):
    """An array of shape (n_chains, n_draws, ...) whose entries are computed when they are read."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.shape = (*asked.draws.shape, *asked.shape)
        self.dtype = asked.dtype

    def __getitem__(self, key: Any) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray:
        picked = [
            np.arange(*own.indices(length)) if isinstance(own, slice) else np.asarray(own)
            for own, length in zip(key, self.shape, strict=True)
        ]
        chains, draws, *others = (np.atleast_1d(own) for own in picked)
        samples = (chains[:, None] * self.shape[1] + draws).ravel().tolist()
        axis = self._asked.of_rows.axis
        found = self._asked.evaluated(others[axis], samples)
        for number, own in enumerate(others):
            if number != axis:
                found = found.take(own, axis=number + 1)
        return found.reshape([own.size for own in picked if own.ndim])


def lazy_variable(asked: Asked) -> Variable:
    """A variable that stores no values."""
    return Variable(("chain", "draw", *asked.dims), indexing.LazilyIndexedArray(_LazyArray(asked)))
