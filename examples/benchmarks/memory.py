"""Peak memory of construction and sampling, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

from examples.benchmarks.report import Measurement

TITLE = "peak memory, 1,000,000 x 20 logistic rows"
BAR = 2.5


def measure(n_draws: int) -> list[Measurement]:
    """Peak memory above that of an imported PyMC; the user's own arrays are included."""
    child = subprocess.run(
        [sys.executable, "-m", __name__, str(n_draws)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    megabytes = json.loads(child.stdout.splitlines()[-1])
    rows = megabytes.pop("rows: X and y")
    total = megabytes["peak of all"]
    return [
        Measurement("rows: X and y", rows, "MB"),
        *(Measurement(what, value, "MB") for what, value in megabytes.items()),
        Measurement("peak, user's arrays included, to rows", total / rows, bar=BAR),
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


def run(n_draws: int) -> dict[str, float]:
    """Construct and sample; peaks after each stage, above the imported packages."""
    import pymc as pm

    from examples.benchmarks.models import logistic_data, logistic_regression, papers_algorithm

    imported = peak_megabytes()
    peaks = {}
    with logistic_regression(*logistic_data(200)):  # the compiler's own memory
        papers_algorithm(batch_size=100)
    peaks["peak of the same on 200 rows (compilation)"] = peak_megabytes() - imported
    x, y = logistic_data(1_000_000)
    peaks["peak with the user's arrays"] = peak_megabytes() - imported
    with logistic_regression(x, y):
        step = papers_algorithm()
        peaks["peak of construction"] = peak_megabytes() - imported
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
    peaks["peak of all"] = peak_megabytes() - imported
    return {"rows: X and y": (x.nbytes + y.nbytes) / 1e6, **peaks}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]))))
