"""One family, sampled once by AusterityMH or by NUTS."""

import math
import platform
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pymc as pm
from pymc.model.transform.basic import remove_minibatched_nodes

import pymc_austerity
from examples.benchmarks.circumstances import versions
from examples.families.registry import Family
from examples.hard_models.references import quantities_of, summaries
from examples.hard_models.said import listening
from examples.hard_models.verdicts import Found, Record
from pymc_austerity import AusterityMH, GroupedMH


@dataclass(frozen=True)
class Lengths:
    """Draws of each of two chains, after as many tuning steps."""

    austerity: int
    nuts: int
    chains: int = 2


FULL, QUICK = Lengths(1_000, 500), Lengths(300, 100)

_OURS = tuple(
    getattr(pymc_austerity, name) for name in pymc_austerity.__all__ if name.endswith("Error")
)


class Stopwatch:
    """Processor time of the draws after tuning, as a callback of ``pm.sample``."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last: float | None = None

    def __call__(self, trace: Any, draw: Any) -> None:
        """Count the time since the draw before, if that was one of the same chain."""
        now = time.process_time()
        if not draw.tuning and self._last is not None:
            self.seconds += now - self._last
        self._last = None if draw.is_last else now


def run_austerity(family: Family, lengths: Lengths) -> Record:
    """Sample a family by AusterityMH as a user would, and note how it ends.

    Parameters
    ----------
    family : Family
        Model and settings.
    lengths : Lengths
        Of the chains.
    """
    watch, facts, error, refused = Stopwatch(), {}, "", False
    found: dict[str, Found] = {}
    with listening() as said:
        try:
            with family.build() as model:
                started = time.process_time()
                step = AusterityMH(vars=_ours(family, model), **family.settings)
                facts["setup"] = round(time.process_time() - started, 2)
                facts |= {"path": _path(step), "summary": step.summary}
                idata = pm.sample(
                    draws=lengths.austerity, tune=lengths.austerity, chains=lengths.chains,
                    step=step, callback=watch, var_names=_kept(family, model), cores=1,
                    random_seed=1, progressbar=False,
                )  # fmt: skip
        except Exception as problem:  # noqa: BLE001  how a run ends is a result
            error = f"{type(problem).__name__}: {problem}"
            refused = isinstance(problem, _OURS) and "\n" not in str(problem)
    if not error:
        facts["sampling"] = round(watch.seconds, 3)
        found = _found(idata, _names(family, model))
    return Record(found, said.about_draws, [], error, refused, facts | _versions())


def _path(step: Any) -> str:
    if isinstance(step, GroupedMH):
        return "grouped"
    constants = step.constants
    if "reason" in constants:
        return "NUTS"
    if constants["test"] == "exact":
        return "exact"
    return "sequential" if constants["control_variates"] else "no control variates"


def run_nuts(family: Family, lengths: Lengths) -> Record:
    """Sample a family by nutpie or, beside other step methods, by the NUTS of PyMC.

    Parameters
    ----------
    family : Family
        The model.
    lengths : Lengths
        Of the chains.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = family.build()
        if any(map(_is_minibatch, model.observed_RVs)):
            model = remove_minibatched_nodes(model)
        started = time.process_time()
        sample = _by_pymc if family.beside else _by_nutpie
        try:
            facts, draws = sample(family, model, lengths)
        except Exception as problem:  # noqa: BLE001  how a run ends is a result
            return Record(error=f"{type(problem).__name__}: {problem}", facts=_versions())
    facts["ready"] = round(facts["ready"] - started, 2)
    return Record(_found(draws, _names(family, model)), [], [], "", False, facts | _versions())


def run_reference(family: Family, lengths: Lengths) -> Record:
    """Moments that are known by other means than chains, as a record of a run.

    Parameters
    ----------
    family : Family
        One that has a reference.
    lengths : Lengths
        Of chains, of which there are none.
    """
    assert family.reference is not None
    moments = family.reference()
    found = {name: Found(each, 1.0, math.inf) for name, each in moments.items()}
    return Record(found, facts=_versions())


def _is_minibatch(variable: Any) -> bool:
    return "Minibatch" in type(variable.owner.op).__name__


def _by_nutpie(family: Family, model: pm.Model, lengths: Lengths) -> tuple[dict[str, Any], Any]:
    import nutpie

    compiled = nutpie.compile_pymc_model(model, var_names=_names(family, model))
    draws = max(lengths.nuts, family.nuts_draws) if lengths == FULL else lengths.nuts
    ready = time.process_time()
    idata = nutpie.sample(
        compiled, draws=draws, tune=draws, chains=lengths.chains, cores=1, seed=1,
        progress_bar=False,
    )  # fmt: skip
    # its chains do not tell when tuning ended
    half = (time.process_time() - ready) / 2.0
    return {"peer": "nutpie", "ready": ready, "sampling": round(half, 3)}, idata


def _by_pymc(family: Family, model: pm.Model, lengths: Lengths) -> tuple[dict[str, Any], Any]:
    watch, ready = Stopwatch(), time.process_time()
    with model:
        idata = pm.sample(
            draws=lengths.austerity, tune=lengths.austerity, chains=lengths.chains, cores=1,
            callback=watch, var_names=_names(family, model), random_seed=1, progressbar=False,
        )  # fmt: skip
    return {"peer": "NUTS of PyMC", "ready": ready, "sampling": round(watch.seconds, 3)}, idata


def _ours(family: Family, model: pm.Model) -> Sequence[Any] | None:
    if not family.beside:
        return None
    return [each for each in model.free_RVs if each.name != family.beside]


def _kept(family: Family, model: pm.Model) -> list[str]:
    """What is compared and, since PyMC checks the convergence of such alone, a free variable."""
    names, free = _names(family, model), [variable.name for variable in model.free_RVs]
    return names if set(names) & set(free) else [*names, free[0]]


def _names(family: Family, model: pm.Model) -> list[str]:
    free = [each.name for each in model.free_RVs if each.name != family.beside]
    return list(family.compared) or free


def _found(idata: Any, names: Sequence[str]) -> dict[str, Found]:
    draws = quantities_of(idata)
    wanted = {name: draws[name] for name in draws if name.partition("[")[0] in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: Found(*each) for name, each in summaries(wanted).items()}


def _versions() -> dict[str, str]:
    packages = {name: found for name, found in versions().items() if name in ("pymc", "nutpie")}
    return {"python": platform.python_version()} | packages


def least_rate(record: Record) -> float:
    """Effective draws per second of processor time after tuning, of the least entry."""
    return min(each.ess for each in record.found.values()) / record.facts["sampling"]
