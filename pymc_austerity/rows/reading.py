"""Records of files, read by their numbers into arrays: one compiled function for all stores.

Nothing is mapped, so that what was read takes no memory of the process but the arrays.
"""

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types

from pymc_austerity.parts import integers, part, pointer_to, reals

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
    return numba.cfunc(types.void(*[types.intp] * 7), cache=True)(_read)


@cache
def callable_reader() -> Callable[..., None]:
    """The same for Python, which goes on in other threads meanwhile."""
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)(reader().address)
