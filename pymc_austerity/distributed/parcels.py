"""A step method on its way to another process, without its rows."""

import io
import pickle
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from pymc_austerity.errors import SettingError, StorageError
from pymc_austerity.rows import Block, SharedRows

__all__ = ["Parcel", "RowsElsewhereError", "pack", "rows_of", "unpack"]

_stored_here: "weakref.WeakValueDictionary[str, SharedRows]" = weakref.WeakValueDictionary()
"""Rows that were sent to this process, by their folder on the machine that they come from."""


class RowsElsewhereError(StorageError):
    """The rows of a step method are on another machine, and were not sent."""


class Parcel(NamedTuple):
    """A pickled step method, and where its rows are stored.

    Attributes
    ----------
    step : bytes
        The step method, in which rows are numbers.
    stored : tuple of dict
        The state of each `SharedRows`.
    """

    step: bytes
    stored: tuple[dict[str, Any], ...]


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.rows: list[SharedRows] = []

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, SharedRows):
            return None
        if not any(obj is rows for rows in self.rows):
            self.rows.append(obj)
        return next(number for number, rows in enumerate(self.rows) if obj is rows)


class _Unpickler(pickle.Unpickler):
    def __init__(self, parcel: Parcel, sent: Mapping[str, Block]) -> None:
        super().__init__(io.BytesIO(parcel.step))
        self._stored, self._sent = parcel.stored, sent
        self._found: dict[int, SharedRows] = {}

    def persistent_load(self, pid: int) -> SharedRows:
        if pid not in self._found:
            self._found[pid] = _found(self._stored[pid], self._sent)
        return self._found[pid]


def pack(step: Any) -> tuple[Parcel, list[SharedRows]]:
    """Pickle a step method.

    Parameters
    ----------
    step : step method
        Of this package, of PyMC, or a compound of them.

    Returns
    -------
    parcel : Parcel
    rows : list of SharedRows
        The rows that the parcel names, to be kept for as long as it is in use.

    Raises
    ------
    SettingError
        Something in it cannot be pickled.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(step)
    except (pickle.PickleError, TypeError, AttributeError) as error:
        raise SettingError(
            f"{type(step).__name__} cannot be sent to workers ({error}): define its parts in a "
            "module that workers can import."
        ) from error
    stored = tuple(rows.__getstate__() for rows in pickler.rows)
    return Parcel(file.getvalue(), stored), pickler.rows


def rows_of(rows: Sequence[SharedRows]) -> dict[str, Block]:
    """The rows themselves by their folder, for machines that cannot read it."""
    return {str(each.__getstate__()["folder"]): each.window(0, each.n_rows) for each in rows}


def unpack(parcel: Parcel, sent: Mapping[str, Block]) -> Any:
    """The step method.

    Parameters
    ----------
    parcel : Parcel
    sent : mapping from folders to blocks of rows
        Rows that came with it; empty on the machine that has them.

    Raises
    ------
    RowsElsewhereError
        The rows are neither on this machine nor sent.
    """
    return _Unpickler(parcel, sent).load()


def _found(state: dict[str, Any], sent: Mapping[str, Block]) -> SharedRows:
    folder = str(state["folder"])
    if folder in _stored_here:
        return _stored_here[folder]
    if folder in sent:
        rows = SharedRows(sent[folder], np.arange(state["n_rows"]))
        _stored_here[folder] = rows
        return rows
    rows = SharedRows.__new__(SharedRows)
    try:
        rows.__setstate__(state)
    except StorageError as error:
        raise RowsElsewhereError(*error.args) from error
    return rows
