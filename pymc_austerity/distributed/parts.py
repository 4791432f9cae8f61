"""Functions on their way to workers: compiled parts are sent to each worker once."""

import hashlib
import io
import pickle
import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any, BinaryIO, NamedTuple

import cloudpickle

from pymc_austerity.errors import SettingError
from pymc_austerity.model import AnyThread, OneAtATime


class Pickled:
    """A pickled object, which a process unpickles once for as long as the cluster keeps it there.

    Parameters
    ----------
    content : bytes
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._begin()

    def unpickled(self, parts: Mapping[str, "Pickled"]) -> Any:
        """The object, the same at every call.

        Parameters
        ----------
        parts : dict of str to Pickled
            What it refers to, by name.
        """
        with self._lock:
            if not self._found:
                self._found.append(_Unpickler(self._content, parts).load())
        return self._found[0]

    def _begin(self) -> None:
        self._lock, self._found = threading.Lock(), list[Any]()

    def __getstate__(self) -> bytes:
        return self._content

    def __setstate__(self, content: bytes) -> None:
        self._content = content
        self._begin()

    def __sizeof__(self) -> int:
        return len(self._content)


class Sent(NamedTuple):
    """An object that workers get when a task needs it.

    Attributes
    ----------
    itself : Future
        A `Pickled`.
    parts : dict of str to Future
        What it refers to, by name.
    """

    itself: Any
    parts: dict[str, Any]


class SentOnce:
    """Sends objects to workers, and what several of them refer to once.

    What is sent is the result of a task, so that the cluster hands it on to the workers that need
    it, and makes it again where it is lost.

    Parameters
    ----------
    client : dask.distributed.Client

    Attributes
    ----------
    n_bytes : int
        Of all parts.
    """

    def __init__(self, client: Any) -> None:
        self.n_bytes = 0
        self._client, self._run = client, uuid.uuid4().hex
        self._parts: dict[int, tuple[str, Any, Any]] = {}  # names, futures, and the objects

    def sent(self, obj: Any, shared: Collection[Any] = ()) -> Sent:
        """Pickle an object; compiled functions and what is shared are parts.

        Parameters
        ----------
        obj : object
        shared : collection of objects
            Parts beside compiled functions.

        Raises
        ------
        SettingError
            Something in it cannot be pickled.
        """
        numbers = {id(part) for part in shared}
        needed: dict[str, Any] = {}

        def name_of(part: Any) -> str | None:
            if not (isinstance(part, AnyThread | OneAtATime) or id(part) in numbers):
                return None
            if id(part) not in self._parts:
                content = _pickled(part, lambda inner: None)
                self.n_bytes += len(content)
                name = str(len(self._parts))
                self._parts[id(part)] = (name, self._submitted(content), part)
            name, needed[name], _ = self._parts[id(part)]
            return name

        return Sent(self._submitted(_pickled(obj, name_of)), needed)

    def _submitted(self, content: bytes) -> Any:
        key = f"pymc_austerity-{self._run}-{hashlib.sha256(content).hexdigest()[:16]}"
        return self._client.submit(Pickled, content, key=key, pure=False)


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: BinaryIO, name_of: Callable[[Any], str | None]) -> None:
        super().__init__(file)
        self._name_of = name_of

    def persistent_id(self, obj: Any) -> str | None:
        return self._name_of(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, parts: Mapping[str, Pickled]) -> None:
        super().__init__(io.BytesIO(content))
        self._parts = parts

    def persistent_load(self, pid: str) -> Any:
        return self._parts[pid].unpickled({})


def _pickled(obj: Any, name_of: Callable[[Any], str | None]) -> bytes:
    return pickled_by(lambda file: _Pickler(file, name_of), obj)


def pickled_by(pickler: Callable[[BinaryIO], pickle.Pickler], obj: Any) -> bytes:
    """What a pickler writes for an object.

    Raises
    ------
    SettingError
        Something in it cannot be pickled.
    """
    file = io.BytesIO()
    try:
        pickler(file).dump(obj)
    except (pickle.PickleError, TypeError, AttributeError) as error:
        raise SettingError(
            f"{type(obj).__name__} cannot be sent to workers ({error}): define its parts in a "
            "module that workers can import."
        ) from error
    return file.getvalue()
