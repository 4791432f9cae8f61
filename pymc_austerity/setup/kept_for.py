"""Which set-up results of passes belong to: one with the same rows, model, versions and code."""

import hashlib
import platform
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytensor
from numpy.typing import NDArray

from pymc_austerity.errors import SettingError
from pymc_austerity.model import NoDigestError, RowLikelihood, graph_digest
from pymc_austerity.setup.kept_passes import KeptPasses, digest_of
from pymc_austerity.setup.source_rows import SourceRows

__all__ = ["kept_passes"]

_LIBRARIES = "numpy", "scipy", "numba", "llvmlite", "pytensor", "pymc"


def kept_passes(
    rows: SourceRows,
    split: RowLikelihood,
    start: Sequence[NDArray],
    rng: np.random.Generator,
    folder: Path | None,
) -> KeptPasses | None:
    """Storage of results of passes; None where no process could check that they are still valid.

    Parameters
    ----------
    rows : SourceRows
    split : RowLikelihood
        Of the model.
    start : sequence of arrays
        Values of the value variables.
    rng : numpy.random.Generator
        Generator of set-up, as it is before the passes.
    folder : Path, optional
        The one that the user named.

    Raises
    ------
    SettingError
        The user named a folder, but nothing can be kept.
    StorageError
        The folder cannot be used.
    """
    try:
        model = _digest_of_model(split)
        identities = _identities(rows)
    except _NotToldError as reason:
        if folder is None:
            return None
        raise SettingError(
            f"setup_folder= is not possible, because {reason}: leave it out."
        ) from None
    about = digest_of(
        model,
        identities,
        rows.fingerprint,
        list(start),
        repr(rng.bit_generator.state),
        pytensor.config.floatX,
        [platform.machine(), platform.python_version(), *map(version, _LIBRARIES)],
        _digest_of_package(),
    )
    return KeptPasses(about, folder)


class _NotToldError(ValueError):
    """It cannot be checked whether something has changed; the message is a clause."""


def _digest_of_model(split: RowLikelihood) -> str:
    leaves = [leaf.placeholder for leaf in split.leaves]
    recipes = [leaf.recipe for leaf in split.leaves if leaf.recipe is not None]
    try:
        return graph_digest([split.rows, split.full, split.exact, *leaves, *recipes])
    except NoDigestError as error:
        raise _NotToldError(
            f"{error} in the model cannot be compared with that of another process"
        ) from None


def _identities(rows: SourceRows) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, source in rows.sources.items():
        identity = getattr(source, "identity", None)
        if identity is None:
            raise _NotToldError(
                f"another process cannot see whether data[{name!r}] has changed, as it can for "
                "files"
            )
        found[name] = f"{source.n_rows} {source.dtype} {identity}"
    return found


@cache
def _digest_of_package() -> str:
    """Digest of all code of this package, so that no other version uses the results."""
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
