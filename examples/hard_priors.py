"""Priors that no normal approximation fits, sampled by AusterityMH and by nutpie.

A horseshoe prior on 20 coefficients, a Laplace prior of scale 0.01 on 10, both of a logistic
regression, and a centered hierarchy of 20 groups with a small spread.

Run with ``python -m examples.hard_priors [--quick] [--rows N] [--without-nutpie] [name ...]``.
"""

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import arviz as az
import numpy as np
import pymc as pm

from pymc_austerity import AusterityMH

_WANTED = 400


def _logistic(n_rows: int, coefficients: list[float], seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, len(coefficients)))
    eta = x @ np.array(coefficients)
    return x, (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-eta))).astype("int8")


def horseshoe(n_rows: int) -> pm.Model:
    """Half-Cauchy scales of all coefficients and of each; 17 of 20 coefficients are zero."""
    x, y = _logistic(n_rows, [1.0, -1.0, 0.3] + 17 * [0.0], 31)
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 1.0)
        local = pm.HalfCauchy("local", 1.0, shape=20)
        beta = pm.Normal("beta", 0.0, tau * local, shape=20)
        pm.Bernoulli("y", logit_p=x @ beta, observed=y)
    return model


def laplace(n_rows: int) -> pm.Model:
    """A kink at zero, near which the posterior lies."""
    x, y = _logistic(n_rows, [0.05] + 9 * [0.0], 32)
    with pm.Model() as model:
        beta = pm.Laplace("beta", 0.0, 0.01, shape=10)
        pm.Bernoulli("y", logit_p=x @ beta, observed=y)
    return model


def hierarchy(n_rows: int) -> pm.Model:
    """Group means that differ by about their standard error: a funnel."""
    rng, group = np.random.default_rng(33), np.arange(n_rows) % 20
    effects = rng.normal(1.0, (20 / n_rows) ** 0.5, size=20)
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau", 1.0)
        a = pm.Normal("a", mu, tau, shape=20)
        pm.Normal("y", a[group], 1.0, observed=rng.normal(effects[group], 1.0))
    return model


MODELS: dict[str, Callable[[int], pm.Model]] = {
    "horseshoe": horseshoe,
    "laplace": laplace,
    "hierarchy": hierarchy,
}


class Measured(NamedTuple):
    """What a run took.

    Attributes
    ----------
    setup, sampling : float
        Seconds before the first draw, and for all draws with those of the tuning phase.
    draws, tune : int
        Of a chain.
    ess, r_hat : float
        Of the entry that is sampled least well.
    """

    setup: float
    sampling: float
    draws: int
    tune: int
    ess: float
    r_hat: float

    @property
    def time_to_400(self) -> float:
        """Seconds to 400 effective draws, set-up and tuning included."""
        a_step = self.sampling / (self.draws + self.tune)
        return self.setup + a_step * (self.tune + self.draws * _WANTED / self.ess)

    def __str__(self) -> str:
        """A line of the table."""
        return (
            f"set-up {self.setup:6.1f} s, draws {self.sampling:7.1f} s, least ESS {self.ess:6.0f}, "
            f"r_hat {self.r_hat:.3f}, {self.time_to_400:7.1f} s to {_WANTED} effective draws"
        )


def with_austerity(model: pm.Model, draws: int, tune: int, chains: int = 4) -> Measured:
    """AusterityMH as it comes."""
    began = time.perf_counter()
    with model:
        step = AusterityMH()
        ready = time.perf_counter()
        idata = pm.sample(
            draws=draws,
            tune=tune,
            chains=chains,
            cores=1,
            step=step,
            random_seed=1,
            progressbar=False,
        )
    return _measured(idata, ready - began, time.perf_counter() - ready, draws, tune)


def with_nutpie(model: pm.Model, draws: int, tune: int, chains: int = 4) -> Measured:
    """NUTS on all rows."""
    import nutpie

    began = time.perf_counter()
    compiled = nutpie.compile_pymc_model(model)
    ready = time.perf_counter()
    idata = nutpie.sample(
        compiled, draws=draws, tune=tune, chains=chains, cores=1, seed=1, progress_bar=False
    )
    return _measured(idata, ready - began, time.perf_counter() - ready, draws, tune)


def _measured(idata: Any, setup: float, sampling: float, draws: int, tune: int) -> Measured:
    names = [name for name in idata.posterior.data_vars if not str(name).endswith("__")]
    ess, r_hat = az.ess(idata, var_names=names), az.rhat(idata, var_names=names)
    least = min(float(ess[name].min()) for name in names)
    worst = max(float(r_hat[name].max()) for name in names)
    return Measured(setup, sampling, draws, tune, least, worst)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(MODELS), help="of the models")
    parser.add_argument("--quick", action="store_true", help="few draws")
    parser.add_argument("--rows", type=int, action="append", help="3,000 and 100,000 by default")
    parser.add_argument("--without-nutpie", action="store_true")
    given = parser.parse_args(arguments)
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*BLAS.*")
    lengths = (200, 200) if given.quick else (1_000, 1_000)
    samplers = {"AusterityMH": with_austerity}
    if not given.without_nutpie:
        samplers["nutpie"] = with_nutpie
    for name in given.names:
        for n_rows in given.rows or (3_000, 100_000):
            for sampler, run in samplers.items():
                found = run(MODELS[name](n_rows), *lengths)
                print(f"{name:10} N = {n_rows:7,} {sampler:12} {found}", flush=True)


if __name__ == "__main__":
    main()
