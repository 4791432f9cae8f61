"""Time of the bounds of rows: ``python -m examples.benchmarks.bounds [number of rows]``.

Microseconds for each row, of likelihoods with one predictor and many different data, with a scale
or a dispersion besides, and with the logits of several categories.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import CheckAndRaise, Constant, Variable, ancestors, rebuilt
from pymc_austerity.model.bounds import scalar_function, third_derivative_constants
from pymc_austerity.model.cut import Known, RowLeaf
from pymc_austerity.model.cut.rules_elementwise import parts_of_check
from pymc_austerity.model.predictors.linear import GraphFacts

RADII = (0.1, 0.35, 1.0, 2.0)


class Case(NamedTuple):
    """Rows of one kind of likelihood.

    Attributes
    ----------
    name : str
    function : variable, shape (N,)
        Log-likelihoods.
    predictors : list of k variables
    placeholder : variable
        Of the observed data.
    observed : array, shape (N,)
    center : float array, shape (N, k)
        Predictors about which rows are bounded.
    """

    name: str
    function: Any
    predictors: list[Any]
    placeholder: Any
    observed: NDArray
    center: NDArray[np.float64]


def cases(n_rows: int) -> Iterator[Case]:
    """Likelihoods and data."""
    rng = np.random.default_rng(0)
    eta, other, y, count = pt.dvector("eta"), pt.dvector("other"), pt.dvector(), pt.lvector()
    at = 0.6 * rng.standard_normal(n_rows)
    alone, beside = at[:, None], np.column_stack([at, np.zeros(n_rows)])
    counts = rng.poisson(30.0 * np.exp(at))
    poisson = pm.logp(pm.Poisson.dist(pt.exp(eta)), count)
    yield Case("Poisson, many counts", poisson, [eta], count, counts, alone + np.log(30.0))
    noise = rng.standard_normal(n_rows)
    normal = pm.logp(pm.Normal.dist(eta, pt.exp(other)), y)
    yield Case("normal, unknown scale", normal, [eta, other], y, at + noise, beside)
    student = pm.logp(pm.StudentT.dist(nu=4.0, mu=eta, sigma=pt.exp(other)), y)
    yield Case("Student's t, unknown scale", student, [eta, other], y, at + noise, beside)
    negative = pm.NegativeBinomial.dist(mu=pt.exp(eta), alpha=pt.exp(other))
    observed = rng.poisson(np.exp(at) * rng.gamma(2.0, 0.5, size=n_rows))
    negative_binomial = pm.logp(negative, count)
    yield Case("negative binomial", negative_binomial, [eta, other], count, observed, beside)
    for k in (2, 4, 7):
        etas = [pt.dvector(f"eta{j}") for j in range(k)]
        logits = pt.stack([*etas, pt.zeros_like(etas[0])], axis=1)
        softmax = pm.logp(pm.Categorical.dist(logit_p=logits), count)
        observed, center = rng.integers(k + 1, size=n_rows), 0.5 * rng.standard_normal((n_rows, k))
        yield Case(f"{k + 1} categories", softmax, etas, count, observed, center)


def by_row(graph: Variable) -> Variable:
    """A log-density with -inf for a row that fails a check of parameters, as set-up writes it."""
    inputs = [v for v in ancestors([graph]) if v.owner is None and not isinstance(v, Constant)]
    facts = GraphFacts({}, [RowLeaf(v, np.ones(2, dtype=v.dtype)) for v in inputs])

    def rule(node: Any, found: list[Variable]) -> list[Variable] | None:
        if not isinstance(node.op, CheckAndRaise):
            return None
        value, known = found[0], Known(inputs, {})
        for part in (p for condition in node.inputs[1:] for p in parts_of_check(condition, known)):
            others = [k for k in range(part.type.ndim) if k != facts.axis(part)]
            value = pt.switch(pt.all(part, axis=others) if others else part, value, -np.inf)
        return [value]

    return rebuilt([graph], rule)[0]


def seconds(case: Case) -> tuple[float, float]:
    """Time to bound all rows on four balls, and the share of rows that have a bound."""
    function = scalar_function(by_row(case.function), case.predictors, [case.placeholder])
    n_rows, k = case.center.shape
    gram = np.broadcast_to(np.diag([1.0] + [0.05**2] * (k - 1)), (n_rows, k, k))
    started = time.perf_counter()
    found = third_derivative_constants(function, [case.observed], case.center, gram, RADII)
    return time.perf_counter() - started, float(np.isfinite(found).mean())


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 131_072
    print("| likelihood | microseconds a row | share with a bound |\n| --- | ---: | ---: |")
    for each in cases(number):
        took, share = seconds(each)
        print(f"| {each.name} | {1e6 * took / number:.1f} | {share:.2f} |", flush=True)
