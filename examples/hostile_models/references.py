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

from examples.hostile_models.moments import Moments
from examples.hostile_models.registry import HostileModel

__all__ = ["find", "quantities_of", "read", "summaries", "write"]

_NUTS = {"draws": 2_500, "tune": 1_500, "chains": 4, "cores": 1, "target_accept": 0.95}
_LARGEST_R_HAT, _LEAST_ESS = 1.01, 1_000.0


def find(hostile: HostileModel) -> dict[str, Moments] | None:
    """The right moments; None where there is no posterior."""
    if hostile.answer is None:
        return None
    if callable(hostile.answer):
        return dict(hostile.answer())
    return _by_nuts(hostile)


def _by_nuts(hostile: HostileModel) -> dict[str, Moments]:
    with hostile.build():
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
        raise RuntimeError(f"NUTS did not converge on {hostile.name}: no reference")
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
    standardized, squares = {}, {}
    for name, values in draws.items():
        deviations = (values - values.mean()) / _scale(values)
        standardized[name], squares[name] = deviations, deviations**2
    data = az.convert_to_dataset(standardized)
    ess, ess_mean, r_hat = az.ess(data), az.ess(data, method="mean"), az.rhat(data)
    ess_squares = az.ess(az.convert_to_dataset(squares), method="mean")
    found = {}
    for name, values in draws.items():
        scale, sd = _scale(values), float(standardized[name].std(ddof=1))
        error = _over_root(sd, ess_mean[name])
        # the error of a variance is that of a mean of squares, and d sd = d variance / (2 sd)
        of_squares = _over_root(float(squares[name].std()), ess_squares[name])
        sd_error = of_squares / (2.0 * sd) if sd > 0.0 else math.inf
        moments = Moments(float(values.mean()), sd * scale, error * scale, sd_error * scale)
        found[name] = (moments, float(r_hat[name].values), float(ess[name].values))
    return found


def _over_root(sd: float, ess: Any) -> float:
    """Standard error of a mean; infinite where the number of effective draws is unknown."""
    n = float(ess.values)
    return sd / math.sqrt(n) if n > 0.0 else math.inf


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
