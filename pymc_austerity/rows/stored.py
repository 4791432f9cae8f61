"""Rows in files of records: reading them, and putting them there in the order of sampling."""

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.errors import StorageError
from pymc_austerity.parts import integers, part, pointer_to, reals
from pymc_austerity.rows.draws import in_random_order
from pymc_austerity.rows.passes import LARGEST_BLOCK, Block, blocks_of
from pymc_austerity.rows.shared import RowFiles, SharedRows, Tenancy, errors_in_words, gone

_int8, _uint8, _int16, _int32, _float32 = map(
    pointer_to, (types.int8, types.uint8, types.int16, types.int32, types.float32)
)

_SAME, _REAL, _BYTE, _UNSIGNED, _SHORT, _USUAL = range(6)
_KINDS = {
    "float32": _REAL, "int8": _BYTE, "uint8": _UNSIGNED, "bool": _UNSIGNED, "int16": _SHORT,
    "int32": _USUAL,
}  # fmt: skip
_WIDE = ("float64", "int64")

_N_FACTS = 6
"""Numbers for each field: its file, where it begins in a record, its length in items or, where the
type stays as it is, in bytes; the two numbers of `widening`; and where its array begins in the
output."""


def can_widen(stored: np.dtype, dtype: np.dtype) -> bool:
    """Whether numbers of the first type may be stored in place of the second, which holds them."""
    return stored.name in _KINDS and dtype.name in _WIDE[: 1 if stored == "float32" else 2]


def widening(stored: np.dtype, dtype: np.dtype) -> tuple[int, int]:
    """Numbers for the reader: which type is stored, and whether integers become real."""
    return (_SAME, 0) if stored == dtype else (_KINDS[stored.name], int(dtype == "float64"))


if hasattr(os, "pread"):
    _pread = types.ExternalFunction(
        "pread", types.intp(types.intc, types.intp, types.intp, types.intp)
    )

    @part(types.boolean)
    def _bytes_from(file: int, address: int, n_bytes: int, start: int) -> bool:
        """Read bytes of an open file; whether all of them were there."""
        done = 0
        while done < n_bytes:
            n = _pread(file, address + done, n_bytes - done, start + done)
            if n <= 0:
                return False
            done += n
        return True

else:  # pragma: no cover - not a POSIX system: files are mapped, and known by their addresses
    _copy = types.ExternalFunction("memcpy", types.intp(types.intp, types.intp, types.intp))

    @part(types.boolean)
    def _bytes_from(file: int, address: int, n_bytes: int, start: int) -> bool:
        _copy(address, file + start, n_bytes)
        return True


@part(types.boolean)
def _fill(file: int, size: int, address: int, rows: Any, first: int, n: int) -> bool:
    """Read n records, those that follow each other at once; whether all of them were there."""
    j = 0
    while j < n:
        row, run = rows[first + j], 1
        while j + run < n and rows[first + j + run] == row + run:
            run += 1
        if not _bytes_from(file, address + j * size, run * size, row * size):
            return False
        j += run
    return True


@part(types.void)
def _copied(records: Any, out: Any, step: int, n: int, m: int) -> None:
    """The first n items of m records into an array of the same type or of a wider one."""
    for i in range(m):
        for j in range(n):
            out[i * n + j] = records[i * step + j]


