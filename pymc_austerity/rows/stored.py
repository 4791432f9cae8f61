"""Rows on disk by their labels, in random order within each, put there with little memory."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows.draws import in_random_order
from pymc_austerity.rows.files import Tenancy, errors_in_words
from pymc_austerity.rows.protocols import LARGEST_BLOCK, Block
from pymc_austerity.rows.records import FILE_NAME, Field, StoredRows, can_widen

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
    types: Sequence[np.dtype | None] = (),
) -> tuple[StoredRows, NDArray[np.int64]]:
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
    types : sequence of dtype or None, optional
        In which the values of the first arrays were before they were converted to the types that
        the arrays have: they are stored so where that takes less room.

    Returns
    -------
    rows : StoredRows
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
    dtypes = [array.dtype for array in first[1]]
    of_records = [_narrower(*two) for two in zip_longest(dtypes, types)]
    items = [(str(k), own, first[1][k].shape[1:]) for k, own in enumerate(of_records)]
    record = np.dtype(sorted(items, key=lambda item: -item[1].itemsize), align=True)
    fields = [Field(0, str(k), dtype) for k, dtype in enumerate(dtypes)]
    labeled = np.dtype([("row", record), (_LABEL, np.int32)])
    place, n_bytes = tempfile.gettempdir(), n_rows * labeled.itemsize
    with errors_in_words(place, n_bytes):
        if shutil.disk_usage(place).free < n_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        Tenancy.evict(place)
        tenancy = Tenancy.of_new_folder(place)
    try:
        buckets = _Buckets(tenancy.folder, labeled, shares * n_bytes, n_bytes)
        for labels, block in chain([first], blocks):
            buckets.add(labels, block, rng)
        with errors_in_words(place, n_bytes):
            buckets.write()
            buckets.join(rng)
            return StoredRows(tenancy, n_rows, [record], fields), buckets.sizes
    except BaseException:
        tenancy.leave()
        raise


def _narrower(dtype: np.dtype, stored: np.dtype | None) -> np.dtype:
    """The type of which the values were, if it takes less room and is read as the other one."""
    return stored if stored is not None and can_widen(stored, dtype) else dtype


class _Buckets:
    """Rows that wait to be put in order, in a file for each bucket.

    Parameters
    ----------
    folder : Path
        Where the files are.
    record : dtype
        Of a row and its label.
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
            records["row"][str(k)] = array
        records[_LABEL] = labels
        chosen = (rng.random(labels.size) * self._n_each[labels]).astype(np.int64)
        self.sizes += np.bincount(labels, minlength=self.sizes.size)
        self._waiting.append((self._first[labels] + chosen, records))
        self._n_waiting += labels.size
        if self._n_waiting >= _ROWS_AT_ONCE:
            with errors_in_words(str(self.folder.parent), self.n_bytes):
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
        """Put each bucket in order, and append it to the file of all; it is removed then."""
        with (self.folder / FILE_NAME.format(0)).open("wb") as file:
            for path in filter(Path.exists, self._paths):
                records = np.fromfile(path, dtype=self.record)
                path.unlink()
                order = in_random_order(records[_LABEL], rng)
                for start in range(0, order.size, LARGEST_BLOCK):
                    records["row"][order[start : start + LARGEST_BLOCK]].tofile(file)


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
