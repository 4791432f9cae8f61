"""When and with what something was measured."""

import datetime
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("pymc", "pytensor", "numba", "numpy", "nutpie", "numpyro", "jax", "blackjax")


def circumstances() -> dict[str, Any]:
    """Date, versions, and the commit of this package."""
    return {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "versions": versions(),
        "revision": revision(),
    }


def versions() -> dict[str, str]:
    """What is installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def revision() -> str:
    """Commit of this package."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.check_output(command, cwd=Path(__file__).parent, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
