"""The right answers: by formula, by quadrature or by a long run of NUTS, kept in files."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import arviz as az
import numpy as np
import pymc as pm
from numpy.typing import NDArray

from examples.hard_models.moments import Moments
from examples.hard_models.registry import HardModel

_NUTS = {"draws": 2_500, "tune": 1_500, "chains": 4, "cores": 1, "target_accept": 0.95}
_LARGEST_R_HAT, _LEAST_ESS = 1.01, 1_000.0


def find(hard: HardModel) -> dict[str, Moments] | None:
    """The right moments; None where there is no posterior."""
    if hard.answer is None:
        return None
    if callable(hard.answer):
        return dict(hard.answer())
    return _by_nuts(hard)


def _by_nuts(hard: HardModel) -> dict[str, Moments]:
    with hard.build():
        idata = pm.sample(
            **_NUTS,
            random_seed=20140621,
            progressbar=False,
            compute_convergence_checks=False,
        )
    draws = quantities_of(idata)
    found = {name: moments for name, (moments, _, _) in summaries(draws).items()}
    worst = [(r_hat, ess) for _, r_hat, ess in summaries(draws).values()]
    if max(r_hat for r_hat, _ in worst) > _LARGEST_R_HAT or min(e for _, e in worst) < _LEAST_ESS:
        raise RuntimeError(f"NUTS did not converge on {hard.name}: no reference")
    return found


def quantities_of(idata: Any) -> dict[str, NDArray]:
    """Draws of every entry of every free variable, shape (chain, draw), as ``name[index]``."""
    draws = {}
    for name, variable in idata.posterior.data_vars.items():
        values = np.asarray(variable.values, dtype=float)
        for index in np.ndindex(values.shape[2:]):
            where = f"[{','.join(map(str, index))}]" if index else ""
            draws[f"{name}{where}"] = values[(..., *index)]
    return draws


def summaries(draws: Mapping[str, NDArray]) -> dict[str, tuple[Moments, float, float]]:
    """Moments with Monte Carlo errors, r_hat and effective draws of each quantity."""
    if not draws:
        return {}
    values = np.stack(list(draws.values()), axis=-1)
    scales = np.array([_scale(each) for each in draws.values()])
    standardized = (values - values.mean(axis=(0, 1))) / scales
    data, squares = _dataset(standardized), _dataset(standardized**2)
    ess, ess_mean, r_hat, ess_squares = (
        np.asarray(each["x"].values, dtype=float)
        for each in (
            az.ess(data),
            az.ess(data, method="mean"),
            az.rhat(data),
            az.ess(squares, method="mean"),
        )
    )
    sds = standardized.std(axis=(0, 1), ddof=1)
    errors = _over_roots(sds, ess_mean)
    # the error of a variance is that of a mean of squares, and d sd = d variance / (2 sd)
    of_squares = _over_roots((standardized**2).std(axis=(0, 1)), ess_squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        sd_errors = np.where(sds > 0.0, of_squares / (2.0 * sds), math.inf)
    means = values.mean(axis=(0, 1))
    numbers = zip(means, sds * scales, errors * scales, sd_errors * scales, strict=True)
    moments = [Moments(*map(float, each)) for each in numbers]
    found = zip(moments, map(float, r_hat), map(float, ess), strict=True)
    return dict(zip(draws, found, strict=True))


def _dataset(values: NDArray) -> Any:
    return az.convert_to_dataset({"x": values})


def _over_roots(sds: NDArray, ess: NDArray) -> NDArray[np.float64]:
    """Standard errors of means; infinite where the number of effective draws is unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ess > 0.0, sds / np.sqrt(ess), math.inf)


def _scale(values: NDArray) -> float:
    """A positive number of the size of the deviations, so that their squares do not underflow."""
    largest = float(np.abs(values - values.mean()).max())
    return largest if np.isfinite(largest) and largest > 0.0 else 1.0


def write(file: Path, moments: Mapping[str, Moments] | None) -> None:
    """Keep the right answer in a file."""
    content = None if moments is None else {name: asdict(each) for name, each in moments.items()}
    file.write_text(json.dumps(content, indent=1) + "\n")


def read(file: Path) -> dict[str, Moments] | None:
    """The right answer that a file holds."""
    content = json.loads(file.read_text())
    return content and {name: Moments(**each) for name, each in content.items()}
