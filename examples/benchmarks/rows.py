"""Memory, passes and time of rows that stay where they are: ``python -m examples.benchmarks.rows``.

A logistic regression with 20 covariates samples rows from every kind of store, each in a process of
its own. The system's cache forgets the store before each pass, as it would if there were more
rows than memory; so it does before each of the plain reads that set-up is compared with. Parts that
have been measured in full are kept in ``results/rows``, and measured again where they are named.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pymc as pm
from dask.distributed import Client, LocalCluster
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from examples.benchmarks import report, sources
from examples.benchmarks.memory import peak_megabytes
from examples.benchmarks.report import Measurement
from examples.benchmarks.rows_kept import keep, kept, page
from pymc_austerity import AusterityMH
from pymc_austerity.distributed import passes_on
from pymc_austerity.setup.source_rows import SourceRows
from pymc_austerity.sources import Source, open_source

SITE = Path(__file__).parents[2] / "docs" / "_generated" / "rows.md"
STORES = ("npy", "memory_map", "npy_folder", "zarr_array", "parquet", "feather", "dask_array")
SLOPES = np.linspace(-0.5, 0.5, sources.N_COLUMNS)
INTERCEPT = -0.3

MOST_MEGABYTES, MOST_PASSES, MOST_READS = 250.0, 15, 2.0
FULL_SIZE = 50_000_000
"""Rows from which on set-up has a bar: compilation takes seconds whatever their number."""

N_IN_MEMORY, N_LONG = 1_000_000, 100_000

MOST_OF_ONE_WORKER = 1 / 1.7


def main() -> None:
    """Measure and show; numbers of stores of full size are kept."""
    parser = argparse.ArgumentParser(prog="python -m examples.benchmarks.rows", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(PARTS)}; default all")
    parser.add_argument("--rows", type=int, default=FULL_SIZE, help="of each store")
    parser.add_argument("--folder", help="for one store at a time, 81 bytes a row")
    options = parser.parse_args()
    unknown = set(options.names) - set(PARTS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(PARTS)}")
    in_full = options.rows >= FULL_SIZE
    for name in options.names or [name for name in PARTS if not in_full or kept(name) is None]:
        title, measurements = PARTS[name](name, options.rows, options.folder)
        report.show({title: measurements})
        if in_full:
            keep(name, title, measurements)
            SITE.write_text(page(list(PARTS)) + "\n")
            print(f"Written to docs/_generated/{SITE.name}")


def in_a_process(task: str, *arguments: str) -> dict[str, float]:
    """What a function of `TASKS` returns in a process of its own."""
    child = subprocess.run(
        [sys.executable, "-m", "examples.benchmarks.rows", "--child", task, *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(child.stdout.splitlines()[-1])
    return found


# ---------------------------------------------------------------------- parts


def of_store(name: str, n_rows: int, folder: str | None) -> tuple[str, list[Measurement]]:
    """One kind of store."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="rows-") as place:
        sources.KINDS[name][0](Path(place), n_rows)
        write_outcomes(Path(place), n_rows)
        os.sync()  # what is not written yet would stay in the cache
        found = in_a_process("store", name, place)
    bar = MOST_READS if n_rows >= FULL_SIZE else None
    return f"{name}, {n_rows:,} x {sources.N_COLUMNS} float32", [
        Measurement("peak memory above imported PyMC", found["peak"], "MB", MOST_MEGABYTES),
        Measurement("passes over all rows", found["passes"], "passes", MOST_PASSES),
        Measurement("set-up", found["setup"], "s"),
        Measurement("plain read", found["plain"], "s"),
        Measurement("set-up / 15 plain reads", found["setup"] / 15 / found["plain"], bar=bar),
    ]


