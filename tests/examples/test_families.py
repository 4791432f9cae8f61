import importlib.util
import warnings

import pytest

from examples.families import (
    cell,
    models,  # noqa: F401  (fills the list)
    tables,
)
from examples.families.__main__ import RESULTS
from examples.families.registry import FAMILIES, Family
from examples.hard_models.cell import read
from examples.hard_models.moments import Moments
from examples.hard_models.verdicts import Found, Record

ROW_WISE = Family("a", "A model", lambda: None)
SERIES = Family("b", "A series", lambda: None, is_row_wise=False)


def record(mean=1.0, sd=2.0, r_hat=1.0, ess=500.0, **about):
    moments = Moments(mean, sd, sd / ess**0.5, sd / (2.0 * ess) ** 0.5)
    facts = {"path": "exact", "setup": 1.0, "sampling": 2.0}
    return Record({"a": Found(moments, r_hat, ess)}, facts=facts, **about)


REFUSED = Record(error="NotRowwiseError: no", refused=True)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("ours", "nuts", "expected"),
        [
            (record(), record(), "yes"),
            (record(mean=3.0), record(), "WRONG"),
            (record(sd=3.0), record(), "WRONG"),
            (record(r_hat=1.2), record(), "WRONG"),
            (record(mean=3.0, said=["we are sorry"]), record(), "warned"),
            (record(mean=3.0), record(r_hat=1.3), "NUTS did not converge"),
            (record(r_hat=1.2, said=["no"]), record(r_hat=1.3), "warned"),
            (record(), Record(error="did not end"), "error of NUTS"),
            (Record(error="ValueError: no"), None, "error of AusterityMH"),
            (REFUSED, None, "refused, although it splits"),
        ],
    )
    def test_each(self, ours, nuts, expected):
        assert tables.verdict(ROW_WISE, ours, nuts) == expected

    def test_what_is_known_is_compared_with_instead_of_nuts(self):
        assert tables.verdict(ROW_WISE, record(), record(r_hat=1.3), record()) == "yes"
        assert tables.verdict(ROW_WISE, record(mean=3.0), record(mean=3.0), record()) == "WRONG"

    def test_a_series_is_rightly_refused(self):
        assert tables.verdict(SERIES, REFUSED, None) == "refused"


class TestModels:
    def test_there_are_enough(self):
        assert len(FAMILIES) >= 40

    @pytest.mark.parametrize("name", FAMILIES)
    def test_each_is_a_model(self, name):
        family = FAMILIES[name]
        if family.needs and importlib.util.find_spec(family.needs) is None:
            pytest.skip(f"{family.needs} is not installed")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # imputation and trees have warnings of their own
            model = family.build()
        assert model.free_RVs and (model.observed_RVs or model.potentials)

    def test_a_series_is_refused(self):
        assert cell.run_austerity(FAMILIES["autoregression"], cell.QUICK).refused


class TestTable:
    def test_the_one_of_the_site_has_all_that_were_sampled(self):
        text = (RESULTS.parents[1] / "docs" / "_generated" / "families.md").read_text()
        ours, nuts, known = (
            {file.stem: read(file) for file in (RESULTS / kind).glob("*.json")}
            for kind in ("austerity", "nuts", "known")
        )
        ordered = {name: ours[name] for name in FAMILIES if name in ours}
        assert text == tables.table(ordered, nuts, known)
