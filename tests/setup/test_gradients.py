"""Rows of mini-batches; what is made of them is in `tests/step_methods/test_langevin.py`."""

import numpy as np

from pymc_austerity.rows import ArrayRows
from pymc_austerity.setup.gradients import IndependentRows

N_ROWS = 20_000


def test_rows_are_drawn_independently_in_blocks(rng):
    blocks = list(IndependentRows(ArrayRows([np.arange(N_ROWS)])).begin(rng).read(20_000))
    assert [len(block) for (block,) in blocks] == [8_192, 8_192, 3_616]
    drawn = np.concatenate([block for (block,) in blocks])
    assert 0.6 < len(np.unique(drawn)) / N_ROWS < 0.66  # 1 - 1/e of them
    assert abs(drawn.mean() / N_ROWS - 0.5) < 4.0 / np.sqrt(12.0 * N_ROWS)
