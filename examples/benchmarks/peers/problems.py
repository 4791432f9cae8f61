"""The posteriors of the comparison: rows, and the PyMC model as one writes it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

Rows = dict[str, NDArray]


@dataclass(frozen=True)
class Problem:
    """One posterior.

    Attributes
    ----------
    family : str
        Kind of the model; the NumPyro version goes by the same name.
    rows : dict of arrays, each of shape (n_rows,) or (n_rows, k)
        Data.
    model : callable
        Makes the PyMC model of the rows; of mini-batches of them, if it is given these.
    positive : tuple of str
        Parameters that are compared on a log scale.
    """

    family: str
    rows: Rows
    model: Callable[..., pm.Model]
    positive: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows["y"])


# ---------------------------------------------------------------------- models


def observed(rows: Rows, batch: Any) -> tuple[Any, dict[str, Any]]:
    """Rows that the likelihood reads, all or a mini-batch, and what makes their sum that of all."""
    if batch is None:
        return rows, {"observed": rows["y"]}
    return batch, {"observed": batch["y"], "total_size": len(rows["y"])}


def logistic_model(rows: Rows, batch: Any = None) -> pm.Model:
    """Logistic regression with standard normal priors."""
    with pm.Model() as model:
        read, y = observed(rows, batch)
        beta = pm.Normal("beta", 0.0, 1.0, shape=rows["x"].shape[1])
        pm.Bernoulli("y", logit_p=read["x"] @ beta, **y)
    return model


def rare_model(rows: Rows, batch: Any = None) -> pm.Model:
    """Logistic regression with an intercept that may be far from zero."""
    with pm.Model() as model:
        read, y = observed(rows, batch)
        intercept = pm.Normal("intercept", 0.0, 10.0)
        beta = pm.Normal("beta", 0.0, 2.0, shape=rows["x"].shape[1])
        pm.Bernoulli("y", logit_p=intercept + read["x"] @ beta, **y)
    return model


def poisson_model(rows: Rows, batch: Any = None) -> pm.Model:
    """Counts with an exposure."""
    with pm.Model() as model:
        read, y = observed(rows, batch)
        beta = pm.Normal("beta", 0.0, 1.0, shape=rows["x"].shape[1])
        pm.Poisson("y", read["exposure"] * pm.math.exp(read["x"] @ beta), **y)
    return model


def student_t_model(rows: Rows, batch: Any = None) -> pm.Model:
    """Robust regression with unknown scale and degrees of freedom."""
    with pm.Model() as model:
        read, y = observed(rows, batch)
        beta = pm.Normal("beta", 0.0, 1.0, shape=rows["x"].shape[1])
        sigma = pm.HalfNormal("sigma", 1.0)
        nu = pm.Gamma("nu", 2.0, 0.1)
        pm.StudentT("y", nu=nu, mu=read["x"] @ beta, sigma=sigma, **y)
    return model


def hierarchical_model(rows: Rows, batch: Any = None) -> pm.Model:
    """Logistic regression with an intercept for each group, centered."""
    n_groups = int(rows["group"].max()) + 1
    with pm.Model() as model:
        read, y = observed(rows, batch)
        center = pm.Normal("center", 0.0, 1.0)
        spread = pm.HalfNormal("spread", 1.0)
        alpha = pm.Normal("alpha", center, spread, shape=n_groups)
        beta = pm.Normal("beta", 0.0, 1.0, shape=rows["x"].shape[1])
        pm.Bernoulli("y", logit_p=alpha[read["group"]] + read["x"] @ beta, **y)
    return model


def saturation_model(rows: Rows, batch: Any = None) -> pm.Model:
    """A response that levels off (Michaelis and Menten), with unknown noise."""
    with pm.Model() as model:
        read, y = observed(rows, batch)
        top = pm.LogNormal("top", 1.0, 1.0)
        half = pm.LogNormal("half", 1.0, 1.0)
        sigma = pm.HalfNormal("sigma", 5.0)
        pm.Normal("y", top * read["x"] / (half + read["x"]), sigma, **y)
    return model


# ---------------------------------------------------------------------- rows


def design(rng: np.random.Generator, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    """A column of ones and standard normal covariates."""
    x = rng.standard_normal((n_rows, n_columns))
    x[:, 0] = 1.0
    return x


def coin(rng: np.random.Generator, logit: NDArray) -> NDArray[np.int8]:
    """Outcomes of a logistic regression."""
    return (rng.random(logit.size) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int8)


def logistic(n_rows: int, n_columns: int) -> Problem:
    """Synthetic; the linear predictor has the same spread for every number of columns."""
    rng = np.random.default_rng(1)
    x = design(rng, n_rows, n_columns)
    coefficients = rng.normal(scale=0.3 * np.sqrt(20 / n_columns), size=n_columns)
    return Problem("logistic", {"x": x, "y": coin(rng, x @ coefficients)}, logistic_model)


def poisson(n_rows: int) -> Problem:
    """Ten columns, exposures between 0.1 and 2."""
    rng = np.random.default_rng(2)
    x = design(rng, n_rows, 10)
    exposure = rng.uniform(0.1, 2.0, size=n_rows)
    y = rng.poisson(exposure * np.exp(x @ rng.normal(scale=0.2, size=10)))
    return Problem("poisson", {"x": x, "exposure": exposure, "y": y}, poisson_model)


def student_t(n_rows: int) -> Problem:
    """Five columns, scale 0.7, four degrees of freedom."""
    rng = np.random.default_rng(3)
    x = design(rng, n_rows, 5)
    y = x @ rng.normal(size=5) + 0.7 * rng.standard_t(4.0, size=n_rows)
    return Problem("student_t", {"x": x, "y": y}, student_t_model, ("sigma", "nu"))


def hierarchical(n_rows: int, n_groups: int = 50, n_columns: int = 5) -> Problem:
    """Logistic regression with groups; the columns together have the same spread for any number."""
    rng = np.random.default_rng(4)
    group = rng.integers(n_groups, size=n_rows)
    x = rng.standard_normal((n_rows, n_columns))
    slopes = rng.normal(scale=0.4 * np.sqrt(5 / n_columns), size=n_columns)
    logit = rng.normal(0.3, 0.7, size=n_groups)[group] + x @ slopes
    rows = {"group": group, "x": x, "y": coin(rng, logit)}
    return Problem("hierarchical", rows, hierarchical_model, ("spread",))


def rare(n_rows: int) -> Problem:
    """About two events in a thousand rows; two of ten columns mark one row in a hundred."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((n_rows, 10))
    x[:, 8:] = rng.random((n_rows, 2)) < 0.01
    logit = -7.0 + x @ np.append(rng.normal(scale=0.4, size=8), [0.5, -0.5])
    return Problem("rare", {"x": x, "y": coin(rng, logit)}, rare_model)


