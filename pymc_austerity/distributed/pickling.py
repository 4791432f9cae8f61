"""What travels to workers, pickled so that each of them loads compiled functions once."""

import io
from collections.abc import Callable
from functools import lru_cache
from typing import Any, BinaryIO

import cloudpickle
import numpy as np

from pymc_austerity.errors import SettingError
from pymc_austerity.model import AnyThread, OneAtATime
from pymc_austerity.rows import SharedRows, Store


class Parcels:
    """Pickles objects that have compiled functions in common.

    Compiled functions are bytes within the bytes: the same at every call, and loaded once by the
    process that they are sent to, which takes seconds.

    Parameters
    ----------
    rows_as_paths : bool
        Whether stores of rows are sent as paths of their files.
    """

    def __init__(self, *, rows_as_paths: bool = True) -> None:
        self._rows_as_paths = rows_as_paths
        self._known: dict[int, tuple[Any, bytes]] = {}

    def pickled(self, obj: Any) -> bytes:
        """The bytes of an object.

        Raises
        ------
        SettingError
            Something in it cannot be pickled.
        """
        file = io.BytesIO()
        try:
            _Pickler(file, self._reduced).dump(obj)
        except (cloudpickle.pickle.PickleError, TypeError, AttributeError) as error:
            raise SettingError(
                f"{type(obj).__name__} cannot be sent to workers ({error}): define its parts in a "
                "module that workers can import."
            ) from error
        return file.getvalue()

    def _reduced(self, obj: Any) -> Any:
        if isinstance(obj, Store) and not self._rows_as_paths:
            return SharedRows, (obj.window(0, obj.n_rows), np.arange(obj.n_rows))
        if not isinstance(obj, AnyThread | OneAtATime):
            return NotImplemented
        if id(obj) not in self._known:
            self._known[id(obj)] = obj, cloudpickle.dumps(obj)
        return _loaded, (self._known[id(obj)][1],)


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: BinaryIO, reduced: Callable[[Any], Any]) -> None:
        super().__init__(file)
        self._reduced = reduced

    def reducer_override(self, obj: Any) -> Any:
        reduced = self._reduced(obj)
        return super().reducer_override(obj) if reduced is NotImplemented else reduced


@lru_cache(maxsize=64)
def _loaded(content: bytes) -> Any:
    return cloudpickle.loads(content)
