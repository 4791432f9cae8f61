"""Names of the samplers; each is imported only in the process that runs it."""

from collections.abc import Callable
from importlib import import_module

from examples.benchmarks.peers.run import Run

SAMPLERS = {
    "ours": ("pymc_samplers", "defaults", "AusterityMH()"),
    "exact": ("pymc_samplers", "exact", 'AusterityMH(test="exact")'),
    "sequential": ("pymc_samplers", "sequential", "AusterityMH(epsilon=0.05)"),
    "firefly": ("pymc_samplers", "firefly", "FireflyMH()"),
    "paper": ("pymc_samplers", "papers_setting", "AusterityMH, the paper's setting"),
    "metropolis": ("pymc_samplers", "metropolis", "pm.Metropolis"),
    "demetropolis_z": ("pymc_samplers", "demetropolis_z", "pm.DEMetropolisZ"),
    "pymc_nuts": ("pymc_samplers", "nuts", "PyMC NUTS"),
    "nutpie": ("nutpie_sampler", "nuts", "nutpie"),
    "nutpie_low_rank": ("nutpie_sampler", "low_rank", "nutpie, low rank"),
    "numpyro_nuts": ("numpyro_samplers", "nuts", "NumPyro NUTS"),
    "mams": ("microcanonical", "mams", "BlackJAX MAMS"),
    "hmcecs": ("numpyro_samplers", "hmcecs", "NumPyro HMCECS, Taylor proxy"),
    "sgld_cv": ("blackjax_sampler", "sgld", "BlackJAX SGLD, control variates"),
    "sghmc_cv": ("blackjax_sampler", "sghmc", "BlackJAX SGHMC, control variates"),
    "pymhss_mhss": ("pymhss_sampler", "mhss", "pymhss MH-SS, order 2"),
    "pymhss_smh": ("pymhss_sampler", "smh", "pymhss SMH, order 2"),
    "pymhss_tuna": ("pymhss_sampler", "tuna", "pymhss Tuna"),
    "pymhss_rwm": ("pymhss_sampler", "rwm", "pymhss random walk"),
    "laplace": ("approximations", "laplace", "Laplace (pymc-extras)"),
    "laplace_newton": ("approximations", "laplace_by_newton", "Laplace (pymc-extras), trust-ncg"),
    "laplace_weighted": ("approximations", "weighted_laplace", "Laplace, weighted"),
    "pathfinder": ("approximations", "pathfinder", "Pathfinder (pymc-extras)"),
    "advi": ("approximations", "advi", "PyMC ADVI, mini-batches"),
    "numpyro_nuts_gpu": ("numpyro_samplers", "nuts", "NumPyro NUTS, GPU"),
    "laps_gpu": ("microcanonical", "laps", "BlackJAX LAPS, GPU"),
}
"""Module, function and what it is called in tables."""

ON_GPU = tuple(name for name in SAMPLERS if name.endswith("_gpu"))
"""Samplers that need a graphics processor of NVIDIA."""

LABELS = {name: label for name, (_, _, label) in SAMPLERS.items()}

COLORS = {
    "ours": "tab:blue",
    "exact": "#aec7e8",
    "sequential": "tab:cyan",
    "firefly": "#9edae5",
    "paper": "tab:gray",
    "metropolis": "#c7c7c7",
    "demetropolis_z": "black",
    "pymc_nuts": "tab:red",
    "nutpie": "tab:orange",
    "nutpie_low_rank": "#ffbb78",
    "numpyro_nuts": "tab:green",
    "mams": "#98df8a",
    "hmcecs": "tab:purple",
    "sgld_cv": "#c5b0d5",
    "sghmc_cv": "tab:pink",
    "pymhss_mhss": "tab:olive",
    "pymhss_smh": "#dbdb8d",
    "pymhss_tuna": "#8c6d31",
    "pymhss_rwm": "#393b79",
    "laplace": "tab:brown",
}
"""Of lines in pictures, for Matplotlib: one color for one sampler, wherever it is drawn."""


def sampler(name: str) -> Callable[..., Run]:
    """The function that runs a sampler."""
    module, function, _ = SAMPLERS[name]
    return getattr(import_module(f"examples.benchmarks.peers.{module}"), function)
