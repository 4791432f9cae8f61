"""Rows on disk by their labels, in random order within each, put there with little memory."""

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

__all__ = ["store_by_label"]

_BYTES_OF_BUCKET = 2**24
"""Rows that are put in order in memory, in bytes."""

_ROWS_AT_ONCE = 65_536
"""Rows that are distributed to buckets together."""

_LABEL = "label"


def store_by_label(
    blocks: Iterable[tuple[NDArray[np.int64], Block]],
    *,
    n_rows: int,
    shares: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[SharedRows, NDArray[np.int64]]:
    """Store rows label by label, in uniformly random order within each.

    Labels are strata, groups of similar bounds, or levels. Every row goes to a bucket, and each
    bucket is put in order in memory. Rows of a label with many rows go to one of several buckets
    that is chosen at random, and labels with few rows share one. All orders are equally likely,
    whatever the order of the blocks.

    Parameters
    ----------
    blocks : iterable of (int array, Block)
        The label of each row of a block, and its arrays; read once. All blocks have arrays of
        the same types.
    n_rows : int
        Rows in all blocks.
    shares : float array, shape (H,)
        About the share of the rows that each label has, from which buckets are chosen.
    rng : numpy.random.Generator
        Source of the order.

    Returns
    -------
    rows : SharedRows
        In the folder that ``TMPDIR`` names, or the system's folder for temporary files.
    sizes : int array, shape (H,)
        Rows of each label.

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
    >>> rows, sizes = store_by_label(
    ...     [(y.astype(int) % 2, (y,))], n_rows=6, shares=np.full(2, 0.5), rng=rng
    ... )
    >>> sizes, np.sort(rows.window(0, 3)[0])
    (array([3, 3]), array([0., 2., 4.]))
    >>> rows.close()
    """
    blocks = iter(blocks)
    first = next(blocks)
    fields = [(str(k), a.dtype, a.shape[1:]) for k, a in enumerate(first[1])]
    record = np.dtype([*fields, (_LABEL, np.int32)])
    place, n_bytes = tempfile.gettempdir(), n_rows * record.itemsize
    with in_words(place, n_bytes):
        if shutil.disk_usage(place).free < n_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        Tenancy.evict(place)
        tenancy = Tenancy.of_new_folder(place)
    try:
        buckets = _Buckets(tenancy.folder, record, shares * n_bytes, n_bytes)
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
    expected : float array, shape (H,)
        Bytes to expect of the rows of each label.
    n_bytes : int
        Of all rows.
    """

    def __init__(
        self, folder: Path, record: np.dtype, expected: NDArray[np.float64], n_bytes: int
    ) -> None:
        self.folder = folder
        self.record = record
        self.n_bytes = n_bytes
        self.sizes = np.zeros(expected.size, dtype=np.int64)
        self._first, self._n_each = _buckets_of(expected)
        n_buckets = int(self._first[-1] + self._n_each[-1])
        self._paths = [folder / f"bucket-{k}" for k in range(n_buckets)]
        self._waiting: list[tuple[NDArray[np.int64], NDArray]] = []
        self._n_waiting = 0

    def add(self, labels: NDArray[np.int64], block: Block, rng: np.random.Generator) -> None:
        """Distribute rows to buckets of their labels."""
        records = np.empty(labels.size, dtype=self.record)
        for k, array in enumerate(block):
            records[str(k)] = array
        records[_LABEL] = labels
        chosen = (rng.random(labels.size) * self._n_each[labels]).astype(np.int64)
        self.sizes += np.bincount(labels, minlength=self.sizes.size)
        self._waiting.append((self._first[labels] + chosen, records))
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
        """Put each bucket in order, and append it to the arrays; it is removed then."""
        n_rows = int(self.sizes.sum())
        names = [name for name in self.record.names or () if name != _LABEL]
        with ExitStack() as opened:
            files = [opened.enter_context((self.folder / f"{k}.npy").open("wb")) for k in names]
            for file, name in zip(files, names, strict=True):
                dtype = self.record[name]
                write_header(file, dtype.base, (n_rows, *dtype.shape))
            for path in filter(Path.exists, self._paths):
                records = np.fromfile(path, dtype=self.record)
                path.unlink()
                order = rng.permutation(records.size)
                order = order[np.argsort(records[_LABEL][order], kind="stable")]
                for file, name in zip(files, names, strict=True):
                    records[name][order].tofile(file)


def _buckets_of(expected: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first bucket of each label, and how many it has, from the bytes to expect of each."""
    n_each = np.maximum(np.ceil(expected / _BYTES_OF_BUCKET), 1.0).astype(np.int64)
    first = np.empty_like(n_each)
    bucket, held = -1, np.inf
    for label, (n_bytes, n_own) in enumerate(zip(expected.tolist(), n_each.tolist(), strict=True)):
        if n_own > 1 or held + n_bytes > _BYTES_OF_BUCKET:
            bucket, held = bucket + 1, 0.0
        first[label] = bucket
        bucket, held = bucket + n_own - 1, np.inf if n_own > 1 else held + n_bytes
    return first, n_each