@part(types.void)
def _spread(facts: Any, k: int, records: int, out: int, size: int, done: int, m: int) -> None:
    """A field of m records into its array, after those that are done."""
    n, kind = facts[k + 2], facts[k + 3]
    records += facts[k + 1]
    out += facts[k + 5] + done * n * (1 if kind == _SAME else 8)
    if kind == _SAME:
        _copied(_uint8(records), _uint8(out), size, n, m)
    elif kind == _REAL:
        _copied(_float32(records), reals(out), size // 4, n, m)
    else:
        if kind == _BYTE:
            _copied(_int8(records), integers(out), size, n, m)
        elif kind == _UNSIGNED:
            _copied(_uint8(records), integers(out), size, n, m)
        elif kind == _SHORT:
            _copied(_int16(records), integers(out), size // 2, n, m)
        else:
            _copied(_int32(records), integers(out), size // 4, n, m)
        if facts[k + 4] == 1:
            _copied(integers(out), reals(out), n, n, m)


def _read(
    counts: int, files: int, facts: int, scratch: int, rows: int, n_rows: int, out: int
) -> None:
    n_files, n_fields, n_bytes = integers(counts)[0], integers(counts)[1], integers(counts)[2]
    known = integers(facts)
    for f in range(n_files):
        file, size = integers(files)[2 * f], integers(files)[2 * f + 1]
        most, done = n_bytes // size, 0
        while done < n_rows:
            m = min(most, n_rows - done)
            if not _fill(file, size, scratch, integers(rows), done, m):
                integers(counts)[3] += 1
                return
            for k in range(0, _N_FACTS * n_fields, _N_FACTS):
                if known[k] == f:
                    _spread(known, k, scratch, out, size, done, m)
            done += m


@cache
def reader() -> Any:
    """``f(counts, files, facts, scratch, rows, n_rows, out)``, of addresses and a number.

    Returns
    -------
    numba.core.ccallback.CFunc
        Addresses are of arrays of int64, those of `scratch` and `out` of bytes. In `counts` are
        the numbers of files and of fields, the bytes of `scratch`, and how often records could
        not be read, which is increased. `files` has the number of each file and the bytes of a
        record, `facts` has those of `_N_FACTS`, and `rows` has numbers of rows.
    """
    signature = types.void(*[types.intp] * 7)
    return numba.cfunc(signature, cache=True, error_model="numpy")(_read)


@cache
def callable_reader() -> Callable[..., None]:
    """The same for Python, which goes on in other threads meanwhile."""
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)(reader().address)


FILE_NAME = "{}.rows"
"""Of the files of a store, by their numbers."""

_SCRATCH = 2**18
"""Bytes that are read at once."""

_ALIGNED = 64


class Field(NamedTuple):
    """An array of rows that lies in the records of a file, its type narrower there or the same."""

    file: int
    name: str
    dtype: np.dtype


class Reading(NamedTuple):
    """What the compiled reader needs; see `pymc_austerity.rows.stored.reader`.

    Attributes
    ----------
    counts, files, facts : int arrays
    scratch, out : byte arrays
    block : tuple of arrays
        Views of `out`: where rows are after the call.
    """

    counts: NDArray[np.int64]
    files: NDArray[np.int64]
    facts: NDArray[np.int64]
    scratch: NDArray[np.uint8]
    out: NDArray[np.uint8]
    block: Block

    @property
    def failed(self) -> bool:
        """Whether some rows could not be read."""
        return bool(self.counts[3])


class StoredRows(RowFiles):
    """Rows in files of records, which may be larger than the memory.

    Records hold numbers in narrow types, and are read one by one: what was read is not kept in
    memory by this process. Pickling sends the path of the files, as for `SharedRows`.
    """

    def __init__(
        self, tenancy: Tenancy, n_rows: int, records: Sequence[np.dtype], fields: Sequence[Field]
    ) -> None:
        self.n_rows, self._records, self._fields = n_rows, list(records), list(fields)
        self._opened: list[_File] = []
        self._attach(tenancy, partial(_close, self._opened))
        self._open()

    def window(self, start: int, stop: int) -> Block:
        """Copies of rows ``start`` to ``stop`` in storage order."""
        return self.take(np.arange(start, min(stop, self.n_rows)))

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Copies of the rows at the given positions in storage order."""
        rows = np.ascontiguousarray(indices, dtype=np.int64)
        if rows.size and not 0 <= rows.min() <= rows.max() < self.n_rows:
            raise IndexError(f"rows {rows.min()} to {rows.max()} are not among {self.n_rows}")
        reading = self.reading(rows.size)
        counts, files, facts, scratch, out, block = reading
        known = [array.ctypes.data for array in (counts, files, facts, scratch, rows)]
        callable_reader()(*known, rows.size, out.ctypes.data)
        self.refuse_if_failed(reading)
        return block

    def reading(self, n_rows: int) -> Reading:
        """What is needed to read some rows at a time."""
        used = sorted({field.file for field in self._fields})
        files = [(self._opened[number].known_as, self._records[number].itemsize) for number in used]
        facts, shapes, begin = [], [], 0
        for number, name, dtype in self._fields:
            record = self._records[number]
            assert record.fields is not None
            stored, offset = record.fields[name][:2]
            kind, is_real = widening(stored.base, dtype)
            n_bytes = stored.itemsize // stored.base.itemsize * dtype.itemsize
            n_items = n_bytes // (dtype.itemsize if kind else 1)
            facts.append((used.index(number), offset, n_items, kind, is_real, begin))
            shapes.append((begin, n_bytes * n_rows, dtype, (n_rows, *stored.shape)))
            begin += -(-n_bytes * n_rows // _ALIGNED) * _ALIGNED
        out = np.empty(begin, dtype=np.uint8)
        block = tuple([out[a : a + n].view(dtype).reshape(shape) for a, n, dtype, shape in shapes])
        largest = max(size for _, size in files)
        n_scratch = max(largest, min(_SCRATCH, largest * n_rows))
        scratch = np.empty(-(-n_scratch // _ALIGNED) * _ALIGNED, dtype=np.uint8)
        counts, of_files, of_facts = (
            np.array(numbers, dtype=np.int64)
            for numbers in ([len(files), len(facts), scratch.size, 0], files, facts)
        )
        return Reading(counts, of_files, of_facts, scratch, out, block)

    def refuse_if_failed(self, reading: Reading) -> None:
        """Raise StorageError where rows could not be read."""
        if reading.failed:
            raise StorageError(gone(self.folder))

    def extend(self, function: Callable[[Block], NDArray]) -> None:
        """Store one more array: what a function makes of each block of rows as they are stored."""
        first = function(self.window(0, 1))
        record = np.dtype([("0", first.dtype, first.shape[1:])])
        path = self._path(len(self._records))
        place, n_bytes = str(self.folder.parent), self.n_rows * record.itemsize
        with errors_in_words(place, n_bytes), path.open("wb") as file:
            for block in blocks_of(self):
                function(block).tofile(file)
        self._fields.append(Field(len(self._records), "0", first.dtype))
        self._records.append(record)
        self._open()

    def truncate(self, n_arrays: int) -> None:
        """Forget all arrays but the first ones."""
        del self._fields[n_arrays:]
        n_files = 1 + max(field.file for field in self._fields)
        _close(self._opened[n_files:])
        del self._opened[n_files:], self._records[n_files:]

    def split(self, n_arrays: int) -> "StoredRows":
        """Keep the first `n_arrays` arrays; the others are read as a store of their own."""
        self._fields, others = self._fields[:n_arrays], self._fields[n_arrays:]
        return StoredRows(Tenancy(self.folder, created=True), self.n_rows, self._records, others)

    @property
    def n_arrays(self) -> int:
        """Number of arrays."""
        return len(self._fields)

    @property
    def n_bytes(self) -> int:
        """Size of the files in bytes."""
        return self.n_rows * sum(record.itemsize for record in self._records)

    def _path(self, number: int) -> Path:
        return self.folder / FILE_NAME.format(number)

    def _open(self) -> None:
        """Open the files that are not open yet."""
        for number in range(len(self._opened), len(self._records)):
            self._opened.append(_File.of(self._path(number)))

    def __getstate__(self) -> dict[str, Any]:
        self._refuse_if_gone()
        return {
            "folder": self.folder,
            "n_rows": self.n_rows,
            "records": self._records,
            "fields": self._fields,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        folder = state.pop("folder")
        try:
            self.__init__(Tenancy(folder), **state)  # type: ignore[misc]
        except OSError as error:
            raise StorageError(gone(folder)) from error


Store: TypeAlias = SharedRows | StoredRows
"""Rows in sampling order."""


class _File(NamedTuple):
    """An open file, as the reader calls it, or its pages where files have no numbers."""

    known_as: int
    pages: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, path: Path) -> "_File":
        if hasattr(os, "pread"):
            return cls(os.open(path, os.O_RDONLY))
        pages = np.memmap(path, np.uint8, mode="r")  # pragma: no cover - not a POSIX system
        return cls(pages.ctypes.data, pages)


def _close(files: list[_File]) -> None:
    for file in files:
        if file.pages is None:
            os.close(file.known_as)
    files.clear()


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
