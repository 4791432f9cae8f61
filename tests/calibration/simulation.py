"""Simulation-based calibration: over the prior, posteriors are as wide as they should be.

A parameter is drawn from the prior, data from the model at that parameter, and the posterior is
sampled. The rank of the parameter among the draws is then uniform if the sampler is right. A
posterior that is too narrow makes extreme ranks too frequent, one that is too wide too rare.

References
----------
Talts, S., Betancourt, M., Simpson, D., Vehtari, A. and Gelman, A. (2018). Validating Bayesian
inference algorithms with simulation-based calibration. arXiv:1804.06788.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity import AusterityMH
from tests.calibration.uniformity import chi_square_of_ranks, rank_among, smooth_test_of_ranks
from tests.running import sample

N_RANKS = 20
_DRAWS_APART = 50
_TRANSITIONS = 5


@dataclass(frozen=True)
class Generator:
    """A model with a way of drawing its parameters and data.

    Attributes
    ----------
    draw : callable
        ``f(rng)``: parameters from the prior, and data given them, both by name.
    write : callable
        ``f(data)``: writes the model with ``pm.Data`` of the same names; called inside of a
        ``pm.Model()`` context. With shared data its graph is the same every time, so that
        compiled functions come from the cache.
    settings : dict
        Of the step method.
    sampler : type
        `AusterityMH`, or another one.
    transitions : int
        Of a draw.
    replications : int
        Parameters with data of their own, in the exhaustive tier.
    """

    draw: Callable[[np.random.Generator], tuple[dict[str, Any], dict[str, NDArray]]]
    write: Callable[[Mapping[str, Any]], None]
    settings: dict[str, Any] = field(default_factory=dict)
    sampler: type = AusterityMH
    transitions: int = _TRANSITIONS
    replications: int = 200


def ranks_of(generator: Generator, seeds: Iterable[int]) -> dict[str, NDArray[np.int64]]:
    """Ranks of the parameters among thinned draws, for one replication a seed.

    Parameters
    ----------
    generator : Generator
        Model and prior.
    seeds : iterable of int
        Of the replications.

    Returns
    -------
    dict
        By entry of a parameter, as ``beta[0]``: ranks, shape (n,), in 0, ..., `N_RANKS` - 1.

    Notes
    -----
    The draws that a parameter is ranked among are 250 transitions apart, or 50 sweeps, so that
    they are independent for what the test can see.
    """
    ranks: dict[str, list[int]] = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        parameters, data = generator.draw(rng)
        draws = _posterior(generator, data, seed)
        for name, value in parameters.items():
            for index in np.ndindex(np.shape(value)):
                label = f"{name}{list(index)}" if index else name
                others = draws[name].values[(0, slice(None), *index)]
                ranks.setdefault(label, []).append(
                    rank_among(np.asarray(value)[index], others, rng)
                )
    return {name: np.array(values) for name, values in ranks.items()}


def _posterior(generator: Generator, data: Mapping[str, NDArray], seed: int) -> Any:
    with pm.Model() as model:
        generator.write({name: pm.Data(name, values) for name, values in data.items()})
        step = generator.sampler(steps_per_draw=generator.transitions, **generator.settings)
    run = {"draws": (N_RANKS - 1) * _DRAWS_APART, "tune": 300, "chains": 1, "random_seed": seed}
    idata = sample(step, model, **run)
    return idata.posterior.isel(draw=slice(_DRAWS_APART - 1, None, _DRAWS_APART))


def p_values_of(ranks: Mapping[str, NDArray[np.int64]]) -> dict[str, float]:
    """P-values of uniform ranks, for each parameter: the smaller one of two tests, doubled."""
    tests = (chi_square_of_ranks, smooth_test_of_ranks)
    return {
        name: min(1.0, 2.0 * min(test(values, N_RANKS) for test in tests))
        for name, values in ranks.items()
    }
