"""Counts and rare events."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from examples.hard_models.moments import Moments, quadrature
from examples.hard_models.registry import hard


def _poisson_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=20_000).round(1)
    return x, rng.poisson(np.exp(0.5 + 0.3 * x))


def _poisson_answer() -> dict[str, Moments]:
    x, y = _poisson_data()
    levels, n_rows = np.unique(x, return_counts=True)

    def log_density(a: NDArray, b: NDArray) -> NDArray:
        log_likelihood = a * y.sum() + b * (x @ y)
        log_likelihood = log_likelihood[:, 0] - np.exp(a + b * levels) @ n_rows
        return log_likelihood - 0.5 * (a[:, 0] ** 2 + b[:, 0] ** 2)

    return quadrature(log_density, {"a": (-3.0, 3.0), "b": (-3.0, 3.0)})


def _poisson() -> None:
    x, y = _poisson_data()
    a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
    pm.Poisson("y", pm.math.exp(a + b * x), observed=y)


@hard(_poisson_answer, blocked=False)
def poisson_one_at_a_time() -> None:
    """Poisson regression on 20,000 rows, one variable at a time."""
    _poisson()


@hard(_poisson_answer, control_variates=None)
def poisson_without_control_variates() -> None:
    """Poisson regression on 20,000 rows, without control variates."""
    _poisson()


def _rare_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(2)
    x = rng.normal(size=100_000).round(1)
    y = np.zeros(100_000, dtype=np.int64)
    chances = np.exp(x)
    y[rng.choice(100_000, size=84, replace=False, p=chances / chances.sum())] = 1
    return x, y


def _rare_answer() -> dict[str, Moments]:
    x, y = _rare_data()
    levels, n_rows = np.unique(x, return_counts=True)

    def log_density(a: NDArray, b: NDArray) -> NDArray:
        log_likelihood = (a * y.sum() + b * (x @ y))[:, 0]
        log_likelihood -= np.logaddexp(0.0, a + b * levels) @ n_rows
        return log_likelihood - 0.5 * (a[:, 0] ** 2 / 100.0 + b[:, 0] ** 2)

    found = quadrature(log_density, {"a": (-20.0, 5.0), "b": (-5.0, 5.0)})
    return found | {"coin": Moments(0.5, 0.5)}


def _rare_beside_a_coin() -> None:
    x, y = _rare_data()
    a, b = pm.Normal("a", 0.0, 10.0), pm.Normal("b", 0.0, 1.0)
    pm.Bernoulli("coin", 0.5)
    pm.Bernoulli("y", logit_p=a + b * x, observed=y)


@hard(_rare_answer)
def rare_events_beside_a_coin() -> None:
    """84 positives in 100,000 rows, beside a binary variable that no row depends on."""
    _rare_beside_a_coin()


@hard(_rare_answer, max_error=0.01)
def rare_events_beside_a_coin_with_max_error() -> None:
    """84 positives in 100,000 rows beside a binary variable, with a promise of 1 % errors."""
    _rare_beside_a_coin()


def _one_positive_answer() -> dict[str, Moments]:
    a, b = 2.0, 10_000.0  # a uniform prior, one positive
    return {"p": Moments(a / (a + b), np.sqrt(a * b / (a + b) ** 2 / (a + b + 1.0)))}


@hard(_one_positive_answer)
def one_positive() -> None:
    """One positive in 10,000 rows."""
    y = np.zeros(10_000, dtype=np.int64)
    y[1_234] = 1
    pm.Bernoulli("y", pm.Beta("p", 1.0, 1.0), observed=y)


def _zero_inflated_data() -> NDArray:
    rng = np.random.default_rng(3)
    return rng.poisson(2.0, size=5_000) * (rng.random(5_000) < 0.15)


def _zero_inflated_answer() -> dict[str, Moments]:
    y = _zero_inflated_data()
    n_zeros, n_others, total = (y == 0).sum(), (y > 0).sum(), y.sum()

    def log_density(psi: NDArray, mu: NDArray) -> NDArray:
        zeros = n_zeros * np.log(1.0 - psi + psi * np.exp(-mu))
        others = n_others * (np.log(psi) - mu) + total * np.log(mu)
        return (zeros + others - mu / 10.0)[:, 0]

    return quadrature(log_density, {"psi": (1e-6, 1 - 1e-6), "mu": (1e-6, 20.0)})


@hard(_zero_inflated_answer)
def zero_inflated_counts() -> None:
    """Zero-inflated Poisson counts, seven in eight of them zero."""
    psi, mu = pm.Beta("psi", 1.0, 1.0), pm.Exponential("mu", 0.1)
    pm.ZeroInflatedPoisson("y", psi=psi, mu=mu, observed=_zero_inflated_data())


def _overdispersed_data() -> NDArray:
    rng = np.random.default_rng(4)
    return rng.poisson(rng.gamma(0.1, 50.0, size=5_000))


def _overdispersed_answer() -> dict[str, Moments]:
    counts, n_rows = np.unique(_overdispersed_data(), return_counts=True)

    def log_density(log_mu: NDArray, alpha: NDArray) -> NDArray:
        mu = np.exp(log_mu)
        terms = gammaln(counts + alpha) - gammaln(alpha) + counts * np.log(mu / (mu + alpha))
        terms = (terms + alpha * np.log(alpha / (mu + alpha))) @ n_rows
        return terms - 0.5 * log_mu[:, 0] ** 2 / 25.0 - alpha[:, 0]

    return quadrature(log_density, {"log_mu": (-5.0, 8.0), "alpha": (1e-4, 5.0)})


@hard(_overdispersed_answer)
def overdispersed_counts() -> None:
    """Negative binomial counts with a variance of fifty times the mean."""
    log_mu, alpha = pm.Normal("log_mu", 0.0, 5.0), pm.Exponential("alpha", 1.0)
    pm.NegativeBinomial("y", mu=pm.math.exp(log_mu), alpha=alpha, observed=_overdispersed_data())


def _one_huge_count_data() -> NDArray:
    y = np.random.default_rng(5).poisson(3.0, size=5_000)
    y[77] = 1_000_000
    return y


def _one_huge_count_answer() -> dict[str, Moments]:
    y = _one_huge_count_data()

    def log_density(a: NDArray) -> NDArray:
        return (a * y.sum() - y.size * np.exp(a) - 0.5 * a**2 / 100.0)[:, 0]

    return quadrature(log_density, {"a": (-5.0, 15.0)})


@hard(_one_huge_count_answer)
def one_huge_count() -> None:
    """Poisson counts about 3, and one of a million."""
    a = pm.Normal("a", 0.0, 10.0)
    pm.Poisson("y", pm.math.exp(a), observed=_one_huge_count_data())


def _one_heavy_row_data() -> tuple[NDArray, NDArray, NDArray]:
    rng = np.random.default_rng(6)
    x = rng.normal(size=5_000).round(1)
    trials = np.ones(5_000, dtype=np.int64)
    trials[99] = 1_000_000
    return x, trials, rng.binomial(trials, 1.0 / (1.0 + np.exp(1.0 - x)))


def _one_heavy_row_answer() -> dict[str, Moments]:
    x, trials, y = _one_heavy_row_data()
    levels, where = np.unique(x, return_inverse=True)
    n_trials = np.bincount(where, weights=trials)

    def log_density(a: NDArray, b: NDArray) -> NDArray:
        log_likelihood = (a * y.sum() + b * (x @ y))[:, 0]
        log_likelihood -= np.logaddexp(0.0, a + b * levels) @ n_trials
        return log_likelihood - 0.5 * (a[:, 0] ** 2 + b[:, 0] ** 2)

    # the heavy row ties a + b x to a line: the grid stands along it
    heavy = x[99]
    offset = np.log(y[99] / (trials[99] - y[99]))

    def rotated(line: NDArray, b: NDArray) -> NDArray:
        return log_density(offset + line - heavy * b, b)

    line = quadrature(rotated, {"line": (-0.1, 0.1), "b": (-5.0, 5.0)})
    b = line["b"]
    if heavy == 0.0:
        return {"b": b}
    sd = np.hypot(heavy * b.sd, line["line"].sd)
    return {"a": Moments(offset + line["line"].mean - heavy * b.mean, float(sd)), "b": b}


@hard(_one_heavy_row_answer)
def one_heavy_row() -> None:
    """Binomial regression in which one row has a million trials and the others one each."""
    x, trials, y = _one_heavy_row_data()
    a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
    pm.Binomial("y", n=trials, logit_p=a + b * x, observed=y)


def _change_point_data() -> NDArray:
    rng = np.random.default_rng(7)
    return np.concatenate([rng.poisson(3.0, 300), rng.poisson(2.0, 200)])


def _change_point_answer() -> dict[str, Moments]:
    y = _change_point_data()
    n, tau = y.size, np.arange(y.size)
    before = np.concatenate([[0], np.cumsum(y)[:-1]])  # rows with an index below tau
    sums, sizes = np.stack([before, y.sum() - before]), np.stack([tau, n - tau])
    # rates with prior Exponential(1): Gamma(1 + sum, 1 + rows) given tau
    shape, rate = 1.0 + sums, 1.0 + sizes
    log_weights = (gammaln(shape) - shape * np.log(rate)).sum(axis=0)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    first = (shape / rate) @ weights
    second = (shape * (shape + 1.0) / rate**2) @ weights
    sds = np.sqrt(second - first**2)
    mean = weights @ tau
    return {
        "early": Moments(float(first[0]), float(sds[0])),
        "late": Moments(float(first[1]), float(sds[1])),
        "tau": Moments(float(mean), float(np.sqrt(weights @ (tau - mean) ** 2))),
    }


@hard(_change_point_answer)
def change_point() -> None:
    """Counts whose rate changes once, at an unknown row."""
    y = _change_point_data()
    tau = pm.DiscreteUniform("tau", 0, y.size - 1)
    early, late = pm.Exponential("early", 1.0), pm.Exponential("late", 1.0)
    pm.Poisson("y", pm.math.switch(np.arange(y.size) < tau, early, late), observed=y)


def _shares_data() -> NDArray:
    return np.clip(np.random.default_rng(8).beta(0.1, 0.2, size=3_000), 1e-30, 1.0 - 1e-15)


def _shares_answer() -> dict[str, Moments]:
    y = _shares_data()
    log_y, log_rest, n = np.log(y).sum(), np.log1p(-y).sum(), y.size

    def log_density(alpha: NDArray, beta: NDArray) -> NDArray:
        terms = alpha * log_y + beta * log_rest - n * betaln(alpha, beta)
        return (terms - alpha - beta)[:, 0]

    return quadrature(log_density, {"alpha": (1e-3, 3.0), "beta": (1e-3, 3.0)})


@hard(_shares_answer)
def shares_near_their_bounds() -> None:
    """Beta-distributed shares, most of them next to 0 or 1."""
    alpha, beta = pm.Exponential("alpha", 1.0), pm.Exponential("beta", 1.0)
    pm.Beta("y", alpha, beta, observed=_shares_data())
