"""Ranks of parameters among posterior draws are uniform over the prior, on eight models.

The probability that a correct sampler fails any of these tests is at most 0.1 %, shared among all
the parameters of all the models.
"""

import numpy as np
import pytest

from tests.calibration import simulation
from tests.calibration.generators import GENERATORS
from tests.calibration.simulation import N_RANKS, p_values_of, ranks_of

FALSE_ALARM = 1e-3
_N_PARAMETERS = {
    "logistic regression": 2,
    "Poisson regression": 2,
    "normal regression with unknown scale": 3,
    "Student-t regression with unknown scale": 3,
    "hierarchical model": 10,
    "many levels": 43,
    "crossed and not centered levels": 50,
    "correlated levels": 85,
}
LEVEL = FALSE_ALARM / sum(_N_PARAMETERS.values())


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", GENERATORS)
def test_ranks_are_uniform(name):
    p_values = p_values_of(ranks_of(GENERATORS[name], range(GENERATORS[name].replications)))
    assert len(p_values) == _N_PARAMETERS[name]
    assert min(p_values.values()) > LEVEL, p_values


@pytest.mark.exhaustive
def test_ranks_of_a_few_replications_are_uniform():
    """Two bins for the ten ranks of five replications: the columns are independent."""
    ranks = ranks_of(GENERATORS["logistic regression"], range(1_000, 1_005))
    assert set(ranks) == {"beta[0]", "beta[1]"}
    pooled = np.concatenate(list(ranks.values()))
    assert pooled.min() >= 0 and pooled.max() < N_RANKS
    assert len(np.unique(pooled)) > 3  # fewer: probability below 0.1 %
    assert p_values_of({"beta": pooled})["beta"] > LEVEL


class _TooWide:
    """Draws of the right posterior of a normal mean, but for their spread."""

    def __init__(self, spread):
        self.spread = spread

    def __call__(self, generator, data, seed):
        import xarray

        y, rng = data["y"], np.random.default_rng(seed + 10_000)
        precision = y.size + 1.0
        draws = rng.normal(y.sum() / precision, self.spread / np.sqrt(precision), N_RANKS - 1)
        return xarray.Dataset({"mu": (("chain", "draw"), draws[None])})


def _draw_mean(rng):
    mu = rng.normal()
    return {"mu": mu}, {"y": rng.normal(mu, 1.0, size=10)}


@pytest.mark.parametrize(("spread", "is_right"), [(1.0, True), (0.6, False), (1.6, False)])
def test_posteriors_of_the_wrong_width_fail(spread, is_right, monkeypatch):
    monkeypatch.setattr(simulation, "_posterior", _TooWide(spread))
    generator = simulation.Generator(_draw_mean, lambda data: None)
    (p_value,) = p_values_of(ranks_of(generator, range(generator.replications))).values()
    assert (p_value > LEVEL) is is_right
