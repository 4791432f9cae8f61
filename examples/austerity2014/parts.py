"""Parts of an experiment that are finished, kept in a file so that they are not run again."""

import json
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np


class Parts:
    """What was found so far, by the name of the part.

    Random numbers of a part depend on its name alone. So an experiment that was stopped and goes
    on finds what it would have found in one go.

    Parameters
    ----------
    file : Path
        Where finished parts are kept; read if it is there.
    seed : int
        Seed of the whole experiment.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "parts.json"
    >>> Parts(file, seed=1)("sum", lambda: 1 + 1)
    2
    >>> Parts(file, seed=1)("sum", lambda: 1 / 0)
    2
    """

    def __init__(self, file: Path, seed: int) -> None:
        self._file, self._seed = file, seed
        self._kept: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}

    def __call__(self, name: str, make: Callable[[], Any]) -> Any:
        """The part: as it was kept, else made now and kept."""
        if name not in self._kept:
            started = time.process_time()
            value = make()
            seconds = round(time.process_time() - started, 2)
            self._kept[name] = json.loads(json.dumps({"value": value, "seconds": seconds}))
            unfinished = self._file.with_suffix(".writing")
            unfinished.write_text(json.dumps(self._kept) + "\n")
            unfinished.replace(self._file)  # at once: a stopped command leaves the old file whole
            print(f"    {name}: {seconds:.1f} s", flush=True)
        return deepcopy(self._kept[name]["value"])

    @property
    def seconds(self) -> float:
        """Processor time of all parts."""
        return float(sum(part["seconds"] for part in self._kept.values()))

    def rng(self, name: str) -> np.random.Generator:
        """Source of the random numbers of a part."""
        return np.random.default_rng([self._seed, *name.encode()])

    def seed(self, name: str) -> int:
        """Seed of a part, for ``pm.sample``."""
        return int(self.rng(name).integers(2**31))

    def remove(self) -> None:
        """Forget everything: the whole is saved elsewhere."""
        self._file.unlink(missing_ok=True)
