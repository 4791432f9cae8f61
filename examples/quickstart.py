"""Doctor visits in the RAND Health Insurance Experiment: one model, two samplers.

The same ordinary PyMC model is sampled by ``AusterityMH``, whose decisions read few rows, and by
NUTS on all rows. Run ``make demo``, or ``python examples/quickstart.py``. With ``--paper``,
``AusterityMH`` is the algorithm of the paper to the letter: slower and less accurate. ``--quick``
draws too little to be of use except to see whether everything works.
"""

import argparse
from pathlib import Path

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
from statsmodels.datasets import randhie

from pymc_austerity import AusterityMH, RandomWalkProposal

OUTPUT = Path(__file__).parent / "output"
COVARIATES = {
    "lncoins": "coinsurance rate (log)",
    "idp": "individual deductible plan",
    "lpi": "participation incentive (log)",
    "fmde": "maximum expenditure (log)",
    "physlm": "physical limitation",
    "disea": "chronic diseases",
    "hlthg": "health: good",
    "hlthf": "health: fair",
    "hlthp": "health: poor",
}


def load_visits():
    """Return the visits of each person-year, and the standardized covariates in columns."""
    data = randhie.load_pandas().data
    covariates = data[list(COVARIATES)].rename(columns=COVARIATES)
    return data["mdvis"].to_numpy(int), (covariates - covariates.mean()) / covariates.std()


def build_model(visits, covariates):
    """Negative binomial regression: the counts vary far more than Poisson counts would.

    The variance of a count with mean ``mu`` is ``mu + dispersion * mu**2``. A slope is the change
    in log mean visits when its covariate grows by one standard deviation.
    """
    with pm.Model(coords={"covariate": list(covariates)}) as model:
        intercept = pm.Normal("intercept", mu=0, sigma=2)
        slope = pm.Normal("slope", mu=0, sigma=1, dims="covariate")
        dispersion = pm.HalfNormal("dispersion", sigma=2)
        mu = pm.math.exp(intercept + covariates.to_numpy() @ slope)
        pm.NegativeBinomial("visits", mu=mu, alpha=1 / dispersion, observed=visits)
    return model


def sample_on_few_rows(model, draws, **settings):
    """Sample with decisions on few rows; say first what was chosen."""
    with model:
        step = AusterityMH(epsilon=0.05, **settings)
        print(step.explain(), end="\n\n")
        return pm.sample(draws, chains=4, cores=2, step=step, random_seed=1)


def sample_on_all_rows(model, draws):
    """Sample with PyMC's NUTS: every gradient reads every row."""
    with model:
        return pm.sample(
            draws, tune=500, chains=2, cores=2, init="jitter+adapt_diag", random_seed=2
        )


def compare(few_rows, all_rows):
    """Return the two summaries side by side, one row for each parameter."""
    columns = ["mean", "sd", "mcse_mean", "ess_bulk", "r_hat"]
    both = {"Austerity": few_rows, "NUTS": all_rows}
    tables = {
        name: az.summary(idata, round_to="none")[columns].astype(float)
        for name, idata in both.items()
    }
    table = pd.concat(tables, axis=1).swaplevel(axis=1)[columns]
    difference = (table["mean", "Austerity"] - table["mean", "NUTS"]) / table["sd", "NUTS"]
    table["difference", "in sd"] = difference
    return table


def report(few_rows, all_rows):
    """Print the summaries and what the decisions cost."""
    formats = {"mean": "{:.3f}", "sd": "{:.4f}", "mcse_mean": "{:.4f}", "ess_bulk": "{:.0f}"}
    table = compare(few_rows, all_rows)
    formatters = {name: formats.get(name[0], "{:.2f}").format for name in table.columns}
    print("\nPosterior, by AusterityMH (decisions on few rows) and by NUTS (all rows)\n")
    print(table.to_string(formatters=formatters))

    stats = few_rows.sample_stats
    share = stats["data_fraction"].to_numpy()
    accepted = stats["accepted"].to_numpy().mean()
    all_read = stats["used_all_rows"].to_numpy().mean()
    print(
        f"\nOf {share.size:,} decisions, {accepted:.0%} accepted the proposal.\n"
        f"A decision read {share.mean():.1%} of the rows on average; half of them read at most "
        f"{np.median(share):.1%}, and {all_read:.1%} read every row."
    )


