"""Models of which set-up has much to read: many predictors, curved or correlated likelihoods."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from examples.benchmarks.peers.problems import Problem, Rows

__all__ = ["COSTLY"]


def ordered_normal(name: str, sd: float, start: NDArray[np.float64]) -> pt.TensorVariable:
    """Entries in ascending order, with a normal prior about zero."""
    ordered = pm.distributions.transforms.ordered
    return pm.Normal(name, 0.0, sd, shape=start.size, initval=start, transform=ordered)


def ordinal_model(rows: Rows) -> pm.Model:
    """Ten ordered categories, with unknown cut points."""
    n_cuts = int(rows["y"].max())
    with pm.Model() as model:
        cuts = ordered_normal("cuts", 3.0, np.linspace(-2.0, 2.0, n_cuts))
        beta = pm.Normal("beta", 0.0, 1.0, shape=rows["x"].shape[1])
        pm.OrderedLogistic("y", eta=rows["x"] @ beta, cutpoints=cuts, observed=rows["y"])
    return model


def ordinal(n_rows: int) -> Problem:
    """Ten columns."""
    rng = np.random.default_rng(21)
    x = rng.standard_normal((n_rows, 10))
    latent = x @ rng.normal(scale=0.3, size=10) + rng.logistic(size=n_rows)
    y = np.digitize(latent, np.linspace(-2.5, 2.5, 9))
    return Problem("ordinal", {"x": x, "y": y}, ordinal_model)


def mixture_model(rows: Rows) -> pm.Model:
    """A mixture of five normals, in order of their means."""
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.ones(5))
        means = ordered_normal("means", 5.0, np.linspace(-4.0, 4.0, 5))
        scales = pm.HalfNormal("scales", 2.0, shape=5)
        pm.NormalMixture("y", w=weights, mu=means, sigma=scales, observed=rows["y"])
    return model


def mixture(n_rows: int) -> Problem:
    """Five components which overlap a little."""
    rng = np.random.default_rng(22)
    which = rng.choice(5, size=n_rows, p=[0.1, 0.3, 0.2, 0.25, 0.15])
    y = rng.normal(
        np.array([-6.0, -2.5, 0.0, 3.0, 6.0])[which], np.array([1, 0.7, 0.5, 0.8, 1])[which]
    )
    return Problem("mixture", {"y": y}, mixture_model)


def five_responses_model(rows: Rows) -> pm.Model:
    """Normal responses, correlated."""
    n_responses = rows["y"].shape[1]
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov(
            "chol", n=n_responses, eta=2.0, sd_dist=pm.Exponential.dist(1.0)
        )
        mean = pm.Normal("mean", 0.0, 2.0, shape=n_responses)
        pm.MvNormal("y", mean, chol=chol, observed=rows["y"])
    return model


def five_responses(n_rows: int) -> Problem:
    """Five columns of responses."""
    rng = np.random.default_rng(23)
    root = np.tril(rng.normal(scale=0.4, size=(5, 5))) + np.eye(5)
    y = rng.standard_normal((n_rows, 5)) @ root.T + rng.normal(size=5)
    return Problem("five responses", {"y": y}, five_responses_model)


def crossed_ordinal_model(rows: Rows) -> pm.Model:
    """Five ordered categories, and two crossed factors."""
    n_cuts = int(rows["y"].max())
    with pm.Model() as model:
        cuts = ordered_normal("cuts", 3.0, np.linspace(-1.5, 1.5, n_cuts))
        total = rows["x"] @ pm.Normal("beta", 0.0, 1.0, shape=rows["x"].shape[1])
        for name in ("user", "item"):
            spread = pm.HalfNormal(f"spread_{name}", 1.0)
            effect = pm.Normal(name, 0.0, spread, shape=int(rows[name].max()) + 1)
            total = total + effect[rows[name]]
        pm.OrderedLogistic("y", eta=total, cutpoints=cuts, observed=rows["y"])
    return model


def crossed_ordinal(n_rows: int) -> Problem:
    """A user for each 50 rows, an item for each 500, three columns."""
    rng = np.random.default_rng(24)
    user, item = (np.arange(n_rows) % max(n_rows // many, 2) for many in (50, 500))
    item = rng.permutation(item)
    x = rng.standard_normal((n_rows, 3))
    latent = x @ [0.3, -0.2, 0.1] + rng.logistic(size=n_rows)
    latent += rng.normal(0.0, 0.8, size=user.max() + 1)[user]
    latent += rng.normal(0.0, 0.6, size=item.max() + 1)[item]
    y = np.digitize(latent, [-1.5, -0.5, 0.5, 1.5])
    return Problem("ordinal", {"user": user, "item": item, "x": x, "y": y}, crossed_ordinal_model)


def network_model(rows: Rows) -> pm.Model:
    """A hidden layer of eight, for a binary outcome."""
    n_columns = rows["x"].shape[1]
    rng = np.random.default_rng(0)  # a start at zero would be a saddle
    with pm.Model() as model:
        first = pm.Normal("first", shape=(n_columns, 8), initval=rng.normal(size=(n_columns, 8)))
        bias = pm.Normal("bias", shape=8)
        second = pm.HalfNormal("second", shape=8)
        hidden = pt.tanh(rows["x"] @ first + bias)
        pm.Bernoulli("y", logit_p=hidden @ second - pm.Normal("level"), observed=rows["y"])
    return model


def network(n_rows: int) -> Problem:
    """Two columns, two half moons."""
    rng = np.random.default_rng(25)
    y = rng.integers(2, size=n_rows).astype(np.int8)
    angle = rng.uniform(0.0, np.pi, size=n_rows)
    x = np.column_stack([np.cos(angle), np.sin(angle)])
    x[y == 1] = [1.0, 0.5] - x[y == 1]
    return Problem("network", {"x": x + rng.normal(scale=0.3, size=x.shape), "y": y}, network_model)


def small_groups_model(rows: Rows) -> pm.Model:
    """Logistic regression with an intercept for each group, centered."""
    with pm.Model() as model:
        center, spread = pm.Normal("center", 0.0, 1.0), pm.HalfNormal("spread", 1.0)
        effect = pm.Normal("effect", center, spread, shape=int(rows["group"].max()) + 1)
        logit = effect[rows["group"]] + rows["x"] @ pm.Normal("beta", shape=rows["x"].shape[1])
        pm.Bernoulli("y", logit_p=logit, observed=rows["y"])
    return model


def small_groups(n_rows: int) -> Problem:
    """Ten rows a group, five columns."""
    rng = np.random.default_rng(26)
    group, x = np.arange(n_rows) // 10, rng.standard_normal((n_rows, 5))
    logit = rng.normal(0.3, 0.7, size=group.max() + 1)[group] + x @ rng.normal(scale=0.3, size=5)
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int8)
    return Problem("small groups", {"group": group, "x": x, "y": y}, small_groups_model)


def softmax_model(rows: Rows) -> pm.Model:
    """Coefficients of all classes but the first."""
    n_others = int(rows["y"].max())
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=(rows["x"].shape[1], n_others))
        logits = rows["x"] @ beta
        logits = pt.concatenate([pt.zeros_like(logits[:, :1]), logits], axis=1)
        pm.Categorical("y", logit_p=logits, observed=rows["y"])
    return model


def softmax(n_rows: int, n_classes: int = 50) -> Problem:
    """Twenty columns."""
    rng = np.random.default_rng(27)
    x = rng.standard_normal((n_rows, 20))
    x[:, 0] = 1.0
    logits = x @ rng.normal(scale=0.3, size=(20, n_classes))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return Problem("softmax", {"x": x, "y": y}, softmax_model)


COSTLY: dict[str, tuple[Callable[[int], Problem], int]] = {
    "ordinal": (ordinal, 1_000_000),
    "mixture": (mixture, 1_000_000),
    "five responses": (five_responses, 1_000_000),
    "crossed ordinal": (crossed_ordinal, 100_000),
    "network": (network, 100_000),
    "small groups": (small_groups, 1_000_000),
    "softmax": (softmax, 100_000),
}
"""Names, how to make the rows of each, and how many."""