def saturation(n_rows: int) -> Problem:
    """Only the beginning of the curve is seen, so that top and half are known by their ratio."""
    rng = np.random.default_rng(7)
    x = rng.random(n_rows)
    y = 5.0 * x / (4.0 + x) + 4.0 * rng.standard_normal(n_rows)
    return Problem("saturation", {"x": x, "y": y}, saturation_model, ("top", "half", "sigma"))


def data_file(name: str) -> Path:
    """A file of the data folder, or an exit that says what is missing."""
    path = Path(os.environ.get("PYMC_AUSTERITY_DATA", "")) / name
    if not path.is_file():
        raise SystemExit(f"Name the folder that holds {name} in PYMC_AUSTERITY_DATA.")
    return path


def with_intercept(x: NDArray) -> NDArray[np.float64]:
    """A column of ones in front."""
    return np.column_stack([np.ones(len(x)), x])


def kdd(n_rows: int | None = None) -> Problem:
    """KDD Cup 99, attacks against normal connections: log1p, standardized, not constant."""
    data = np.load(data_file("kddcup99_10pct.npz"))
    x = np.log1p(data["X_num"].astype(np.float64))
    x = x[:, x.std(axis=0) > 0.0]
    x = with_intercept((x - x.mean(axis=0)) / x.std(axis=0))
    y = (data["label"] != list(data["label_names"]).index("normal")).astype(np.int8)
    return Problem("logistic", {"x": x[:n_rows], "y": y[:n_rows]}, logistic_model)


def mnist(n_rows: int | None = None) -> Problem:
    """MNIST, 7 against 9: 50 principal components, with the scale of the pixels, and ones."""
    data = np.load(data_file("mnist_7v9.npz"))
    centered = data["X_train"] / 255.0
    centered -= centered.mean(axis=0)
    _, axes = np.linalg.eigh(centered.T @ centered)
    x = with_intercept(centered @ axes[:, :-51:-1])
    rows = {"x": x[:n_rows], "y": data["y_train"].astype(np.int8)[:n_rows]}
    return Problem("logistic", rows, logistic_model)


FAMILIES: dict[str, tuple[Callable[..., Problem], tuple[int, ...]]] = {
    "logistic-20": (lambda n: logistic(n, 20), (10_000, 100_000, 1_000_000)),
    "logistic-100": (lambda n: logistic(n, 100), (10_000, 100_000, 1_000_000)),
    "poisson": (poisson, (10_000, 100_000)),
    "student_t": (student_t, (10_000, 100_000)),
    "hierarchical": (hierarchical, (20_000, 200_000)),
    "rare": (rare, (10_000, 100_000)),
    "saturation": (saturation, (100_000,)),
    "kdd": (kdd, (494_021,)),
    "mnist": (mnist, (12_214,)),
}
"""Names of the models, how to make each, and its numbers of rows."""


def build(name: str, n_rows: int) -> Problem:
    """Make the rows of a model by name."""
    return FAMILIES[name][0](n_rows)


def default_sizes(name: str) -> tuple[int, ...]:
    """Numbers of rows of a model in the table."""
    return FAMILIES[name][1]
