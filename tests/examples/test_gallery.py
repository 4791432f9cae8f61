"""The notebooks of the gallery run on both generations, and what the site shows is their code."""

import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
QUICK = {"draws": 100, "tune": 100, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 1}
SMALL = {
    "tall_logistic_regression": {"n_rows": 5_000, "n_compared": 50},
    "many_groups": {"n_patients": 6_000, "n_hospitals": 210, "n_compared": 50},
    "how_exact_is_it": {"n_rows": 4_000, "n_compared": 50},
    "rows_on_disk": {"n_files": 2, "rows_per_file": 2_000, "n_compared": 50},
    "from_advi_to_mcmc": {"n_iterations": 5_000, "n_compared": 50},
}
"""What the cells tagged "parameters" say instead."""


def cells_of(name: str) -> list[str]:
    """Code cells of a notebook as it is written, with their options."""
    text = (GALLERY / f"{name}.myst.md").read_text()
    return re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", text, re.M | re.S)


def run(name: str, parameters: dict) -> dict:
    """Run the code cells one after another; return the variables."""
    variables: dict = {"__name__": "notebook"}
    for cell in cells_of(name):
        tags, code = re.fullmatch(r"(:tags:.*?\n\n)?(.*)", cell, re.S).groups()
        exec(compile(code, name, "exec"), variables)
        if tags and "parameters" in tags:
            assert set(parameters) <= set(variables)
            variables |= parameters
    return variables


# Deprecations: ArviZ 0.23 uses what pandas and Matplotlib will remove.
# The rest: runs as short as these are rightly warned of.
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pymc_austerity.AusterityWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered in scalar divide:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto distribution")
@pytest.mark.parametrize("name", SMALL)
def test_it_runs_on_little_data(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    variables = run(name, SMALL[name] | {"settings": QUICK})
    draws = variables["run"].posterior.sizes
    assert (draws["chain"], draws["draw"]) == (QUICK["chains"], QUICK["draws"])
    assert variables["path"].is_file()
    plt.close("all")


def test_every_notebook_is_tried():
    assert {path.name.removesuffix(".myst.md") for path in GALLERY.glob("*.myst.md")} == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_the_executed_notebook_is_the_written_one(name):
    executed = json.loads((GALLERY / f"{name}.ipynb").read_text())
    cells = ["".join(c["source"]) for c in executed["cells"] if c["cell_type"] == "code"]
    written = [
        re.sub(r"\A:tags:.*?\n\n", "", cell, flags=re.S).strip("\n") for cell in cells_of(name)
    ]
    assert cells == written, f"run make notebooks ARGS={name}"
    texts = ["".join(c["source"]) for c in executed["cells"] if c["cell_type"] == "markdown"]
    source = (GALLERY / f"{name}.myst.md").read_text()
    assert all(text in source for text in texts), f"run make notebooks ARGS={name}"


@pytest.mark.parametrize("name", SMALL)
def test_the_executed_notebook_has_pictures_and_no_error(name):
    executed = json.loads((GALLERY / f"{name}.ipynb").read_text())
    outputs = [o for c in executed["cells"] for o in c.get("outputs", ())]
    assert any("image/png" in output.get("data", ()) for output in outputs)
    assert all(output["output_type"] != "error" for output in outputs)
