"""The real data sets of the examples: from a folder, or downloaded through scikit-learn.

Other examples load data by ``load("mnist_7v9")``. A folder is named by the environment variable
PYMC_AUSTERITY_DATA or on the command line. What it does not hold is downloaded where scikit-learn
knows it and a network is there.
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VARIABLE = "PYMC_AUSTERITY_DATA"

Arrays = dict[str, NDArray]


class NoData(SystemExit):
    """A data set cannot be had; ends a script with a sentence that says how to get it."""


def load(name: str, folder: str | Path | None = None) -> Arrays:
    """Arrays of a data set, by name.

    Parameters
    ----------
    name : str
        Name of the file without ``.npz``.
    folder : path, optional
        Where to look first; by default the folder named by PYMC_AUSTERITY_DATA.

    Raises
    ------
    NoData
        It is neither in the folder nor could it be downloaded.
    """
    folder = folder or os.environ.get(VARIABLE)
    path = Path(folder or ".") / f"{name}.npz"
    if folder and path.is_file():
        with np.load(path) as file:
            return dict(file)
    try:
        return _download(name)
    except (ImportError, OSError) as error:
        place = f"in {folder}" if folder else "because no folder was named"
        raise NoData(
            f"There is no {path.name} {place}, and it cannot be downloaded "
            f"({type(error).__name__}): name the folder that holds it by --data FOLDER or "
            f"{VARIABLE}=FOLDER."
        ) from error


def _download(name: str) -> Arrays:
    if name not in DOWNLOADS:
        raise FileNotFoundError(name)
    return DOWNLOADS[name]()


def _download_digits() -> Arrays:
    """MNIST from OpenML: 60,000 training images, then 10,000 test images."""
    from sklearn.datasets import fetch_openml

    mnist = fetch_openml("mnist_784", version=1, as_frame=False)
    return sevens_and_nines(np.asarray(mnist.data), np.asarray(mnist.target).astype(int))


def sevens_and_nines(pixels: NDArray, digits: NDArray, n_train: int = 60_000) -> Arrays:
    """Rows with a 7 (label 0) or a 9 (label 1), in their order, training rows first."""
    rows = np.flatnonzero(np.isin(digits, (7, 9)))
    train, test = rows[rows < n_train], rows[rows >= n_train]
    return {
        "X_train": pixels[train].astype(np.uint8),
        "y_train": (digits[train] == 9).astype(np.uint8),
        "X_test": pixels[test].astype(np.uint8),
        "y_test": (digits[test] == 9).astype(np.uint8),
    }


def _download_particles() -> Arrays:
    """MiniBooNE from OpenML: 130,064 particle events, 50 variables."""
    from sklearn.datasets import fetch_openml

    events = fetch_openml("MiniBooNE", version=1, as_frame=False)
    return signals_and_background(np.asarray(events.data), np.asarray(events.target))


def signals_and_background(x: NDArray, target: NDArray, missing: float = -999.0) -> Arrays:
    """Label 1 for signals ("True"), every fifth event a test row, unmeasured events left out."""
    measured = ~np.any(x == missing, axis=1)
    x, y = x[measured].astype(np.float32), (target[measured].astype(str) == "True").astype(np.uint8)
    test = np.arange(len(x)) % 5 == 0
    return {"X_train": x[~test], "y_train": y[~test], "X_test": x[test], "y_test": y[test]}


def _download_connections() -> Arrays:
    """KDD Cup 99, the 10 % set, from UCI."""
    from sklearn.datasets import fetch_kddcup99

    found = fetch_kddcup99(percent10=True)
    return coded_features(np.asarray(found.data), np.asarray(found.target))


def coded_features(table: NDArray, labels: NDArray) -> Arrays:
    """Numerical features, and the three symbolic ones by their place in alphabetical order.

    Labels are bytes such as ``b"normal."``.
    """
    names, codes = np.unique([label.decode().rstrip(".") for label in labels], return_inverse=True)
    symbols = [np.unique(table[:, j].astype(bytes), return_inverse=True)[1] for j in (1, 2, 3)]
    return {
        "X_num": np.delete(table, (1, 2, 3), axis=1).astype(np.float32),
        "X_cat": np.column_stack(symbols).astype(np.uint8),
        "label": codes.astype(np.uint8),
        "label_names": names,
    }


DOWNLOADS: dict[str, Callable[[], Arrays]] = {
    "mnist_7v9": _download_digits,
    "miniboone": _download_particles,
    "kddcup99_10pct": _download_connections,
}
"""How to download what scikit-learn knows."""
