"""The cells that were measured, with their distance from the reference."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.benchmarks.peers.problems import FAMILIES
from examples.benchmarks.peers.samplers import ON_GPU, SAMPLERS
from examples.benchmarks.peers.summary import errors

OURS = ("ours", "exact", "sequential", "firefly", "paper")
"""Samplers of this package."""

APPROXIMATIONS = ("laplace", "laplace_newton", "laplace_weighted", "pathfinder", "advi")
"""They have no effective draws."""

INVARIANT = ("exact", "firefly", "metropolis", "demetropolis_z", "pymhss_mhss", "pymhss_smh")
INVARIANT += ("pymhss_tuna", "pymhss_rwm", "pymc_nuts", "nutpie", "nutpie_low_rank", "mams")
INVARIANT += ("numpyro_nuts", *ON_GPU)
"""Samplers that leave the posterior as it is, however long they run."""

EXACT = ("pymc_nuts", "nutpie", "nutpie_low_rank", "mams", "numpyro_nuts")
"""Samplers that read all rows and use gradients."""

SHORT = 200
"""Draws below which the least well sampled parameter is mostly chance: the median counts then."""

TITLES = {
    "logistic-20": "Logistic, D = 20",
    "logistic-100": "Logistic, D = 100",
    "poisson": "Poisson with exposure",
    "student_t": "Student-t, scale and degrees of freedom unknown",
    "hierarchical": "Hierarchical logistic, 50 groups",
    "rare": "Rare events, 2 in 1,000",
    "saturation": "Saturation curve",
    "kdd": "KDD Cup 99",
    "mnist": "MNIST, 7 against 9",
}


def title(model: str, n_rows: int) -> str:
    """Name of a posterior.

    Examples
    --------
    >>> title("kdd", 494021)
    'KDD Cup 99, N = 494,021'
    """
    return f"{TITLES[model]}, N = {n_rows:,}"


def converged(cell: dict[str, Any]) -> bool:
    """Whether a chain is long and stationary enough for its effective draws to mean anything.

    Short runs of samplers that read all rows are given the benefit of the doubt, but for halves
    that chance does not explain.
    """
    rhat = cell["rhat_max"]
    if cell["sampler"] in APPROXIMATIONS:
        return True
    if rhat is None:  # the chain did not move
        return False
    if cell["sampler"] in EXACT and cell["n_draws"] < 1_000:
        return rhat < 1.5
    return rhat < 1.05 and cell["ess_min"] >= 100


def exactness(cell: dict[str, Any]) -> str:
    """Whether a sampler leaves the posterior invariant, and if not, why.

    Examples
    --------
    >>> exactness({"sampler": "nutpie"}), exactness({"sampler": "laplace"})
    ('yes', 'no')
    >>> exactness({"sampler": "ours", "facts": {"test": "StudentTTest", "share_exact": 0.1}})
    'no, t-test'
    """
    if cell["sampler"] == "ours":
        facts = cell.get("facts", {})
        if facts.get("share_exact") == 1.0:  # decisions on all rows
            return "yes"
        return {None: "", "exact": "yes"}.get(facts.get("test"), "no, t-test")
    if cell["sampler"] in ("sequential", "paper"):
        return "no, t-test"
    if cell["sampler"] == "hmcecs":
        return "no, proxy"
    return "yes" if cell["sampler"] in INVARIANT else "no"


def same_machine(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two cells were measured at the same speed, as far as their yardsticks tell.

    They vary by half with what else the memory of the machine is used for.
    """
    speeds = [cell.get("yardstick_seconds") for cell in (one, other)]
    if None in speeds:
        return speeds[0] == speeds[1]
    return max(speeds) < 1.6 * min(speeds)


def seconds_until_known(cell: dict[str, Any]) -> float | None:
    """Seconds to 1,000 effective draws; those of an approximation are all that it takes."""
    if cell["sampler"] in APPROXIMATIONS:
        return cell["compile_seconds"] + cell["setup_seconds"]
    return seconds_to_1000(cell)


def seconds_to_1000(cell: dict[str, Any]) -> float | None:
    """Compilation, set-up, tuning and 1,000 effective draws of the least well sampled parameter."""
    if cell["sampler"] in APPROXIMATIONS:
        return None
    speed = cell["ess_per_second_median" if cell["n_draws"] < SHORT else "ess_per_second_min"]
    fixed = cell["compile_seconds"] + cell["setup_seconds"] + cell["tuning_seconds"]
    return fixed + 1_000.0 / speed if speed > 0.0 else None


@dataclass(frozen=True)
class Results:
    """All cells.

    Attributes
    ----------
    cells : dict
        What was written, by model, number of rows and sampler.
    """

    cells: dict[tuple[str, int, str], dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> "Results":
        """Read all files of a folder."""
        cells = {}
        for file in sorted(folder.glob("*.json")):
            cell = json.loads(file.read_text())
            cells[cell["model"], cell["n_rows"], cell["sampler"]] = cell
        return cls(cells)

    @property
    def posteriors(self) -> list[tuple[str, int]]:
        """Models and sizes that at least one sampler of this package was run on."""
        found = {key[:2] for key in self.cells if key[2] in OURS}
        return sorted(found, key=lambda key: (list(FAMILIES).index(key[0]), key[1]))

    def get(self, model: str, n_rows: int, sampler: str) -> dict[str, Any] | None:
        """A cell, if it was measured with success."""
        cell = self.cells.get((model, n_rows, sampler))
        return None if cell is None or "failed" in cell else cell

    def of(self, model: str, n_rows: int) -> dict[str, dict[str, Any]]:
        """Cells of a posterior by sampler, failures too, in the order of `SAMPLERS`."""
        keys = [(model, n_rows, sampler) for sampler in SAMPLERS]
        return {key[2]: self.cells[key] for key in keys if key in self.cells}

    def errors(self, model: str, n_rows: int, sampler: str) -> tuple[float, float] | None:
        """Largest error of a mean in sds, and of an sd as a share of it.

        Raises
        ------
        ValueError
            The reference is for other rows.
        """
        truth, cell = self.get(model, n_rows, "reference"), self.get(model, n_rows, sampler)
        if truth is None or cell is None:
            return None
        known = [rows for rows in (truth.get("rows"), cell.get("rows")) if rows is not None]
        if len(set(known)) > 1:
            raise ValueError(
                f"{sampler} on {model}, N = {n_rows:,}, had other rows than the reference: run "
                "both with --again."
            )
        return errors(cell, truth)

    def fastest_exact(self, model: str, n_rows: int) -> str | None:
        """The sampler on all rows with the most effective draws a second, if one has converged."""
        found = {
            name: cell["ess_per_second_median"]
            for name in EXACT
            if (cell := self.get(model, n_rows, name)) is not None and converged(cell)
        }
        return max(found, key=lambda name: found[name]) if found else None
