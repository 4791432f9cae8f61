"""The sequential test run many times on a real finite population, all runs at once."""

import numpy as np
from scipy import stats


def population(mu_std, n_rows, rng, *, draw=None):
    """Differences whose sum lies `mu_std` spreads above a threshold of 0, shape (n_rows,)."""
    values = rng.normal(size=n_rows) if draw is None else draw(rng, n_rows)
    values = (values - values.mean()) / values.std()
    return values + mu_std / np.sqrt(n_rows - 1)


def counts_of(shares, n_rows):
    return np.rint(np.asarray(shares) * n_rows).astype(int)


def sequential_tests(differences, orders, counts, quantiles):
    """Ask the sequential t-test with threshold 0 about the same rows in many orders.

    Returns (accepted, rows seen), both of shape (n_orders,).
    """
    return run_tests(differences[orders], counts, quantiles)


def run_tests(seen, counts, quantiles):
    """Ask the test about every line of a matrix of differences, read from left to right.

    Stops at the first look but the last where |t| exceeds the quantile of the look.
    """
    n_rows, last = seen.shape[1], len(counts) - 1
    index = np.asarray(counts) - 1
    sums = np.cumsum(seen, axis=1)[:, index]
    squares = np.cumsum(seen * seen, axis=1)[:, index]
    n = np.asarray(counts, dtype=float)
    means = sums / n
    variances = (squares - n * means**2) / (n - 1)
    errors = np.sqrt(variances / n * (1 - (n - 1) / (n_rows - 1)))
    with np.errstate(invalid="ignore", divide="ignore"):
        statistics = means / errors
    stops = np.abs(statistics) > np.append(quantiles, np.inf)
    stops[:, last] = True
    at = stops.argmax(axis=1)
    accepted = np.take_along_axis(means, at[:, None], axis=1)[:, 0] > 0
    return accepted, np.asarray(counts)[at]


def quantiles_of(boundary, looks, n_rows):
    """Quantiles of Student's t with the tail probability of a normal boundary."""
    degrees_of_freedom = counts_of(looks.shares, n_rows)[:-1] - 1
    return stats.t.isf(stats.norm.sf(boundary.at(looks)), degrees_of_freedom)


def simulate(mu_std, looks, boundary, n_rows, rng, *, n_repeats=20_000, draw=None):
    """Share of wrong decisions and mean share of the rows, each with its standard error."""
    differences = population(mu_std, n_rows, rng, draw=draw)
    counts, quantiles = counts_of(looks.shares, n_rows), quantiles_of(boundary, looks, n_rows)
    identity = np.tile(np.arange(n_rows), (1_000, 1))
    parts = [
        sequential_tests(differences, rng.permuted(identity, axis=1), counts, quantiles)
        for _ in range(n_repeats // 1_000)
    ]
    wrong = ~np.concatenate([accepted for accepted, _ in parts])
    used = np.concatenate([rows for _, rows in parts]) / n_rows
    root = np.sqrt(n_repeats)
    return (wrong.mean(), wrong.std() / root), (used.mean(), used.std() / root)
