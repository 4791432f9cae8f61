"""Runs in an environment of its own, with pymhss: data in, one line of JSON out.

``python theirs.py DATA.npz MODEL DRAWS ORDER``
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TQDM_DISABLE", "1")

import numpy as np
import PyMHSS as mhss


def main() -> None:
    """Sample as the package's own examples do: at its own estimate of the mode, with its V."""
    path, model, n_draws, order = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    np.random.seed(1)  # noqa: NPY002 (pymhss draws from it)
    with np.load(path) as data:
        x, y = data["x"], data["y"].astype(float)
    mode, spread = mhss.get_theta_hat_and_var_cov_matrix(model, x, y)
    made = mhss.MH_SS(
        y, x, spread, mode, n_draws // 10, n_draws, model, "vectorised", taylor_order=order
    )
    found = {
        "rows": float(made["BoverN"].mean() * len(y)),
        "accepted": float(made["acc_rate"]),
        "seconds": float(made["cpu_time"]),
        "draws": made["parameters"].tolist(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
