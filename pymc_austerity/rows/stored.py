"""Rows on disk in random order within strata, put there in two passes with little memory."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows.protocols import Block
from pymc_austerity.rows.shared import SharedRows, in_words, write_header
from pymc_austerity.rows.tenancy import Tenancy

__all__ = ["store_in_strata"]

_BYTES_OF_BUCKET = 2**26
"""Rows that are put in order in memory, in bytes."""

_ROWS_AT_ONCE = 65_536
"""Rows that are distributed to buckets together."""


def store_in_strata(
    blocks: Iterable[tuple[NDArray[np.int64], Block]],
    *,
    n_rows: int,
    shares: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[SharedRows, NDArray[np.int64]]:
    """Store rows stratum by stratum, in uniformly random order within each.

    Every row goes to a bucket of its stratum that is chosen at random, and each bucket is put in
    random order in memory. All orders are equally likely, whatever the order of the blocks.

    Parameters
    ----------
    blocks : iterable of (int array, Block)
        The stratum of each row of a block, and its arrays; read once. All blocks have arrays of
        the same types.
    n_rows : int
        Rows in all blocks.
    shares : float array, shape (H,)
        About the share of the rows that each stratum has, for the number of its buckets.
    rng : numpy.random.Generator
        Source of the order.

    Returns
    -------
    rows : SharedRows
        In the folder that ``TMPDIR`` names, or the system's folder for temporary files.
    sizes : int array, shape (H,)
        Rows in each stratum.

    Raises
    ------
    StorageError
        There is no room for the files, or they may not be written. Nothing stays stored then.

    References
    ----------
    Rao, C. R. (1961). Generation of random permutations of given number of elements using random
    sampling numbers. Sankhya A 23, 305-307.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> y = np.arange(6.0)
    >>> rows, sizes = store_in_strata(
    ...     [(y.astype(int) % 2, (y,))], n_rows=6, shares=np.full(2, 0.5), rng=rng
    ... )
    >>> sizes, np.sort(rows.window(0, 3)[0])
    (array([3, 3]), array([0., 2., 4.]))
    >>> rows.close()
    """
    blocks = iter(blocks)
    first = next(blocks)
    record = np.dtype([(str(k), a.dtype, a.shape[1:]) for k, a in enumerate(first[1])])
    place, n_bytes = tempfile.gettempdir(), n_rows * record.itemsize
    with in_words(place, n_bytes):
        if shutil.disk_usage(place).free < n_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        Tenancy.evict(place)
        tenancy = Tenancy.of_new_folder(place)
    try:
        n_buckets = np.ceil(shares * n_bytes / _BYTES_OF_BUCKET).astype(np.int64)
        buckets = _Buckets(tenancy.folder, record, np.maximum(n_buckets, 1), n_bytes)
        for labels, block in chain([first], blocks):
            buckets.add(labels, block, rng)
        with in_words(place, n_bytes):
            buckets.write()
            buckets.join(rng)
            return SharedRows.in_folder(tenancy, n_rows, len(first[1])), buckets.sizes
    except BaseException:
        tenancy.leave()
        raise


class _Buckets:
    """Rows that wait to be put in order, in a file for each bucket.

    Parameters
    ----------
    folder : Path
        Where the files are.
    record : dtype
        Of a row.
    n_buckets : int array, shape (H,)
        Buckets of each stratum.
    n_bytes : int
        Of all rows.
    """

    def __init__(
        self, folder: Path, record: np.dtype, n_buckets: NDArray[np.int64], n_bytes: int
    ) -> None:
        self.folder = folder
        self.record = record
        self.n_buckets = n_buckets
        self.n_bytes = n_bytes
        self.sizes = np.zeros(n_buckets.size, dtype=np.int64)
        self._paths = [folder / f"bucket-{k}" for k in range(int(n_buckets.sum()))]
        self._waiting: list[tuple[NDArray[np.int64], NDArray]] = []
        self._n_waiting = 0

    def add(self, labels: NDArray[np.int64], block: Block, rng: np.random.Generator) -> None:
        """Distribute rows to buckets of their strata."""
        records = np.empty(labels.size, dtype=self.record)
        for k, array in enumerate(block):
            records[str(k)] = array
        begin = np.cumsum(self.n_buckets) - self.n_buckets
        chosen = (rng.random(labels.size) * self.n_buckets[labels]).astype(np.int64)
        self.sizes += np.bincount(labels, minlength=self.sizes.size)
        self._waiting.append((begin[labels] + chosen, records))
        self._n_waiting += labels.size
        if self._n_waiting >= _ROWS_AT_ONCE:
            with in_words(str(self.folder.parent), self.n_bytes):
                self.write()

    def write(self) -> None:
        """Append rows that were distributed to the files of their buckets."""
        if not self._waiting:
            return
        buckets, records = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting, self._n_waiting = [], 0
        order = np.argsort(buckets, kind="stable")
        present, firsts = np.unique(buckets[order], return_index=True)
        for bucket, own in zip(present, np.split(order, firsts[1:]), strict=True):
            with self._paths[bucket].open("ab") as file:
                records[own].tofile(file)

    def join(self, rng: np.random.Generator) -> None:
        """Put each bucket in random order, and append it to the arrays; it is removed then."""
        n_rows, names = int(self.sizes.sum()), self.record.names or ()
        with ExitStack() as opened:
            files = [opened.enter_context((self.folder / f"{k}.npy").open("wb")) for k in names]
            for file, name in zip(files, names, strict=True):
                dtype = self.record[name]
                write_header(file, dtype.base, (n_rows, *dtype.shape))
            for path in filter(Path.exists, self._paths):
                records = np.fromfile(path, dtype=self.record)
                path.unlink()
                order = rng.permutation(records.size)
                for file, name in zip(files, names, strict=True):
                    records[name][order].tofile(file)
