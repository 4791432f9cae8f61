"""The table of what works where is up to date."""

import pytest

from tests.step_methods.features import PAGE, page


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_the_page_says_what_works():
    assert PAGE.read_text() == page(), "write it again: python -m tests.step_methods.features"
