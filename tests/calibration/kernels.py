"""Step methods as Markov kernels on small models whose posteriors can be drawn from directly."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy import stats

from pymc_austerity import (
    AusterityGibbs,
    AusterityMH,
    CrankNicolsonProposal,
    FireflyMH,
    GroupedMH,
    LangevinProposal,
    ProposalMixture,
    RandomWalkProposal,
    ReversibleJumpProposal,
    StiefelProposal,
    SurrogateHamiltonianProposal,
)
from pymc_austerity.paper import InclusionIndicators, SpikeAndSlab, UniformStiefel
from tests.calibration.exactness import Kernel, Target
from tests.model.splitting import by_name, raveled
from tests.paper.fields import probabilities, triples_field
from tests.paper.special_models import all_models

_N_TUNE = 500
_ALMOST_EXACT = {"epsilon": 1e-10, "control_variates": 2}
"""For moves that need a normal approximation, which there is none of at epsilon=0."""


@dataclass(frozen=True)
class Problem:
    """A model, and its posterior in the coordinates in which the step method moves."""

    model: pm.Model
    target: Target


@dataclass(frozen=True)
class Subject:
    """A step method to be tested on a problem."""

    problem: Callable[[], Problem]
    step: Callable[[], AusterityMH | AusterityGibbs | GroupedMH]
    reversible: bool = True


def kernel_of(
    problem: Problem, step: AusterityMH | AusterityGibbs | GroupedMH, seed: int = 1
) -> Kernel:
    """One step, tuned and then frozen, as a function from point to point."""
    rng, start = np.random.default_rng(seed), problem.model.initial_point()

    def kernel(point: NDArray, rng: np.random.Generator) -> NDArray:
        step.rng, step.at_start = rng, False
        before = by_name(point, step.vars, start)
        after, _ = step.step({k: v.astype(start[k].dtype) for k, v in before.items()})
        return raveled(after, step.vars).astype(float)

    step.set_rng(rng)
    point = problem.target.draw(rng)
    for _ in range(_N_TUNE):
        point = kernel(point, rng)
    step.stop_tuning()
    return kernel


def _with_neighbors(points: NDArray) -> NDArray:
    """Entries, and products of neighbors."""
    return np.hstack([points, points[:, :-1] * points[:, 1:]])


def _with_products(points: NDArray) -> NDArray:
    """Entries, products of neighbors, and squares."""
    return np.hstack([_with_neighbors(points), points**2])


# ---------------------------------------------------------------------- two Poisson rates


def rates() -> Problem:
    """Two Poisson rates with few events, so that their logarithms are skewed: gamma posteriors."""
    rng, n_rows = np.random.default_rng(1), 600
    group = np.arange(n_rows) % 2
    y = rng.permutation(np.repeat([1, 0], [9, n_rows - 9]))
    prior = np.array([2.0, 50.0])
    with pm.Model() as model:
        rate = pm.Gamma("rate", *prior, shape=2)
        pm.Poisson("y", rate[group], observed=y)
    shape = prior[0] + np.bincount(group, weights=y)
    scale = 1.0 / (prior[1] + np.bincount(group))
    return Problem(model, Target(lambda rng: np.log(rng.gamma(shape, scale)), _with_products))


def many_rates() -> Problem:
    """Poisson rates of thirty groups with a gamma prior whose own rate is unknown.

    Given that, rates are gamma distributed; without them it has a density on a line.
    """
    rng, n_levels, shape = np.random.default_rng(5), 30, 2.0
    group = rng.permutation(np.repeat(np.arange(n_levels), rng.integers(5, 40, size=n_levels)))
    y = rng.poisson(rng.gamma(shape, 0.05, size=n_levels)[group])
    with pm.Model() as model:
        psi = pm.Gamma("psi", 3.0, 0.15)
        rate = pm.Gamma("rate", shape, psi, shape=n_levels)
        pm.Poisson("y", rate[group], observed=y)
    events, sizes = np.bincount(group, weights=y), np.bincount(group)
    logs = np.linspace(-2.0, 8.0, 20_000)  # of psi
    log_density = stats.gamma(3.0, scale=1.0 / 0.15).logpdf(np.exp(logs)) + logs
    for event, size in zip(events, sizes, strict=True):
        log_density += shape * logs - (shape + event) * np.log(np.exp(logs) + size)
    cumulative = np.cumsum(np.exp(log_density - log_density.max()))

    def draw(rng: np.random.Generator) -> NDArray:
        place = int(np.searchsorted(cumulative, rng.random() * cumulative[-1]))
        log_psi = logs[place] + (rng.random() - 0.5) * (logs[1] - logs[0])
        rates = rng.gamma(shape + events, 1.0 / (np.exp(log_psi) + sizes))
        return np.concatenate([[log_psi], np.log(rates)])

    def statistics(points: NDArray) -> NDArray:
        rates = points[:, 1:]
        return np.column_stack([points[:, :6], points[:, :1] * rates[:, :3], rates.std(axis=1)])

    return Problem(model, Target(draw, statistics))


def stretched(point: NDArray, rng: np.random.Generator) -> tuple[NDArray, float]:
    """A user's function that is not symmetric: its steps are longer the larger the point."""
    scales = 0.1 + 0.4 * np.exp(point + 4.0)
    new = point + scales * rng.normal(size=point.size)
    back = 0.1 + 0.4 * np.exp(new + 4.0)
    squares = ((new - point) / scales) ** 2 - ((new - point) / back) ** 2
    return new, float((0.5 * squares + np.log(scales) - np.log(back)).sum())


