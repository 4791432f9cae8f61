"""Runs of which everything is known, and real ones."""

from types import SimpleNamespace

import numpy as np
import xarray as xr

from tests.running import built, sample

DIMS = ("chain", "draw")


def synthetic(n_chains=2, n_draws=50, n_step_methods=None, attrs=None, **changed):
    """Every decision reads 100 of 1,000 rows in one look; statistics and constants may differ."""
    values = {
        "n_rows_used": 100,
        "data_fraction": 0.1,
        "n_looks": 1,
        "used_all_rows": False,
        "accepted": 1.0,
        "decision_error": 0.02,
        "standardized_mean": 3.0,
        "n_audited": 0,
        "n_wrong": 0,
        "scaling": 1.0,
    } | changed
    shape = (n_chains, n_draws) + ((n_step_methods,) if n_step_methods else ())
    variables = {
        name: ((*DIMS, f"{name}_dim_0")[: len(shape)], np.broadcast_to(value, shape).copy())
        for name, value in values.items()
    }
    constants = {"n_rows": 1_000, "epsilon": 0.05, "batch_size": 100, "steps_per_draw": 1}
    return xr.Dataset(variables, attrs=constants | (attrs or {}))


def audited(n_audited, n_wrong, **kwargs):
    """The first draws of the first of two chains are audited, and the first of these are wrong."""
    number = np.arange(kwargs.get("n_draws", 50))
    checked, wrong = np.zeros((2, 2, number.size), dtype=int)
    checked[0], wrong[0] = number < n_audited, number < n_wrong
    return synthetic(n_audited=checked, n_wrong=wrong, **kwargs)


def grouped(n_rows=(0, 60, 40), accepted=(0.3, 0.9, 0.6), **constants):
    """A run of GroupedMH in which every draw costs the same."""
    names = ("untouched", "county", "common")
    blocks = {f"n_rows_{name}": n for name, n in zip(names, n_rows, strict=True)}
    blocks |= {f"accepted_{name}": share for name, share in zip(names, accepted, strict=True)}
    return synthetic(attrs={"blocks": ", ".join(names)} | constants, **blocks)


def real(build, *, beside=None, draws=200, **settings):
    """Sample a small model with the settings of the paper."""
    model, paper = build(), {"control_variates": None, "batch_size": 100, "epsilon": 0.05}
    step = built(model, **(paper | settings))
    steps = [step, built(model, beside)] if beside else step
    return sample(steps, model, draws=draws, tune=200, random_seed=1)


def forms_of(statistics, **variables):
    """A run with these draws, of shape (chain, draw, ...), as either generation returns it."""
    posterior = xr.Dataset(
        {
            name: ((*DIMS, *(f"{name}_dim_{i}" for i in range(np.ndim(values) - 2))), values)
            for name, values in variables.items()
        }
    )
    groups = {"sample_stats": statistics} | ({"posterior": posterior} if variables else {})
    tree = xr.DataTree.from_dict(groups)
    return {"tree": tree, "idata": SimpleNamespace(**groups)}
