"""One model of a catalogue, sampled by one sampler."""

import contextlib
import importlib.util
import json
import logging
import os
import resource
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pymc as pm
from numpy.typing import NDArray

import pymc_austerity
from examples.hard_models.references import quantities_of, summaries
from pymc_austerity import AusterityMH

LENGTHS = {"draws": 500, "tune": 500, "chains": 2}
_MAX_R_HAT, _MIN_ESS, _SEED_OF_DATA = 1.05, 50.0, 1
_MOST_ENTRIES = 300
"""Entries whose convergence is computed, evenly spread over all variables."""

_OURS = tuple(
    getattr(pymc_austerity, name) for name in pymc_austerity.__all__ if name.endswith("Error")
)


@dataclass(frozen=True)
class Run:
    """How one sampler fared on one model.

    Attributes
    ----------
    means, errors, sds : dict of str to float
        Mean of every entry of the free variables, its Monte Carlo standard error, and the standard
        deviation of the draws.
    r_hat, ess : float
        Of the entry that mixed worst.
    seconds : float
        Processor time of everything, compilation included, after the model was built.
    path : str
        What sampled: the class of the step method.
    reason : str
        Why it is what it is.
    error : str
        What ended the run; empty if nothing did.
    refused : bool
        Whether that was an error of this package in one sentence.
    """

    means: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    sds: dict[str, float] = field(default_factory=dict)
    r_hat: float = float("nan")
    ess: float = 0.0
    seconds: float = 0.0
    path: str = ""
    reason: str = ""
    error: str = ""
    refused: bool = False


def is_mixed(run: Run) -> bool:
    """Whether a run ended, its chains agree and have some effective draws."""
    return not run.error and run.r_hat <= _MAX_R_HAT and run.ess >= _MIN_ESS


def run(file: Path, out: Path, sampler: str, seed: int = 1) -> None:
    """Sample a model and write the result.

    Parameters
    ----------
    file : path
        Has ``build_model()``.
    out : path
        Where the result goes.
    sampler : {"ours", "nuts"}
    seed : int
    """
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    with quiet(file.parent):
        model = load_model(file)
        started = _processor_seconds()
        path = reason = ""
        try:
            with model:
                step = AusterityMH() if sampler == "ours" else None
                path, reason = type(step).__name__, getattr(step, "reason", "")
                pymcs = {"init": "jitter+adapt_diag"} if step is None else {}
                idata = pm.sample(
                    step=step, **LENGTHS, cores=1, random_seed=seed, progressbar=False,
                    compute_convergence_checks=False, **pymcs,
                )  # fmt: skip
        except Exception as problem:  # noqa: BLE001  how a run ends is a result
            seconds = _processor_seconds() - started
            refused = isinstance(problem, _OURS) and "\n" not in str(problem)
            error = f"{type(problem).__name__}: {problem}"[:500]
            write(out, Run(error=error, refused=refused, seconds=seconds, path=path))
            return
        seconds = _processor_seconds() - started
        free = {variable.name for variable in model.free_RVs}
        draws = {k: v for k, v in quantities_of(idata).items() if k.partition("[")[0] in free}
        write(out, _found(draws, seconds, path, reason))


def _found(draws: dict[str, NDArray], seconds: float, path: str, reason: str) -> Run:
    """What the draws of at most some entries say; those that do not vary are left out."""
    varying = {name: values for name, values in draws.items() if np.ptp(values) > 0.0}
    names = list(varying)[:: -(-len(varying) // _MOST_ENTRIES) or 1]
    found = summaries({name: varying[name] for name in names})
    means = {name: moments.mean for name, (moments, _, _) in found.items()}
    errors = {name: moments.mean_error for name, (moments, _, _) in found.items()}
    sds = {name: moments.sd for name, (moments, _, _) in found.items()}
    r_hat = float(np.nanmax([each for _, each, _ in found.values()]))
    ess = float(np.nanmin([each for _, _, each in found.values()]))
    return Run(means, errors, sds, r_hat, ess, seconds, path, reason)


def _processor_seconds() -> float:
    """Of this process and of the compilers that it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def load_model(file: Path) -> pm.Model:
    """The model of a file; one that makes its data at random makes the same each time."""
    np.random.seed(_SEED_OF_DATA)  # noqa: NPY002  what the files themselves may draw from
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    built = module.build_model()
    return built[0] if isinstance(built, tuple) else built


@contextlib.contextmanager
def quiet(folder: Path) -> Iterator[None]:
    """In the folder of the models, which may import each other, with what they print left out."""
    before = Path.cwd()
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))


def write(file: Path, result: Run) -> None:
    """Keep a result in a file."""
    file.write_text(json.dumps(asdict(result)) + "\n")


def read(file: Path) -> Run:
    """The result that a file holds."""
    return Run(**json.loads(file.read_text()))
