"""Runs in an environment of its own, with pymhss: data in, one line of JSON out.

``python theirs.py DATA.npz MODEL DRAWS METHOD``
"""

import json
import os
import resource
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TQDM_DISABLE", "1")

import numpy as np
import PyMHSS as mhss

KAPPA = 1.5
"""Scale of the random walk over the square root of the dimension; that of its MH_SS."""
TUNA_KAPPA = 0.5
"""With the other scale TunaMH accepts some per cent of its proposals."""


def tuna(x, spread):
    """Settings of TunaMH: chi such that its minibatch has one row more on average."""
    step = TUNA_KAPPA * np.sqrt(np.trace(spread) / x.shape[1])
    size = np.sum(np.linalg.norm(x, axis=1)) * step
    settings = {"control_variates": False, "taylor_order": 0}
    return settings | {"chi": 1.0 / size**2, "kappa": TUNA_KAPPA}


def sample(method, y, x, spread, mode, n_draws, model):
    """Draws of one of its samplers."""
    burn = n_draws // 10
    if method == "rwm":
        return mhss.RWM(y, x, spread, mode, model, burn, n_draws, "vectorised")
    if method == "smh":
        return mhss.SMH(
            y, x, spread, mode, burn, n_draws, KAPPA, model, "vectorised", taylor_order=2
        )
    settings = tuna(x, spread) if method == "tuna" else {"taylor_order": int(method[-1])}
    return mhss.MH_SS(y, x, spread, mode, burn, n_draws, model, "vectorised", **settings)


def main() -> None:
    """Sample as the package's own examples do: at its own estimate of the mode, with its V."""
    path, model, n_draws, method = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    np.random.seed(1)  # noqa: NPY002 (pymhss draws from it)
    with np.load(path) as data:
        x, y = data["x"], data["y"].astype(float)
    started = time.process_time()
    mode, spread = mhss.get_theta_hat_and_var_cov_matrix(model, x, y)
    found, began, used = time.process_time() - started, time.time(), time.process_time()
    made = sample(method, y, x, spread, mode, n_draws, model)
    used, passed = time.process_time() - used, time.time() - began
    share_read = made["BoverN"].mean() if "BoverN" in made else 1.0
    sampling = used * made["cpu_time"] / passed
    result = {
        "rows": float(share_read * len(y)),
        "accepted": float(made["acc_rate"]),
        "seconds": float(made["cpu_time"]),
        "setup_seconds": found + used - sampling,
        "tuning_seconds": sampling / 11,
        "sampling_seconds": sampling * 10 / 11,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "draws": made["parameters"].tolist(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
