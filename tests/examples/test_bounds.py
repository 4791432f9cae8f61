"""The benchmark of bounds bounds all of its rows."""

import pytest

from examples.benchmarks.bounds import cases, seconds


@pytest.mark.parametrize("case", list(cases(1_500)), ids=lambda case: case.name)
@pytest.mark.few(
    "Poisson, many counts", "normal, unknown scale", "negative binomial", "3 categories"
)
def test_all_rows_have_bounds(case):
    took, share = seconds(case)
    assert took > 0.0
    assert share == 1.0
