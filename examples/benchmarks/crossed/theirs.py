"""Runs in an environment of its own, with crossed-effects and GPBoost: ratings in, draws out.

``python theirs.py ROWS.npz DRAWS.npz SAMPLER KIND SECONDS``
"""

import json
import resource
import sys
import time

import numpy as np

N_SWEEPS = 1_100
"""Of crossed-effects, as in its demonstrations, where the first hundred are left out."""


def crossed_effects(index, y, kind, seconds):
    """Collapsed Gibbs of normal ratings, Metropolis within it of binary ones."""
    from xfx.glm import binomial
    from xfx.lm import gibbs

    ones, sizes, rng = np.ones(len(y)), index.max(axis=0) + 1, np.random.default_rng(1)
    started = time.process_time()
    if kind == "normal":
        # Its last draw of the intercept exchanges the precisions of the prior and of a rating, so
        # that draws of the intercept and of sigma are wrong unless, as here, both are 1.
        sweeps = gibbs.sample_posterior(y, y**2, ones, sizes, index, 1.0, ome=rng)
    else:
        sweeps = binomial.sample_posterior(y, ones, sizes, index, 0.25, ome=rng)
    found = [next(sweeps)]
    ready = time.process_time()
    while len(found) < N_SWEEPS and time.process_time() - ready < seconds:
        found.append(next(sweeps))
    used, n_tuning = time.process_time() - ready, len(found) // 11
    effects, *precisions = zip(*found[n_tuning:], strict=True)
    names = ("intercept", "users", "items")
    draws = dict(zip(names, map(np.array, zip(*effects, strict=True)), strict=True))
    draws["of_users"], draws["of_items"] = np.array(precisions[0]).T ** -0.5
    if kind == "normal":
        draws["sigma"] = np.array(precisions[1]) ** -0.5
    share = n_tuning / len(found)
    return draws, ready - started, share * used, (1.0 - share) * used


def gpboost(index, y, kind, _):
    """Maximum likelihood, in the Laplace approximation if ratings are binary, and predictions."""
    from gpboost import GPModel

    started = time.process_time()
    likelihood = "gaussian" if kind == "normal" else "bernoulli_logit"
    model = GPModel(group_data=index, likelihood=likelihood, num_parallel_threads=1)
    model.fit(y=y, X=np.ones((len(y), 1)))
    effects = model.predict_training_data_random_effects().to_numpy()
    used = time.process_time() - started
    first = [np.unique(levels, return_index=True)[1] for levels in index.T]
    scales = np.sqrt(model.get_cov_pars(std_err=False).to_numpy().ravel())
    names = ("sigma", "of_users", "of_items")[-len(scales) :]
    draws = {name: scale[None] for name, scale in zip(names, scales, strict=True)}
    draws |= {"users": effects[None, first[0], 0], "items": effects[None, first[1], 1]}
    draws["intercept"] = model.get_coef(std_err=False).to_numpy().ravel()
    return draws, 0.0, 0.0, used


def main() -> None:
    """Sample or estimate; the last line that is printed has the seconds."""
    rows, draws, name, kind, seconds = sys.argv[1:]
    with np.load(rows) as data:
        index, y = np.stack([data["user"], data["item"]], axis=1), data["y"].astype(float)
    found, setup, tuning, sampling = globals()[name](index, y, kind, float(seconds))
    np.savez(draws, **found)
    result = {
        "setup_seconds": setup,
        "tuning_seconds": tuning,
        "sampling_seconds": sampling,
        "approximate": name == "gpboost",
        "facts": {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
