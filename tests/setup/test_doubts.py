"""What was written for a model and gives other numbers is left to PyTensor, and a run says so."""

import numpy as np
import pytest

from pymc_austerity.model import Kernel
from pymc_austerity.setup import problem
from tests.running import built, sample
from tests.step_methods.models import logistic


@pytest.fixture
def model():
    return logistic(800, np.zeros(2), seed=1)


def step_for(model):
    return built(model, compile_kwargs={"mode": "FAST_COMPILE"}, rng=1)


def test_nothing_is_in_doubt_by_default(model):
    assert "other numbers" not in step_for(model).explain()


@pytest.mark.exhaustive
def test_a_loop_over_rows(model, monkeypatch):
    real = problem.differences_agree

    def agree(differences, *arguments, **keywords):
        is_loop = isinstance(getattr(differences, "__self__", None), Kernel)
        return not is_loop and real(differences, *arguments, **keywords)

    monkeypatch.setattr(problem, "differences_agree", agree)
    step = step_for(model)
    assert "by PyTensor, because the loop written for it gives other numbers" in step.explain()
    assert "predictors of the rows: none" not in step.explain()


def test_functions_of_predictors(model, monkeypatch):
    monkeypatch.setattr(problem, "differences_agree", lambda *_, **__: False)
    step = step_for(model)
    assert "none, because functions of them give other numbers" in step.explain()
    assert step.target.anchor is not None


@pytest.mark.exhaustive
def test_the_row_free_part(model, monkeypatch):
    monkeypatch.setattr(problem, "row_free_difference_agrees", lambda *_, **__: False)
    step = step_for(model)
    assert "in place of the function written for the terms" in step.explain()
    sample(step, model, draws=20, tune=20, chains=1, compute_convergence_checks=True, quiet=False)
