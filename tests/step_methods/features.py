"""What works where: the table of the site, found by trying everything.

``python -m tests.step_methods.features`` writes it.
"""

from pathlib import Path

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, FireflyMH, GroupedMH, HoeffdingTest, LangevinProposal
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.step_methods import austerity_mh
from tests.running import sample

PAGE = Path(__file__).parents[2] / "docs" / "_generated" / "features.md"
N_ROWS, N_LEVELS, N_EXAMPLE = 12_000, 40, 30
METHODS = (AusterityMH, GroupedMH, FireflyMH)
WHERE = ("memory", "data=")

FEATURES = {
    "defaults": {},
    "`epsilon=0.05`": {"epsilon": 0.05},
    '`test="exact"`': {"test": "exact"},
    "`HoeffdingTest`": {"test": HoeffdingTest(1e-2, error_prob=0.05)},
    "`epsilon=0`": {"epsilon": 0.0},
    "`control_variates=None`": {"control_variates": None, "epsilon": 0.05},
    "`LangevinProposal`": {"proposal": LangevinProposal(batch_size=500)},
    "`resume=`": {"resume": None},
    "`vars=`, for all": {"vars": ["slope", "levels"]},
    "`blocked=False`": {"blocked": False},
    "products of factors": {"products": True},
    "`float32`": {"floatX": "float32"},
}
"""Settings of step methods, and of the model."""


def rows():
    """A regression with levels."""
    rng = np.random.default_rng(1)
    level = rng.integers(0, N_LEVELS, N_ROWS)
    x = rng.normal(size=N_ROWS)
    eta = rng.normal(0.3, 0.5, N_LEVELS)[level] - 0.4 * x
    return {"x": x, "level": level, "y": rng.poisson(np.exp(eta))}


def model_on(data, n_rows, *, grouped, products):
    """The model on the first rows; without `grouped`, its levels have a prior of their own."""
    with pm.Model() as model:
        x, level = pm.Data("x", data["x"][:n_rows]), pm.Data("level", data["level"][:n_rows])
        slope = pm.Normal("slope")
        scale = pm.HalfNormal("scale") if grouped or products else 1.0
        if products:
            levels = scale * pm.Normal("levels", shape=N_LEVELS)
        else:
            levels = pm.Normal("levels", 0.0, scale, shape=N_LEVELS)
        eta = levels[level] + slope * x
        pm.Poisson("y", pm.math.exp(eta), observed=data["y"][:n_rows])
    return model


def outcome(method, where, settings, data):
    """What is compiled, as the page says; a dash where it is refused."""
    settings = dict(settings)
    products = settings.pop("products", False)
    if settings.pop("floatX", "float64") == "float32":
        data = {name: a.astype("float32") if a.dtype.kind == "f" else a for name, a in data.items()}
    is_here = where == "memory"
    n_rows = N_ROWS if is_here else N_EXAMPLE
    grouped = method is GroupedMH
    with model_on(data, n_rows, grouped=grouped, products=products):
        if not is_here:
            settings["data"] = data
        try:
            if "resume" in settings:
                settings["resume"] = run_of(method, settings)
            step = method(**settings)
        except (SettingError, SettingTypeError, TypeError):
            return "–"
    steps = step.methods if hasattr(step, "methods") else [step]
    if not any(getattr(each, "python_needed", "sweeps") for each in steps):
        return "compiled"
    deciders = [getattr(each, "decider", None) for each in steps]
    return "decisions" if all(getattr(d, "compiled", None) for d in deciders) else "Python"


def run_of(method, settings):
    """A short run."""
    step = method(**{name: value for name, value in settings.items() if name != "resume"})
    return sample(step, pm.modelcontext(None), draws=20, tune=20, chains=1)


def page():
    """The table."""
    data = rows()
    header = ["", *(f"`{m.__name__}`, {where}" for m in METHODS for where in WHERE)]
    lines = [header, ["---"] * len(header)]
    for name, settings in FEATURES.items():
        with pytest.MonkeyPatch.context() as patch:  # each step method is itself
            patch.setattr(austerity_mh, "leaves_the_choice", lambda request, **_: False)
            cells = [outcome(m, where, settings, data) for m in METHODS for where in WHERE]
        lines.append([name, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
