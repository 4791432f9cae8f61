"""Models and step methods on their way to workers, with large arrays as files where possible."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import cloudpickle
import numpy as np
from dask.distributed import Client, Future
from numpy.typing import NDArray

from pymc_austerity.distributed.parts import pickled_by
from pymc_austerity.rows import SharedRows, Store

_log = logging.getLogger("pymc.austerity")

_LARGE = 2**20
"""Bytes of an array that workers read from a file."""


@contextmanager
def sent_to_workers(client: Client, obj: Any) -> Iterator[Future]:
    """Pickle an object for the workers; what becomes of the future are bytes.

    Rows and large arrays are sent as paths. If a worker cannot read files of this process, they
    are sent once to each worker.

    Raises
    ------
    SettingError
        Something in it cannot be pickled.
    """
    if not _read_files(client):
        content = pickled_by(_AsTheyAre, obj)
        _log.info(
            "Some workers cannot read the rows, which are on this machine: %.1f MB are sent to "
            "each.",
            len(content) / 1e6,
        )
        yield client.scatter(content, broadcast=True, hash=False)
        return
    files: list[SharedRows] = []
    content = pickled_by(lambda file: _AsPaths(file, files), obj)
    yield client.submit(bytes, content, pure=False)  # a task, which is done again where lost


def _read_files(client: Client) -> bool:
    """Whether all workers read the files of this process."""
    trial = SharedRows((np.zeros(1),), np.zeros(1, dtype=np.intp))
    return all(client.run(os.path.exists, trial.folder).values())


class _AsPaths(cloudpickle.Pickler):
    def __init__(self, file: BinaryIO, files: list[SharedRows]) -> None:
        super().__init__(file)
        self._files = files

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, np.ndarray) or obj.nbytes < _LARGE or obj.dtype.hasobject:
            return super().reducer_override(obj)
        self._files.append(SharedRows((obj,), np.arange(obj.shape[0])))
        return _array_of, (self._files[-1],)


def _array_of(rows: SharedRows) -> NDArray:
    return rows.window(0, rows.n_rows)[0]


class _AsTheyAre(cloudpickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Store):
            return SharedRows, (obj.window(0, obj.n_rows), np.arange(obj.n_rows))
        return super().reducer_override(obj)
