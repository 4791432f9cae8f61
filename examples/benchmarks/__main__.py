"""Run all the measurements and write them to the site: ``python -m examples.benchmarks``."""

import argparse
import logging
import os

# One core: what linear algebra libraries and numba do with more is not what is measured.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from pathlib import Path  # noqa: E402

from examples.benchmarks import draw, kernel, memory, reading, report, setup  # noqa: E402

SITE = Path(__file__).parents[2] / "docs" / "_generated" / "benchmarks.md"
MEASUREMENTS = {
    "setup": (setup, 100),
    "draw": (draw, 20_000),
    "reading": (reading, 2_000),
    "memory": (memory, 200),
    "kernel": (kernel, 2_000),
}


def main() -> None:
    """Measure, show, and write if everything was measured in full."""
    parser = argparse.ArgumentParser(prog="python -m examples.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(MEASUREMENTS)}; default all")
    parser.add_argument("--quick", action="store_true", help="a tenth of draws and set-up rows")
    options = parser.parse_args()
    unknown = set(options.names) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(MEASUREMENTS)}")
    logging.getLogger("pymc").setLevel(logging.WARNING)
    groups = {}
    for name in options.names or MEASUREMENTS:
        module, size = MEASUREMENTS[name]
        groups[module.TITLE] = module.measure(size // 10 if options.quick else size)
    report.show(groups)
    if not options.names and not options.quick:
        SITE.parent.mkdir(exist_ok=True)
        SITE.write_text(report.markdown_tables(groups) + "\n")
        print(f"Written to docs/_generated/{SITE.name}")


if __name__ == "__main__":
    main()
