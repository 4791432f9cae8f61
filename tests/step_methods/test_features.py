"""The table of features on the site is what happens."""

import pytest

from tests.step_methods.features import PAGE, page


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_the_table_of_the_site_is_current():
    assert page() == PAGE.read_text()


def test_nothing_is_missing_that_has_a_meaning():
    """Every feature works wherever rows are, if it works with rows in memory."""
    for line in PAGE.read_text().splitlines()[2:]:
        _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        in_memory, elsewhere = cells[::2], cells[1::2]
        assert in_memory == elsewhere, line
