"""The example runs, and finds what it should: exact decisions read fewer rows of easy data."""

import pytest

from examples import exact_or_sequential as example


@pytest.mark.exhaustive
def test_costs_and_table(tmp_path):
    data = example.simulated(20_000, 2)
    costs = {way: example.cost_of(data, way, 200) for way in example.WAYS}
    assert costs["exact"].rows < 10 < costs["sequential"].rows < 20_000
    assert all(0.5 < cost.accepted <= 1.0 and cost.microseconds > 0.0 for cost in costs.values())
    line = example.row_of_table(data, costs)
    assert line.startswith("| simulated, 2 columns | 20,000 | 2 |")
    example.picture({(20_000, 2): costs}, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1_000
