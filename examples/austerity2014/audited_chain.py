"""Chains that read so many rows, with an epsilon that is fixed or that audits make smaller."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from examples.austerity2014.balance import (
    LOOSEST,
    following,
    poisson_factor,
    squared_bias,
    variance_of_mean,
)
from examples.austerity2014.timed import sample_chain

FIRST = 100
"""Draws before the first check."""

GROWTH = 2**0.5
"""Factor on the number of draws from one check to the next: the adaptation diminishes."""

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]


class Audit(Protocol):
    """Looks at decisions on all rows."""

    def __call__(self, points: Floats, epsilon: float, rng: np.random.Generator, /) -> Floats:
        """Effect of the test on one step from each point, shape (n, k)."""
        ...


@dataclass
class Fixed:
    """An epsilon that stays as it is."""

    epsilon: float
    checks: list[dict[str, float]] = field(default_factory=list)

    def after(self, draws: Floats, new: int, rng: np.random.Generator) -> Floats:
        """Rows that audits read at each of the new draws: none."""
        return np.zeros(new)


@dataclass
class Shrinking:
    """An epsilon that is halved whenever squared bias exceeds variance.

    Attributes
    ----------
    statistic : callable
        What is averaged: draws, shape (n, d), to values, shape (n, k).
    audit : Audit
        How a decision is audited.
    share : float
        Share of the draws at which there is an audit.
    rows_per_audit : float
        Rows that an audit reads.
    steps_per_draw : int
        Steps between draws.
    epsilon : float
        The present one.
    checks : list of dict
        What every check found.
    """

    statistic: Statistic
    audit: Audit
    share: float
    rows_per_audit: float
    steps_per_draw: int
    epsilon: float = LOOSEST
    checks: list[dict[str, float]] = field(default_factory=list)
    _values: list[Floats] = field(default_factory=list)
    _effects: list[Floats] = field(default_factory=list)

    def after(self, draws: Floats, new: int, rng: np.random.Generator) -> Floats:
        """Audit some of the new draws and check the balance; rows that audits read, by draw."""
        audited = rng.random(new) < self.share
        fresh = draws[len(draws) - new :]
        self._values.append(self.statistic(fresh).astype(np.float32))
        if audited.any():
            self._effects.append(self.audit(fresh[audited], self.epsilon, rng))
        self._check()
        return self.rows_per_audit * audited

    def _check(self) -> None:
        values = np.concatenate(self._values)
        variance = float(variance_of_mean(values).mean())
        bias = 0.0
        if self._effects:
            factor = poisson_factor(values, self.steps_per_draw)
            bias = squared_bias(np.concatenate(self._effects), factor)
        found = {"n_draws": len(values), "epsilon": self.epsilon}
        self.checks.append({**found, "squared_bias": bias, "variance": variance})
        self.epsilon = following(self.epsilon, bias, variance)


@dataclass(frozen=True)
class AuditedChain:
    """A chain, and the rows that it read.

    Attributes
    ----------
    draws : float array, shape (n, d)
    rows : float array, shape (n,)
        Rows read up to every draw, those of audits counted.
    audit_rows : float
        Rows read by audits.
    """

    draws: Floats
    rows: Floats
    audit_rows: float


def sample_rows(
    rule: Fixed | Shrinking,
    step_of: Callable[[float], Any],
    name: str,
    start: Floats,
    n_rows: float,
    rng: np.random.Generator,
) -> AuditedChain:
    """Sample until so many rows are read.

    Parameters
    ----------
    rule : Fixed or Shrinking
        Epsilon of each stretch of the chain.
    step_of : callable
        Step method for an epsilon.
    name : str
        The variable.
    start : float array, shape (d,)
        Where the chain starts.
    n_rows : float
        Rows to be read.
    rng : numpy.random.Generator
        Source of all random numbers.
    """
    draws, rows, audit_rows = np.empty((0, start.size)), np.empty(0), 0.0
    while not rows.size or rows[-1] < n_rows:
        step, point = step_of(rule.epsilon), draws[-1] if len(draws) else start
        n_new = _length(rows, n_rows)
        run = sample_chain(n_new, step, {name: point}, seed=int(rng.integers(2**31)))
        draws = np.concatenate([draws, run.draws(name)[0]])
        audited = rule.after(draws, n_new, rng)
        spent = run.rows[0] + np.cumsum(audited)
        audit_rows += float(audited.sum())
        rows = np.concatenate([rows, spent + (rows[-1] if rows.size else 0.0)])
    return AuditedChain(draws, rows, audit_rows)


def _length(rows: Floats, n_rows: float) -> int:
    """Draws up to the next check, or to the end if that is nearer at the present pace."""
    if not rows.size:
        return FIRST
    recent = (rows[-1] - rows[len(rows) // 2]) / (len(rows) - len(rows) // 2 - 1)
    return min(round((GROWTH - 1.0) * len(rows)), int((n_rows - rows[-1]) / recent) + 2)
