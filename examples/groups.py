"""Marriages by the occupations of wife and husband: varying intercepts and slopes, two samplers.

The survey of Fair (1978), part of statsmodels, asked 6,366 married women how they rate their
marriage and whether they had an affair. Couples are grouped by the two occupations: 36 groups of 2
to 904 couples. The model is sampled by ``GroupedMH`` and by NUTS.

Run ``python -m examples.groups``; ``--quick`` draws too little to be of use except to see whether
everything works.
"""

import argparse
import time
from pathlib import Path

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
from statsmodels.datasets import fair

from pymc_austerity import GroupedMH
from pymc_austerity.plots import plot_block_usage

ROOT = Path(__file__).parents[1]
OCCUPATIONS = ("student", "worker", "white-collar", "teacher, nurse", "manager", "professional")
COVARIATES = ("yrs_married", "children", "religious", "educ")


def load_marriages():
    """Return the survey, the names of its groups, and the group of each couple."""
    data = fair.load_pandas().data
    wife, husband = (data[k].to_numpy(int) - 1 for k in ("occupation", "occupation_husb"))
    pairs = [f"{w} / {h}" for w in OCCUPATIONS for h in OCCUPATIONS]
    return data, pairs, len(OCCUPATIONS) * wife + husband


def build_model(data, pairs, pair, *, centered=True):
    """Logistic regression; the intercept and the slope of the rating vary over the groups.

    ``GroupedMH`` samples both forms by the same moves. NUTS needs the non-centered one here.
    """
    covariates = data[list(COVARIATES)]
    covariates = ((covariates - covariates.mean()) / covariates.std()).to_numpy()
    rating = (data["rate_marriage"] - data["rate_marriage"].mean()).to_numpy()
    coords = {"pair": pairs, "effect": ["intercept", "rating"], "covariate": list(COVARIATES)}
    with pm.Model(coords=coords) as model:
        mean = pm.Normal("mean", 0.0, 1.5, dims="effect")
        chol, _, _ = pm.LKJCholeskyCov("cov", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0))
        if centered:
            of_pair = pm.MvNormal("of_pair", mean, chol=chol, dims=("pair", "effect"))
        else:
            z = pm.Normal("z", dims=("pair", "effect"))
            of_pair = pm.Deterministic("of_pair", mean + z @ chol.T, dims=("pair", "effect"))
        slope = pm.Normal("slope", 0.0, 1.0, dims="covariate")
        logit = of_pair[pair, 0] + of_pair[pair, 1] * rating + covariates @ slope
        pm.Bernoulli("affair", logit_p=logit, observed=(data["affairs"] > 0).to_numpy(int))
    return model


def sample_by_blocks(model, draws):
    """Levels, slopes, and what no row reads move by turns; few rows are read for each."""
    with model:
        step = GroupedMH()
        print(step.explain(), end="\n\n")
        return pm.sample(draws, chains=4, cores=2, step=step, random_seed=1)


def sample_on_all_rows(model, draws):
    """PyMC's NUTS, the reference."""
    with model:
        return pm.sample(
            draws, tune=draws, chains=4, cores=2, init="jitter+adapt_diag", random_seed=2
        )


def compare(by_blocks, all_rows):
    """Return means and effective draws of both runs, one row for each parameter."""
    names = ["mean", "cov_stds", "cov_corr", "slope", "of_pair"]
    tables = {
        name: az.summary(run, var_names=names, round_to="none").astype(float)
        for name, run in (("GroupedMH", by_blocks), ("NUTS", all_rows))
    }
    ours, nuts = tables.values()
    table = pd.DataFrame({"mean": ours["mean"], "sd": ours["sd"], "NUTS": nuts["mean"]})
    table["difference, sd"] = (ours["mean"] - nuts["mean"]) / nuts["sd"]
    table["ESS"], table["ESS of NUTS"] = ours["ess_bulk"], nuts["ess_bulk"]
    table["r_hat"] = ours["r_hat"]
    return table[table["sd"] > 0.0]  # without the ones on the diagonal of correlations


def plot_shrinkage(run, data, pair, path):
    """Show the share of affairs in each group, and what the model makes of it."""
    affair = (data["affairs"] > 0).to_numpy(float)
    sizes = np.bincount(pair, minlength=len(OCCUPATIONS) ** 2)
    share = np.bincount(pair, affair, minlength=sizes.size) / sizes
    draws = run.posterior["of_pair"].sel(effect="intercept").stack(all=("chain", "draw"))
    center = 1.0 / (1.0 + np.exp(-draws.to_numpy()))
    order = np.argsort(sizes)
    places = np.arange(sizes.size)
    low, middle, high = np.quantile(center, [0.05, 0.5, 0.95], axis=1)
    figure, axis = plt.subplots(figsize=(9, 4.5), layout="constrained")
    axis.plot(places, share[order], "o", color="0.6", label="share of affairs among the couples")
    axis.vlines(places, low[order], high[order], color="C0", alpha=0.6)
    axis.plot(places, middle[order], "o", color="C0", label="at average covariates (90% interval)")
    axis.axhline(affair.mean(), color="0.6", linewidth=0.8)
    axis.set_xticks(places[::5], [f"{sizes[k]}" for k in order[::5]])
    axis.set(xlabel="couples in the group", ylabel="probability of an affair")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=120)


def plot_rows(run, path):
    """Show the rows that a sweep read for each block."""
    figure, axis = plt.subplots(figsize=(9, 2.5), layout="constrained")
    plot_block_usage(run, ax=axis)
    figure.savefig(path, dpi=120)


def main():
    """Sample twice, compare, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few draws, to see that it runs")
    options = parser.parse_args()
    draws = 100 if options.quick else 4000
    output = ROOT / ("examples/output" if options.quick else "docs/_generated")
    output.mkdir(exist_ok=True)

    data, pairs, pair = load_marriages()
    seconds, runs = [], []
    for sample, n_draws, centered in (
        (sample_by_blocks, draws, True),
        (sample_on_all_rows, draws // 4, False),
    ):
        begun = time.perf_counter()
        runs.append(sample(build_model(data, pairs, pair, centered=centered), n_draws))
        seconds.append(time.perf_counter() - begun)
    table = compare(*runs)
    lines = [
        "| | seconds, all included | effective draws of the least well sampled parameter |",
        "| --- | ---: | ---: |",
        f"| `GroupedMH`, 4 x {draws:,} draws | {seconds[0]:.0f} | {table['ESS'].min():,.0f} |",
        f"| NUTS, not centered, 4 x {draws // 4:,} draws | {seconds[1]:.0f} "
        f"| {table['ESS of NUTS'].min():,.0f} |",
        "",
        f"Means differ by at most {table['difference, sd'].abs().max():.2f} posterior standard "
        f"deviations; the largest r_hat is {table['r_hat'].max():.3f}.",
    ]
    print(table.to_string(float_format="{:.3f}".format), *lines, sep="\n")
    (output / "groups.md").write_text("\n".join(lines) + "\n")
    plot_shrinkage(runs[0], data, pair, output / "groups_shrinkage.png")
    plot_rows(runs[0], output / "groups_rows.png")


if __name__ == "__main__":
    main()
