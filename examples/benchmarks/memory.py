"""Peak memory of construction and sampling, in a process of its own."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pymc as pm

from examples.benchmarks.models import logistic_data, logistic_regression, papers_algorithm
from examples.benchmarks.report import Measurement
from pymc_austerity import AusterityMH

TITLE = "peak memory, 1,000,000 x 20 logistic rows"
BAR = 2.5


def measure(n_draws: int) -> list[Measurement]:
    """Peak memory above that of an imported PyMC; the user's own arrays are included.

    The same run on 200 rows comes first. It shows what compilation and PyMC need whatever the
    number of rows, and leaves compiled code behind that the large run uses again.
    """
    with tempfile.TemporaryDirectory() as folder:
        # made here and loaded there: what simulating the data takes is not the sampler's
        for name, array in zip("xy", logistic_data(1_000_000), strict=True):
            np.save(Path(folder, name), array)
        child = subprocess.run(
            [sys.executable, "-m", __name__, str(n_draws), folder],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    peaks = json.loads(child.stdout.splitlines()[-1])
    rows, small, large = peaks["rows"], peaks["sampled small"], peaks["sampled"]
    return [
        Measurement("rows: the user's X and y", rows, "MB"),
        Measurement("peak of the same run on 200 rows", small, "MB"),
        Measurement("peak of construction", peaks["constructed"], "MB"),
        Measurement("peak of construction and sampling", large, "MB"),
        Measurement("peak, user's arrays included, to rows", large / rows, bar=BAR),
        Measurement("the same above the run on 200 rows", (large - small) / rows),
    ]


def peak_megabytes() -> float:
    """Largest resident memory of this process so far, memory maps included.

    Linux keeps the peak of the process that started this one in ``ru_maxrss``, and that of this
    one alone in VmHWM.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [x for x in status.read_text().splitlines() if x.startswith("VmHWM")]
        return int(line.split()[1]) * 1024 / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1e6 if sys.platform == "darwin" else 1e3
    )


def run(n_draws: int, folder: str) -> dict[str, float]:
    """Construct and sample, few rows and many; peaks in MB above the imported packages."""
    imported = peak_megabytes()
    with logistic_regression(*logistic_data(200)):
        sample(papers_algorithm(batch_size=100), n_draws)
    sampled_small = peak_megabytes()
    x, y = (np.load(Path(folder, f"{name}.npy")) for name in "xy")
    with logistic_regression(x, y):
        step = papers_algorithm()
        constructed = peak_megabytes()
        sample(step, n_draws)
    return {
        "rows": (x.nbytes + y.nbytes) / 1e6,
        "sampled small": sampled_small - imported,
        "constructed": constructed - imported,
        "sampled": peak_megabytes() - imported,
    }


def sample(step: AusterityMH, n_draws: int) -> None:
    """Run one chain."""
    pm.sample(
        step=step,
        tune=100,
        draws=n_draws,
        chains=1,
        cores=1,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), sys.argv[2])))
