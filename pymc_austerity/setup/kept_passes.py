"""Results of passes, on disk until set-up has ended, so that a set-up can resume after a kill."""

import dataclasses
import hashlib
import logging
import math
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pymc_austerity.setup import kept_files
from pymc_austerity.setup.kept_files import Part

__all__ = ["KeptPasses", "digest_of"]

_log = logging.getLogger("pymc.austerity")

_SECONDS_BETWEEN_WRITES = 30.0
"""Seconds of work that may be lost; a shorter set-up writes nothing unless a folder is named."""

_MOST_BYTES_WAITING = 2**25

_PREFIX = "pymc_austerity-passes-"

_SECONDS_UNTIL_OLD = 7 * 86_400.0
"""Seconds after which the temporary folder of a set-up that was not tried again is removed."""

Ranges: TypeAlias = Sequence[tuple[int, int]]
Run: TypeAlias = Callable[[Ranges], Iterator[Any]]


class KeptPasses:
    """Results of the passes of one set-up, found again by the same set-up in another process.

    Results are filed under what they were computed from: a digest of the rows, of the model, of
    versions and of this package's own code, and the arguments of the pass. One piece is evaluated
    again, and all results are dropped unless its result is the same to the last bit.

    Parameters
    ----------
    about : str
        Digest of everything that the results depend on, except the arguments of passes.
    folder : Path, optional
        Where results are kept, even after set-up has ended. By default they are written to a folder
        for temporary files after half a minute, and are removed when set-up ends.

    Raises
    ------
    StorageError
        The folder cannot be made, or is not writable.
    """

    def __init__(self, about: str, folder: Path | None = None) -> None:
        self._about, self._stays = about, folder is not None
        self._folder = folder or Path(tempfile.gettempdir(), _PREFIX + about[:32])
        self._waiting: dict[str, tuple[int, list[bytes]]] = {}
        self._n_bytes_waiting, self._written_at = 0, time.monotonic()
        self._n_found, self._share, self._found_at, self._has_said = 0, 0.0, 0.0, False
        if folder is not None:
            kept_files.make_folder(folder)
            kept_files.remove_left_over([folder], math.inf)
        else:
            others = list(self._folder.parent.glob(_PREFIX + "*"))
            kept_files.remove_left_over(others, _SECONDS_UNTIL_OLD)
        self._may_write = True

    def results(self, arguments: Sequence[Any], ranges: Ranges, run: Run) -> Iterator[Any]:
        """Results of a pass for each piece, in order: those that were found, then the others.

        Parameters
        ----------
        arguments : sequence
            Name of the pass, and what it depends on besides the rows and the model: text, numbers
            and arrays.
        ranges : sequence of (start, stop)
            The pieces.
        run : callable
            From some of the ranges to the results of these pieces; a result depends on its piece
            alone.
        """
        key, n_done = digest_of(self._about, arguments, np.array(ranges)), 0
        for part in self._parts(key):
            found = _unpickled(part) if part.start == n_done else None
            if found is None:
                continue
            if not n_done and not _is_reproduced(found, ranges, run):
                self._drop(key)
                break
            yield from found
            n_done, self._found_at = part.stop, max(self._found_at, part.written_at)
        if n_done == len(ranges):
            self._n_found += 1
            return
        self._share = n_done / len(ranges)
        self._say()
        for number, result in enumerate(run(ranges[n_done:]), n_done):
            self._add(key, number, result)
            yield result
        if self._stays:
            self._write()

    def end(self) -> None:
        """End set-up: remove the results, unless the user named the folder."""
        self._share = 0.0
        self._say()
        self._waiting = {}
        if not self._stays and kept_files.is_own(self._folder):
            shutil.rmtree(self._folder, ignore_errors=True)

    def _parts(self, key: str) -> list[Part]:
        is_trusted = self._stays or kept_files.is_own(self._folder)
        return kept_files.parts_in(self._folder, key) if is_trusted else []

    def _drop(self, key: str) -> None:
        for part in self._parts(key):
            part.path.unlink(missing_ok=True)

    def _add(self, key: str, number: int, result: Any) -> None:
        if not self._may_write:
            return
        content = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
        self._waiting.setdefault(key, (number, []))[1].append(content)
        self._n_bytes_waiting += len(content)
        is_late = time.monotonic() - self._written_at > _SECONDS_BETWEEN_WRITES
        if is_late or self._n_bytes_waiting > _MOST_BYTES_WAITING:
            self._write()

    def _write(self) -> None:
        """Write new results, a file for each pass; if that fails, set-up continues without them."""
        try:
            for key, (start, contents) in self._waiting.items():
                kept_files.write(self._folder, key, start, contents)
        except OSError as error:
            self._may_write = False
            _log.warning(
                f"Results of set-up are no longer kept in {self._folder} ({error.strerror}): "
                "set-up begins anew if it is killed."
            )
        self._waiting, self._n_bytes_waiting = {}, 0
        self._written_at = time.monotonic()

    def _say(self) -> None:
        """Log once which results were found, before the first pass that has to be made."""
        if self._has_said or not self._found_at:
            return
        self._has_said = True
        passes = f"{self._n_found} pass{'' if self._n_found == 1 else 'es'}"
        share = f" and {self._share:.0%} of another one" if self._share else ""
        _log.info(
            f"Set-up goes on with results of {passes} over the rows{share}, which were found in "
            f"{self._folder}, from {_ago(time.time() - self._found_at)} ago."
        )


def digest_of(*values: Any) -> str:
    """Digest of text, numbers, arrays, and tuples, lists, dictionaries and dataclasses of them.

    Examples
    --------
    >>> import numpy as np
    >>> digest_of("sum", np.zeros(2)) == digest_of("sum", np.zeros(2))
    True
    >>> digest_of("sum", np.zeros(2)) == digest_of("sum", np.zeros((2, 1)))
    False
    """
    digest = hashlib.blake2b(digest_size=20)
    _feed(digest, values)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, tuple | list):
        digest.update(f"({len(value)}".encode())
        for each in value:
            _feed(digest, each)
    elif isinstance(value, dict):
        _feed(digest, [pair for name in sorted(value) for pair in (name, value[name])])
    elif isinstance(value, np.ndarray | np.generic):
        digest.update(f"{np.shape(value)} {value.dtype.str}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _feed(digest, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    elif value is None or isinstance(value, bool | int | float | str):
        digest.update(f"{type(value).__name__} {value!r};".encode())
    else:
        raise TypeError(f"{type(value).__name__} has no digest.")


def _is_reproduced(found: Sequence[Any], ranges: Ranges, run: Run) -> bool:
    """Whether the piece in the middle gives the same result again."""
    middle = len(found) // 2
    (again,) = run([ranges[middle]])
    return digest_of(again) == digest_of(found[middle])


def _unpickled(part: Part) -> list[Any] | None:
    """The results of a part; None where they cannot be read."""
    pickled = kept_files.read(part)
    return None if pickled is None else [pickle.loads(each) for each in pickled]


def _ago(seconds: float) -> str:
    for unit, length in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds > 2.0 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
