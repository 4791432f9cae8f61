"""Results of passes in a folder that the user names, so that set-up can resume after a kill."""

import hashlib
import io
import logging
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytensor

from pymc_austerity._pymc import Constant, RandomGeneratorType, SharedVariable, ancestors
from pymc_austerity.errors import SettingError, StorageError
from pymc_austerity.model import RowLikelihood
from pymc_austerity.sources import Source

_log = logging.getLogger("pymc.austerity")


class PassCache:
    """Results of the passes of one set-up, found again by the same set-up in another process.

    Each pass has a file, whose name is a digest of what the results are computed from. It is used
    only if the first of its results is the same when it is computed again.

    Parameters
    ----------
    folder : Path
    about : sequence
        What results depend on, except for the arguments of passes.

    Raises
    ------
    StorageError
        The folder cannot be made, or is not writable.
    """

    def __init__(self, folder: Path, about: Sequence[Any]) -> None:
        self._folder, self._about = folder, about
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._write(folder / "trial", None)
            (folder / "trial").unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"setup_folder={str(folder)!r} cannot be used ({error.strerror}): name a folder "
                "that this process may write to."
            ) from error

    def results(
        self,
        arguments: Sequence[Any],
        ranges: Sequence[tuple[int, int]],
        run: Callable[[Sequence[tuple[int, int]]], Iterator[Any]],
    ) -> Iterator[Any]:
        """Results of a pass for each piece, in order.

        Parameters
        ----------
        arguments : sequence
            Name of the pass, and what it depends on besides the rows and the model.
        ranges : sequence of (start, stop)
            The pieces.
        run : callable
            From some of the ranges to the results of these pieces; a result depends on its piece
            alone.
        """
        path = self._folder / f"{_digest(self._about, arguments, ranges)}.pass"
        if path.exists():
            found = pickle.loads(path.read_bytes())
            if _digest(*run(ranges[:1])) == _digest(found[0]):
                _log.info(f"Set-up goes on with the results of a pass over the rows in {path}.")
                yield from found
                return
        done = []
        for result in run(ranges):
            done.append(result)
            yield result
        self._write(path, done)

    def _write(self, path: Path, content: Any) -> None:
        """Write a file that gets its name only when all of it is written."""
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(content))
        unfinished.replace(path)


def about_set_up(sources: Mapping[str, Source], split: RowLikelihood, *other: Any) -> list[Any]:
    """What tells a set-up from others: its rows, its model, and what else it depends on.

    Raises
    ------
    SettingError
        A source cannot tell another process whether its rows have changed.
    """
    for name, source in sources.items():
        if getattr(source, "identity", None) is None:
            raise SettingError(
                "setup_folder= is not possible, because another process cannot see whether "
                f"data[{name!r}] has changed, as it can for files: leave it out."
            )
    rows = [
        (name, s.n_rows, str(s.dtype), getattr(s, "identity", None)) for name, s in sources.items()
    ]
    recipes = [leaf.recipe for leaf in split.leaves if leaf.recipe is not None]
    graphs = [split.rows, split.full, split.row_free, *recipes]
    known = [v for v in ancestors(graphs) if not isinstance(v.type, RandomGeneratorType)]
    constants = [v.data for v in known if isinstance(v, Constant)]
    shared = [v.get_value(borrow=True) for v in known if isinstance(v, SharedVariable)]
    return [rows, pytensor.dprint(graphs, file="str", print_type=True), constants, shared, *other]


def _digest(*values: Any) -> str:
    """Digest of text, numbers, arrays and what is made of them; equal values have the same."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.fast = True  # whether two of the values are one object makes no difference
    pickler.dump(values)
    return hashlib.sha256(file.getvalue()).hexdigest()