def draws_by_parameter(idata):
    """Return the draws of each scalar parameter, all chains in one array, keyed by label."""
    draws = {}
    for name in ("intercept", "slope", "dispersion"):
        values = idata.posterior[name]
        if "covariate" in values.dims:
            for label in values["covariate"].to_numpy():
                draws[str(label)] = values.sel(covariate=label).to_numpy().ravel()
        else:
            draws[name] = values.to_numpy().ravel()
    return draws


def plot_posteriors(few_rows, all_rows, path):
    """Overlay the marginal posteriors of the two samplers."""
    reference = draws_by_parameter(all_rows)
    figure, axes = plt.subplots(3, 4, figsize=(13, 8), layout="constrained")
    for axis, (label, draws) in zip(axes.flat, draws_by_parameter(few_rows).items(), strict=False):
        bins = np.histogram_bin_edges(np.concatenate([draws, reference[label]]), 50)
        axis.hist(reference[label], bins, density=True, color="0.8", label="NUTS, all rows")
        axis.hist(draws, bins, density=True, histtype="step", label="AusterityMH")
        axis.set(title=label, yticks=[])
    axes.flat[-1].set_axis_off()
    axes.flat[-1].legend(*axes.flat[0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.savefig(path, dpi=120)


def plot_data_usage(few_rows, path):
    """Show the share of the rows that each decision read: over the draws, and as a histogram."""
    share = 100 * few_rows.sample_stats["data_fraction"].to_numpy()
    figure, (over_draws, histogram) = plt.subplots(
        1, 2, figsize=(13, 4), sharey=True, width_ratios=[3, 1], layout="constrained"
    )
    over_draws.plot(share[0], ".", markersize=2, alpha=0.4, label="one decision (first chain)")
    running_mean = np.cumsum(share.mean(0)) / np.arange(1, share.shape[1] + 1)
    over_draws.plot(running_mean, color="black", label="running mean, all chains")
    over_draws.set(xlabel="draw", ylabel="rows read by the decision, %", yscale="log")
    over_draws.legend(loc="upper right")
    read = share[share > 0]
    bins = np.geomspace(read.min() / 1.1, 1.1 * read.max(), 25)
    histogram.hist(read, bins, orientation="horizontal")
    histogram.set(xlabel="number of decisions")
    figure.savefig(path, dpi=120)


def main():
    """Sample twice, report, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few draws, to see that it runs")
    parser.add_argument("--paper", action="store_true", help="the algorithm of the paper")
    options = parser.parse_args()
    draws = 200 if options.quick else 1000
    settings = {}
    if options.paper:
        draws *= 10  # a random walk moves slowly
        settings = {
            "control_variates": None,
            "sampling": "windows",
            "proposal": RandomWalkProposal(),
        }

    visits, covariates = load_visits()
    print(f"{len(visits):,} person-years, {visits.mean():.2f} visits to a doctor on average\n")
    model = build_model(visits, covariates)
    few_rows = sample_on_few_rows(model, draws, **settings)
    all_rows = sample_on_all_rows(model, 100 if options.quick else 500)
    report(few_rows, all_rows)

    OUTPUT.mkdir(exist_ok=True)
    plot_posteriors(few_rows, all_rows, OUTPUT / "posteriors.png")
    plot_data_usage(few_rows, OUTPUT / "data_usage.png")
    print(f"\nPictures: {OUTPUT / 'posteriors.png'} and {OUTPUT / 'data_usage.png'}")


if __name__ == "__main__":
    main()
