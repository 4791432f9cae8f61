"""Set-up that is killed on the way: ``python -m tests.setup.killed FOLDER PLACE NUMBER SETTINGS``.

The process kills itself when it has computed so many pieces of passes ("pieces"), or before so many
files have reached the disk ("files"). Its rows are in the folder; TMPDIR says where results go.
"""

import json
import os
import signal
import sys
from itertools import count
from pathlib import Path

import numpy as np

from pymc_austerity import AusterityMH
from pymc_austerity.setup import kept_files, kept_passes, source_rows
from tests.setup.sources import logistic, rows_of_regression

N_ROWS = 200_000


def write_rows(folder):
    """The rows of the regression, as files."""
    for name, array in rows_of_regression(N_ROWS).items():
        np.save(Path(folder, f"{name}.npy"), array)


def constructed(folder, **settings):
    """The model, and the step method on the files."""
    model = logistic(rows_of_regression(100))
    with model:
        return model, AusterityMH(
            data={name: Path(folder, f"{name}.npy") for name in ("x", "level", "y")}, **settings
        )


def kill_at(place, number):
    """Let this process be killed there."""
    calls = count(1)

    def note():
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    if place == "pieces":
        pass_over = source_rows.pass_over

        def noted(*args, **kwargs):
            for result in pass_over(*args, **kwargs):
                note()
                yield result

        source_rows.pass_over = noted
    else:
        fsync = kept_files.os.fsync

        def synchronized(file):
            note()
            fsync(file)

        kept_files.os.fsync = synchronized


if __name__ == "__main__":
    kept_passes._SECONDS_BETWEEN_WRITES = 0.0
    kill_at(sys.argv[2], int(sys.argv[3]))
    constructed(sys.argv[1], **json.loads(sys.argv[4]))
