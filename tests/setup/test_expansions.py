"""Expansions of rows are compared with their differences."""

from dataclasses import replace
from types import SimpleNamespace

import pymc as pm
import pytest

from pymc_austerity import AusterityMH
from pymc_austerity.setup import control_variates
from pymc_austerity.setup.row_functions import expanded_rows

N_ROWS = 3_000


def scaled(expanded, factor):
    found = expanded.derivatives
    wrong = SimpleNamespace(
        gradient=found.gradient, hessian=lambda *inputs: factor * found.hessian(*inputs)
    )
    return replace(expanded, derivatives=wrong)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_second_derivatives_that_are_not_those_of_the_residuals_are_not_used(
    factor, monkeypatch, rng
):
    x = rng.normal(size=(N_ROWS, 2))
    with pm.Model():
        eta = pm.math.dot(x, pm.Normal("slopes", shape=2))
        pm.Bernoulli("y", logit_p=eta, observed=rng.random(N_ROWS) < 0.4)
        right = AusterityMH(control_variates=2)
        assert "order 2 about the mode" in right.explain()
        monkeypatch.setattr(
            control_variates, "expanded_rows", lambda *given: scaled(expanded_rows(*given), factor)
        )
        assert "derivatives of its rows give other numbers" in AusterityMH().explain()
