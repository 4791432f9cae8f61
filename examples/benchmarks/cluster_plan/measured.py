"""What passes take for each piece of the rows, measured on one core."""

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import cloudpickle
import numpy as np

from examples.benchmarks.rows import constructed, outcomes
from examples.benchmarks.sources import N_COLUMNS
from pymc_austerity.exact import Groups
from pymc_austerity.setup import source_rows
from pymc_austerity.setup.exact import normal_pairs
from pymc_austerity.setup.exact_from_sources import _bytes_of_row, pool_lengths
from pymc_austerity.setup.kept_passes import KeptPasses

__all__ = ["BYTES_OF_ROW", "Measured", "MeasuredPass", "measure", "pool_of"]

BYTES_OF_ROW = 4 * N_COLUMNS + 1
_BLOCK = 1_000_000


@dataclass
class MeasuredPass:
    """A pass; times are seconds of the processor.

    Attributes
    ----------
    name : str
    n_pieces : int
    evaluation, folding : float
        Of all pieces: on a worker, and where results are taken in.
    reading : float
        Of files that are in the system's cache.
    result_bytes : int
        Of all results.
    row_bytes : int
        Of that, rows that are kept, whose number does not grow with all rows.
    sent_bytes : int
        Of the function.
    sent_by_piece : int
        Of that, what grows with the number of pieces, for each.
    """

    name: str
    n_pieces: int = 0
    evaluation: float = 0.0
    folding: float = 0.0
    reading: float = 0.0
    result_bytes: int = 0
    row_bytes: int = 0
    sent_bytes: int = 0
    sent_by_piece: int = 0


@dataclass
class Measured:
    """A set-up.

    Attributes
    ----------
    n_rows, n_groups, n_pool : int
        Rows, groups, and rows of the pool.
    pool_bytes : int
    elsewhere : float
        Seconds of the processor between passes, compilation included.
    passes : list of MeasuredPass
    pools : dict of str to tuple of int
        Rows and bytes of the pool for other numbers of rows.
    """

    n_rows: int
    n_groups: int
    n_pool: int
    pool_bytes: int
    elsewhere: float
    passes: list[MeasuredPass]
    pools: dict[str, tuple[int, int]]

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)

    @classmethod
    def of_dict(cls, found: Mapping[str, Any]) -> "Measured":
        """From a file."""
        return cls(**{**found, "passes": [MeasuredPass(**each) for each in found["passes"]]})


def measure(n_rows: int, folder: Path, n_planned: Sequence[int]) -> Measured:
    """Set up the logistic regression of `examples.benchmarks.rows` on files of so many rows."""
    paths = _written(n_rows, folder)
    passes: list[MeasuredPass] = []
    started = time.process_time()
    with (
        mock.patch.object(source_rows, "pass_over", _measured_in(passes)),
        mock.patch.object(KeptPasses, "results", _named_in(passes)),
    ):
        step, _, _ = constructed(paths, setup_folder=folder)
    total = time.process_time() - started
    sampling = step.target.sampling
    used = sum(each.evaluation + each.folding + each.reading for each in passes)
    n_bytes = _bytes_of_row(sampling.everywhere)
    sample = sampling.everywhere.rows.sample
    by_name = {each.name: each for each in passes}
    by_name["first"].row_bytes = sum(a.nbytes for a in sample.window(0, sample.n_rows))
    by_name["rows"].row_bytes = sampling.pool.stored.rows.n_rows * (n_bytes + 8)  # and a place
    return Measured(
        n_rows=n_rows,
        n_groups=sampling.groups.n_groups,
        n_pool=sampling.pool.stored.rows.n_rows,
        pool_bytes=sampling.pool.stored.rows.n_rows * n_bytes,
        elsewhere=total - used,
        passes=passes,
        pools={str(n): pool_of(sampling.groups, n_rows, n, n_bytes) for n in n_planned},
    )


def pool_of(groups: Groups, n_rows: int, n_planned: int, n_bytes_of_row: int) -> tuple[int, int]:
    """Rows and bytes of the pool for another number of rows of the same kind.

    Groups have as many times the rows. In units of the posterior's standard deviations, bounds of
    third derivatives fall with the number of rows to the power 3/2.
    """
    times = n_planned / n_rows
    sizes = np.ceil(np.diff(groups.starts) * times).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    planned = replace(groups, starts=starts, largest=groups.largest * times**-1.5)
    dimension = groups.directions.shape[1]
    pairs = normal_pairs(dimension, np.random.default_rng(1))
    n_pool = pool_lengths(planned, pairs, 1, n_bytes_of_row).n_rows(planned)
    return n_pool, n_pool * n_bytes_of_row


def _written(n_rows: int, folder: Path) -> dict[str, Path]:
    paths = {name: folder / f"{name}.npy" for name in ("x", "y")}
    shape = n_rows, N_COLUMNS
    x = np.lib.format.open_memmap(paths["x"], "w+", dtype=np.float32, shape=shape)
    y = np.lib.format.open_memmap(paths["y"], "w+", dtype=np.int8, shape=shape[:1])
    for number, start in enumerate(range(0, n_rows, _BLOCK)):
        stop = min(start + _BLOCK, n_rows)
        rng = np.random.default_rng([2, number])
        x[start:stop] = rng.standard_normal((stop - start, N_COLUMNS), dtype=np.float32)
        y[start:stop] = outcomes(x[start:stop], rng)
    return paths


def _named_in(passes: list[MeasuredPass]) -> Callable[..., Iterator[Any]]:
    """What `KeptPasses.results` does where nothing was kept, with a record of what each pass is."""

    def results(_: KeptPasses, arguments: Any, ranges: Any, run: Any) -> Iterator[Any]:
        passes.append(MeasuredPass(arguments[0]))
        yield from run(ranges)

    return results


def _bytes_by_piece(function: Any, n_pieces: int) -> int:
    """Of arrays in a closure that have an entry for each piece."""
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    arrays = [each for each in held if isinstance(each, np.ndarray)]
    return sum(a.nbytes // n_pieces for a in arrays if a.ndim and len(a) == n_pieces)


def _measured_in(passes: list[MeasuredPass]) -> Callable[..., Iterator[Any]]:
    """What `pass_over` does, on one thread, with a record of each part."""

    def pass_over(
        function: Any, sources: Mapping[str, Any], ranges: Sequence[tuple[int, int]], **_: Any
    ) -> Iterator[Any]:
        found = passes[-1]
        found.n_pieces = len(ranges)
        found.sent_bytes = len(cloudpickle.dumps((function, dict(sources))))
        found.sent_by_piece = _bytes_by_piece(function.function, len(ranges))
        for start, stop in ranges:
            begin = time.thread_time()
            raw = {name: source.read(start, stop) for name, source in sources.items()}
            has_read = time.thread_time()
            result = function((start, stop, raw))
            has_evaluated = time.thread_time()
            content = pickle.dumps(result)
            has_packed = time.thread_time()
            yield pickle.loads(content)
            found.reading += has_read - begin
            found.evaluation += has_evaluated - has_read
            found.folding += time.thread_time() - has_packed
            found.result_bytes += len(content)

    return pass_over
