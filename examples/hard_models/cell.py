"""One model, sampled once: what was found and what was said."""

import json
import platform
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm

import pymc_austerity
from examples.hard_models import references
from examples.hard_models.moments import Moments
from examples.hard_models.registry import HardModel
from examples.hard_models.said import listening
from examples.hard_models.verdicts import Found, Record
from pymc_austerity import AusterityMH, AusterityWarning

FULL = {"draws": 1_000, "tune": 1_000, "chains": 4}
"""What ``pm.sample`` does if nothing is said."""
QUICK = {"draws": 300, "tune": 300, "chains": 2}

_OURS = tuple(
    getattr(pymc_austerity, name) for name in pymc_austerity.__all__ if name.endswith("Error")
)
_OF_THE_INSTALLATION = (
    "PyTensor could not link to a BLAS",
    "ArviZ is undergoing",
    "faster on contiguous arrays",
)
"""Warnings that say nothing about a model."""


def run(hard: HardModel, lengths: dict[str, int]) -> Record:
    """Sample a model as a user would, and note how it ends.

    Parameters
    ----------
    hard : HardModel
        Model and settings.
    lengths : dict
        Draws, tuning steps and chains.
    """
    started = time.process_time()
    found: dict[str, Found] = {}
    error, refused = "", False
    facts: dict[str, Any] = {}
    with listening() as said:
        try:
            with hard.build():
                step = AusterityMH(**hard.settings)
                facts["summary"] = getattr(step, "summary", "")
                idata = pm.sample(
                    step=step,
                    **lengths,
                    cores=1,
                    random_seed=1,
                    progressbar=False,
                )
        except Exception as problem:  # noqa: BLE001  whatever ends a run is what we are after
            error = f"{type(problem).__name__}: {problem}"
            refused = isinstance(problem, _OURS) and "\n" not in str(problem)
    if not error:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _found(idata)
            facts |= _facts(idata)
    facts["seconds"] = round(time.process_time() - started, 1)
    foreign = list(dict.fromkeys(_in_words(each) for each in said.caught if _is_foreign(each)))
    return Record(found, said.about_draws, foreign, error, refused, facts)


def _found(idata: Any) -> dict[str, Found]:
    summaries = references.summaries(references.quantities_of(idata))
    return {name: Found(*each) for name, each in summaries.items()}


def _facts(idata: Any) -> dict[str, Any]:
    statistics = idata.sample_stats
    shared = {name: np.asarray(statistics[name].values, dtype=float) for name in statistics}
    facts = {
        name: float(shared[name].mean()) for name in ("accepted", "data_fraction") if name in shared
    }
    if "n_audited" in shared:
        facts["audited"], facts["wrong"] = (int(shared[n].sum()) for n in ("n_audited", "n_wrong"))
    return facts


def _is_foreign(warning: warnings.WarningMessage) -> bool:
    harmless = (FutureWarning, DeprecationWarning, PendingDeprecationWarning, ResourceWarning)
    if issubclass(warning.category, (AusterityWarning, *harmless)):
        return False
    if Path(warning.filename).parent.name == "hmc":  # of NUTS, with this package or without
        return False
    return not any(words in str(warning.message) for words in _OF_THE_INSTALLATION)


def _in_words(warning: warnings.WarningMessage) -> str:
    where = Path(warning.filename)
    return f"{warning.category.__name__}: {warning.message} ({where.parent.name}/{where.name})"


# ---------------------------------------------------------------------- files


def write(file: Path, record: Record) -> None:
    """Keep a record in a file."""
    content = asdict(record)
    content["facts"] |= {"python": platform.python_version(), "pymc": pm.__version__}
    file.write_text(json.dumps(content, separators=(",", ":")) + "\n")


def read(file: Path) -> Record:
    """The record that a file holds."""
    content = json.loads(file.read_text())
    found = {
        name: Found(Moments(**each["moments"]), each["r_hat"], each["ess"])
        for name, each in content.pop("found").items()
    }
    return Record(found=found, **content)