# ---------------------------------------------------------------------- orthonormal matrices


def unit_vector() -> Problem:
    """A direction in space, seen along the axes with noise: a von Mises-Fisher posterior."""
    x = np.tile(np.eye(3), (20, 1))
    y = (x @ np.array([0.6, 0.0, 0.8]))[:, None] + np.random.default_rng(2).normal(0, 3, (60, 1))
    with pm.Model() as model:
        W = UniformStiefel("W", n=3, p=1)
        pm.Normal("y", pm.math.dot(x, W), 3.0, observed=y)
    natural = (x.T @ y)[:, 0] / 9.0
    size = np.linalg.norm(natural)
    posterior = stats.vonmises_fisher(natural / size, size)
    return Problem(
        model, Target(lambda rng: posterior.rvs(1, random_state=rng).ravel(), _with_products)
    )


def rotation_or_reflection() -> Problem:
    """An orthogonal matrix in the plane, of either determinant; drawn on a fine grid of angles."""
    rng, noise = np.random.default_rng(3), 3.0
    x = rng.normal(size=(60, 2))
    y = x @ np.array([[0.6, -0.8], [0.8, 0.6]]) + noise * rng.normal(size=(60, 2))
    with pm.Model() as model:
        W = UniformStiefel("W", n=2, p=2)
        pm.Normal("y", pm.math.dot(x, W), noise, observed=y)
    cross = x.T @ y / noise**2  # all that the likelihood has of the rows, as W W' = I
    angles = np.linspace(0.0, 2 * np.pi, 20_000, endpoint=False)

    def matrices(angles: NDArray) -> NDArray:
        turns = np.stack([np.cos(angles), -np.sin(angles), np.sin(angles), np.cos(angles)], -1)
        return np.concatenate([turns, turns * [1.0, -1.0, 1.0, -1.0]])

    log_density = matrices(angles) @ cross.ravel()
    cumulative = np.cumsum(np.exp(log_density - log_density.max()))

    def draw(rng: np.random.Generator) -> NDArray:
        place = int(np.searchsorted(cumulative, rng.random() * cumulative[-1]))
        angle = angles[place % angles.size] + rng.uniform(0.0, angles[1])
        return matrices(np.array([angle]))[place // angles.size]

    return Problem(model, Target(draw, _with_products))


# ---------------------------------------------------------------------- variable selection


def selection() -> Problem:
    """Three coefficients that are in the model or not: eight models, each with a normal part."""
    rng, slab, rate = np.random.default_rng(4), 0.5, 1.0
    x = rng.normal(size=(60, 3))
    x[:, 1] += 0.7 * x[:, 0]
    y = x @ np.array([0.3, 0.0, 0.2]) + rng.normal(size=60)
    with pm.Model() as model:
        gamma = InclusionIndicators("gamma", 3, pm.Poisson.dist(rate))
        beta = SpikeAndSlab("beta", gamma, pm.Normal.dist(0.0, slab))
        pm.Normal("y", pm.math.dot(x, beta), 1.0, observed=y)
    subsets, weights, parts = all_models(x, y, slab, rate)

    def draw(rng: np.random.Generator) -> NDArray:
        number = int(rng.choice(len(subsets), p=weights))
        mean, precision = parts[number]
        root = np.linalg.cholesky(np.linalg.inv(precision)) if mean.size else np.eye(0)
        beta = np.zeros(3)
        beta[subsets[number]] = mean + root @ rng.normal(size=mean.size)
        return np.concatenate([subsets[number], beta])

    return Problem(model, Target(draw, _with_products))


# ---------------------------------------------------------------------- binary fields


def field() -> Problem:
    """Six binary variables with a factor for each triple: 64 configurations."""
    model = triples_field(spread=0.6, n_entries=6)
    configurations = np.array(list(product([0, 1], repeat=6)))
    weights = probabilities(model, "x", configurations)

    def draw(rng: np.random.Generator) -> NDArray:
        return configurations[rng.choice(len(configurations), p=weights)].astype(float)

    return Problem(model, Target(draw, _with_neighbors))


def _exact(proposal) -> Callable[[], AusterityMH]:
    return lambda: AusterityMH(epsilon=0.0, proposal=proposal)


def _poisson(proposal) -> Callable[[], AusterityMH]:
    return lambda: AusterityMH(test="exact", proposal=proposal)


def _gibbs(scan: str) -> Callable[[], AusterityGibbs]:
    return lambda: AusterityGibbs(epsilon=0.0, likelihood=["factors"], scan=scan)


SUBJECTS = {
    "random walk": Subject(rates, _exact(RandomWalkProposal())),
    "MALA": Subject(rates, _exact(LangevinProposal())),
    "Langevin on small batches": Subject(rates, _exact(LangevinProposal(batch_size=50))),
    "a user's function": Subject(rates, _exact(stretched)),
    "Crank-Nicolson": Subject(
        rates, lambda: AusterityMH(proposal=CrankNicolsonProposal(0.7), **_ALMOST_EXACT)
    ),
    "mixture": Subject(rates, lambda: AusterityMH(proposal=ProposalMixture(), **_ALMOST_EXACT)),
    "random walk, Poisson rows": Subject(rates, _poisson(RandomWalkProposal())),
    "MALA, Poisson rows": Subject(rates, _poisson(LangevinProposal())),
    "Langevin on small batches, Poisson rows": Subject(
        rates, _poisson(LangevinProposal(batch_size=50))
    ),
    "a user's function, Poisson rows": Subject(rates, _poisson(stretched)),
    "Crank-Nicolson, Poisson rows": Subject(rates, _poisson(CrankNicolsonProposal(0.7))),
    "mixture, Poisson rows": Subject(rates, _poisson(ProposalMixture())),
    "Hamiltonian moves": Subject(
        rates, lambda: AusterityMH(proposal=SurrogateHamiltonianProposal(2), **_ALMOST_EXACT)
    ),
    "Hamiltonian moves, Poisson rows": Subject(rates, _poisson(SurrogateHamiltonianProposal(2))),
    "fireflies, Crank-Nicolson": Subject(
        rates, lambda: FireflyMH(proposal=CrankNicolsonProposal(0.7))
    ),
    "fireflies, random walk": Subject(rates, lambda: FireflyMH(proposal=RandomWalkProposal())),
    "levels": Subject(many_rates, GroupedMH, reversible=False),
    "unit vector": Subject(unit_vector, _exact(StiefelProposal())),
    "orthogonal matrix": Subject(rotation_or_reflection, _exact(StiefelProposal())),
    "reversible jump": Subject(
        selection, _exact(ReversibleJumpProposal("beta", "gamma", birth_scale=0.3))
    ),
    "Gibbs, random scan": Subject(field, _gibbs("random")),
    "Gibbs, systematic scan": Subject(field, _gibbs("systematic"), reversible=False),
}