def of_generated(_: str, n_rows: int, __: str | None) -> tuple[str, list[Measurement]]:
    """Rows that are computed when they are read: twice the rows of a store, and a tenth of that."""
    few, many = (in_a_process("generated", str(n)) for n in (n_rows // 5, 2 * n_rows))
    return f"rows computed block by block, {n_rows // 5:,} and {2 * n_rows:,}", [
        Measurement("peak memory, many rows", many["peak"], "MB", MOST_MEGABYTES),
        Measurement("peak memory, many rows to few", many["peak"] / few["peak"], bar=1.2),
        Measurement("passes over many rows", many["passes"], "passes", MOST_PASSES),
        Measurement("set-up with many rows", many["setup"], "s"),
    ]


def of_memory(_: str, n_rows: int, folder: str | None) -> tuple[str, list[Measurement]]:
    """The same rows in memory and in files, in random order and sorted."""
    n_rows = min(n_rows, N_IN_MEMORY)
    with tempfile.TemporaryDirectory(dir=folder, prefix="rows-") as place:
        found = in_a_process("posterior", place, str(n_rows))
    return f"the same {n_rows:,} rows in files and in memory", [
        Measurement("draw to draw in memory", found["draw"], bar=1.5),
        Measurement(f"the same in a run of {N_LONG:,} draws", found["long_draw"], bar=1.5),
        Measurement("most that a mean differs, shuffled", found["shuffled"], "sd", 0.05),
        Measurement("most that a mean differs, sorted", found["sorted"], "sd", 0.05),
        Measurement("the same in Monte Carlo errors, shuffled", found["shuffled_errors"]),
        Measurement("the same in Monte Carlo errors, sorted", found["sorted_errors"]),
    ]


def of_workers(_: str, n_rows: int, folder: str | None) -> tuple[str, list[Measurement]]:
    """Set-up with passes on one worker of a cluster and on two, each a process with one thread."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="rows-") as place:
        sources.KINDS["memory_map"][0](Path(place), n_rows)
        write_outcomes(Path(place), n_rows)
        here, one, two = (in_a_process("workers", place, str(n)) for n in (0, 1, 2))
        alone = in_a_process("arithmetic", place)["seconds"]
        with ThreadPoolExecutor(2) as pool:
            both = [
                made["seconds"] for made in pool.map(in_a_process, ["arithmetic"] * 2, [place] * 2)
            ]
    bar = MOST_OF_ONE_WORKER if n_rows >= FULL_SIZE else None
    n_different = float(sum(each["sum"] != here["sum"] for each in (one, two)))
    return f"passes on workers, a memory map of {n_rows:,} rows", [
        Measurement("set-up on threads, without workers", here["setup"], "s"),
        Measurement("set-up with one worker", one["setup"], "s"),
        Measurement("set-up with two workers", two["setup"], "s"),
        Measurement("two workers to one, set-up", two["setup"] / one["setup"], bar=bar),
        Measurement("two workers to one, passes", two["passes"] / one["passes"]),
        Measurement("two processes to one, arithmetic alone", max(both) / (2.0 * alone)),
        Measurement("share of set-up in passes, one worker", one["passes"] / one["setup"]),
        Measurement("set-ups with other numbers", n_different, bar=0.0),
    ]


PARTS: dict[str, Callable[[str, int, str | None], tuple[str, list[Measurement]]]] = {
    **dict.fromkeys(STORES, of_store),
    "generated": of_generated,
    "memory": of_memory,
    "workers": of_workers,
}


# ---------------------------------------------------------------------- rows


def outcomes(x: NDArray, rng: np.random.Generator) -> NDArray[np.int8]:
    """Of a logistic regression."""
    chances = 1.0 / (1.0 + np.exp(-INTERCEPT - x @ SLOPES.astype(x.dtype)))
    return (rng.random(len(x)) < chances).astype(np.int8)


def write_outcomes(folder: Path, n_rows: int) -> None:
    """Beside the covariates, in a folder of their own."""
    (folder / "outcomes").mkdir()
    path, rng = folder / "outcomes" / "y.npy", np.random.default_rng(2)
    y = np.lib.format.open_memmap(path, "w+", "int8", (n_rows,))
    starts = range(0, n_rows, sources.CHUNK)
    for start, x in zip(starts, sources.blocks(n_rows), strict=True):
        y[start : start + len(x)] = outcomes(x, rng)
    y.flush()


class Generated:
    """Rows that are computed again whenever they are read.

    Parameters
    ----------
    n_rows : int
    of_block : callable
        Covariates or outcomes of a block, from the covariates and a generator.
    """

    block_length = 65_536

    def __init__(self, n_rows: int, of_block: Callable[[NDArray, np.random.Generator], NDArray]):
        self.n_rows, self._of_block = n_rows, of_block
        first = self._block(0)
        self.row_shape, self.dtype = first.shape[1:], first.dtype

    def _block(self, number: int) -> NDArray:
        n_rows = min(self.block_length, self.n_rows - number * self.block_length)
        rng = np.random.default_rng((1, number))
        x = rng.standard_normal((n_rows, sources.N_COLUMNS), dtype="float32")
        return self._of_block(x, rng)

    def read(self, start: int, stop: int) -> NDArray:
        """Consecutive rows."""
        length, parts = self.block_length, []
        for number in range(start // length, -(-stop // length)):
            begin = number * length
            parts.append(self._block(number)[max(start - begin, 0) : stop - begin])
        return np.concatenate(parts)

    def refuse_if_changed(self) -> None:
        """They cannot change."""


class Forgotten:
    """A source that the system's cache forgets before every pass.

    Parameters
    ----------
    source : Source
    folder : Path
        Of its files.
    """

    def __init__(self, source: Source, folder: Path) -> None:
        self._source, self._folder = source, folder

    def read(self, start: int, stop: int) -> NDArray:
        """Consecutive rows."""
        if start == 0:
            forget(self._folder)
        return self._source.read(start, stop)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def forget(folder: Path) -> None:
    """Drop the files of a folder from the system's cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# ---------------------------------------------------------------------- in a process of its own


def model_on(x: NDArray, y: NDArray) -> pm.Model:
    """The regression."""
    with pm.Model() as model:
        covariates = pm.Data("x", x)
        intercept = pm.Normal("intercept", 0.0, 2.0)
        slopes = pm.Normal("slopes", 0.0, 2.0, shape=x.shape[1])
        pm.Bernoulli("y", logit_p=intercept + covariates @ slopes, observed=y)
    return model


def constructed(data: dict[str, Any], **settings: Any) -> tuple[AusterityMH, pm.Model, float]:
    """The step method on all rows, its model, and the seconds of its construction."""
    example = np.zeros((10, sources.N_COLUMNS), "float32")
    with model_on(example, np.zeros(10, "int8")) as model:
        started = time.perf_counter()
        step = AusterityMH(data=data, rng=1, **settings)
        return step, model, time.perf_counter() - started


def sampled(step: AusterityMH, model: pm.Model, n_draws: int) -> tuple[NDArray, float]:
    """Draws, shape (n_draws, d), and seconds for each."""
    with model:
        idata = pm.sample(
            n_draws, tune=1_000, step=step, chains=1, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    posterior = idata.posterior
    draws = [np.atleast_2d(posterior[name].values[0].T).T for name in ("intercept", "slopes")]
    return np.column_stack(draws), float(posterior.attrs["sampling_time"]) / (n_draws + 1_000)


def measure_store(name: str, folder: str) -> dict[str, float]:
    """Peak memory, passes and seconds; the peak is that of construction and sampling."""
    imported = peak_megabytes()
    given, plain = sources.KINDS[name][1](Path(folder))
    outcomes_in = Path(folder, "outcomes", "y.npy")
    x, y = open_source(given, "x"), open_source(outcomes_in, "y")
    step, model, setup = constructed(
        {"x": Forgotten(x, Path(folder)), "y": Forgotten(y, outcomes_in.parent)}
    )
    sampled(step, model, 1_000)
    peak = peak_megabytes() - imported
    seconds = []
    for _ in range(3):
        forget(Path(folder))
        seconds.append(sources.seconds(plain) + sources.seconds(lambda: np.load(outcomes_in)))
    mean = float(np.mean(seconds))
    return {"peak": peak, "setup": setup, "plain": mean, "passes": passes_of(step)}


def measure_generated(n_rows: str) -> dict[str, float]:
    """The same for rows that are nowhere."""
    imported = peak_megabytes()
    data = {"x": Generated(int(n_rows), lambda x, _: x), "y": Generated(int(n_rows), outcomes)}
    step, model, setup = constructed(data)
    sampled(step, model, 1_000)
    peak = peak_megabytes() - imported
    return {"peak": peak, "setup": setup, "passes": passes_of(step)}


def passes_of(step: AusterityMH) -> int:
    """Passes over all rows so far."""
    (said,) = [line for line in step.target.details if "passes" in line]
    return int(said.rpartition(" in ")[2].split()[0])


def measure_posterior(folder: str, n_rows: str) -> dict[str, float]:
    """Means from files next to those from memory, and time of a draw."""
    n_draws = 20_000
    everything = Generated(int(n_rows), lambda x, _: x), Generated(int(n_rows), outcomes)
    x, y = (source.read(0, source.n_rows) for source in everything)
    model = model_on(x, y)
    with model:
        in_memory = AusterityMH(rng=1)
    expected = sampled(in_memory, model, n_draws)[0]
    found: dict[str, float] = {}
    for order in ("shuffled", "sorted"):
        rows = np.argsort(x[:, 0]) if order == "sorted" else np.arange(len(x))
        paths = {name: Path(folder, f"{name}.npy") for name in ("x", "y")}
        for path, array in zip(paths.values(), (x, y), strict=True):
            np.save(path, array[rows])
        step, example, _ = constructed(paths)
        draws = sampled(step, example, n_draws)[0]
        apart = abs(draws.mean(axis=0) - expected.mean(axis=0))
        errors = np.hypot(error_of_mean(draws), error_of_mean(expected))
        found[order] = float((apart / expected.std(axis=0)).max())
        found[f"{order}_errors"] = float((apart / errors).max())
        pair = (step, example), (in_memory, model)
        found["draw"] = ratio_of_draws(*pair, 1_000, 5)
        found["long_draw"] = ratio_of_draws(*pair, N_LONG, 3)
    return found


def measure_workers(folder: str, n_workers: str) -> dict[str, float]:
    """Seconds of set-up and of its passes, on threads where there is no worker."""
    given, _ = sources.KINDS["memory_map"][1](Path(folder))
    data = {"x": given, "y": Path(folder, "outcomes", "y.npy")}
    seconds: list[float] = []
    with ExitStack() as opened:
        if int(n_workers):
            cluster = LocalCluster(n_workers=int(n_workers), threads_per_worker=1)
            client = opened.enter_context(Client(opened.enter_context(cluster)))
            client.run(importlib.import_module, "pymc_austerity")
            opened.enter_context(passes_on(client))
        opened.enter_context(timed_passes(seconds))
        step, _, setup = constructed(data)
    numbers = [step.target.anchor.hessian, step.target.sampling.groups.largest]
    total = sum(float(array[np.isfinite(array)].sum()) for array in numbers)
    return {"setup": setup, "passes": sum(seconds), "sum": total}


def measure_arithmetic(folder: str) -> dict[str, float]:
    """Seconds of what passes do to rows: how much two processes at once gain at most."""
    given, _ = sources.KINDS["memory_map"][1](Path(folder))
    threadpool_limits(1)
    started = time.perf_counter()
    for start in range(0, len(given), sources.CHUNK):
        x = np.asarray(given[start : start + sources.CHUNK])
        chances = 1.0 / (1.0 + np.exp(-x @ SLOPES.astype(x.dtype)))
        _ = (x * (chances * (1.0 - chances))[:, None]).T @ x
    return {"seconds": time.perf_counter() - started}


@contextmanager
def timed_passes(seconds: list[float]) -> Iterator[None]:
    """Keep the seconds of every pass."""
    untimed = SourceRows.in_pieces

    def timed(*args: Any, **kwargs: Any) -> Iterator[Any]:
        started = time.perf_counter()
        yield from untimed(*args, **kwargs)
        seconds.append(time.perf_counter() - started)

    with mock.patch.object(SourceRows, "in_pieces", timed):
        yield


def ratio_of_draws(
    one: tuple[AusterityMH, pm.Model], other: tuple[AusterityMH, pm.Model], n_draws: int, n: int
) -> float:
    """Time of a draw to that of another step method, by the least of some runs by turns."""
    seconds = [[sampled(*each, n_draws)[1] for each in (one, other)] for _ in range(n)]
    of_one, of_other = np.min(seconds, axis=0)
    return float(of_one / of_other)


def error_of_mean(draws: NDArray) -> NDArray[np.float64]:
    """Monte Carlo errors from means of 50 batches."""
    batches = draws.reshape(50, -1, draws.shape[1]).mean(axis=1)
    errors: NDArray[np.float64] = batches.std(axis=0, ddof=1) / np.sqrt(50)
    return errors


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    "arithmetic": measure_arithmetic,
    "store": measure_store,
    "generated": measure_generated,
    "posterior": measure_posterior,
    "workers": measure_workers,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(TASKS[sys.argv[2]](*sys.argv[3:])))
    else:
        main()
