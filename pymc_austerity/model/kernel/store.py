"""Generated modules, on disk, so that a second process has nothing to compile."""

import contextlib
import hashlib
import importlib.util
import os
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numba
import pytensor

from pymc_austerity.model.kernel import addresses, functions

__all__ = ["Generated", "module_of"]

_FOLDER = "pymc_austerity_kernels"


@dataclass(frozen=True, eq=False)
class Generated:
    """Functions of a generated module, compiled when they are called first.

    Attributes
    ----------
    source : str
        Python code.
    by_address : tuple of (str, int, numba type)
        Of the function that is called by its address: name, number of arguments, and what it
        returns.
    """

    by_address: ClassVar[tuple[str, int, Any]]
    source: str

    @property
    def address(self) -> int:
        """Of the function that is called so."""
        return int(self._by_address.address)

    @cached_property
    def _by_address(self) -> Any:
        name, n_arguments, result = self.by_address
        function = getattr(module_of(self.source), name)
        return addresses.compiled_function(function, n_arguments, result)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the compiled functions."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def module_of(source: str) -> ModuleType:
    """Import generated source, from a file where numba can keep what it compiles.

    Parameters
    ----------
    source : str
        Python code; ``CACHE`` in it is replaced by whether compiled code is kept.

    Notes
    -----
    The file's name is a hash of the source and of the versions, so a file never changes once it
    is written: processes may write it at the same time. Where the folder cannot be written, the
    code lives in memory and is compiled again by every process.
    """
    name = f"pymc_austerity_kernel_{_hash(source)}"
    if name in sys.modules:
        return sys.modules[name]
    path = _written(source.replace("CACHE", "True"), f"{name}.py")
    if path is None:
        module = ModuleType(name)
        exec(compile(source.replace("CACHE", "False"), f"<{name}>", "exec"), module.__dict__)
    else:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    sys.modules[name] = module  # once it is complete: an interrupt may come before
    return module


def _hash(source: str) -> str:
    helpers = [Path(str(module.__file__)).read_bytes().hex() for module in (addresses, functions)]
    versions = [numba.__version__, sys.version, *helpers]
    return hashlib.sha256("\n".join([source, *versions]).encode()).hexdigest()[:24]


def _written(source: str, name: str) -> Path | None:
    """Path of the file, or None where it cannot be written."""
    path = Path(pytensor.config.compiledir) / _FOLDER / name
    if path.is_file() and os.access(path.parent, os.W_OK):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".draft")
    except OSError:
        return None
    try:
        with os.fdopen(handle, "w") as file:
            file.write(source)
        os.utime(draft, (0, 0))  # numba compares times: a twin of another process is the same
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        return None
    return path
