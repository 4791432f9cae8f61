"""Settings of tests, proposals and priors that cannot be used are refused when they are given."""

import math

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import (
    BarkerTest,
    CrankNicolsonProposal,
    EmpiricalBernsteinTest,
    HoeffdingTest,
    LangevinProposal,
    ProposalMixture,
    RandomWalkProposal,
    ReversibleJumpProposal,
    SettingError,
    SettingTypeError,
    StiefelProposal,
    StudentTTest,
    SurrogateHamiltonianProposal,
)
from pymc_austerity.design import Boundary, Looks, constant_looks, doubling_looks, worst_case_design
from pymc_austerity.paper import InclusionIndicators, SpikeAndSlab, UniformStiefel

SELECTED, COUNT = {"coefficients": "beta", "inclusion": "gamma"}, pm.Poisson.dist(1)
DESIGN = {"n_rows": 1_000, "max_error": 0.1}
MATRIX_OF_COUNTS = pm.Poisson.dist([1.0, 2.0, 3.0, 4.0], shape=(2, 4))

OUT_OF_RANGE = [
    (StudentTTest, {"epsilon": 0.51}, "epsilon"),
    (StudentTTest, {"epsilon": 0.1, "alpha": math.nan}, "alpha"),
    (BarkerTest, {"noise": 0.4}, "noise"),
    (BarkerTest, {"noise": 1.3}, "noise"),
    (HoeffdingTest, {"largest_difference": 0.0}, "largest_difference"),
    (HoeffdingTest, {"largest_difference": 1.0, "error_prob": 0.0}, "error_prob"),
    (EmpiricalBernsteinTest, {"largest_difference": math.inf}, "largest_difference"),
    (Boundary, {"epsilon": 0.6}, "epsilon"),
    (Boundary, {"epsilon": 0.1, "alpha": math.nan}, "alpha"),
    *((Looks, {"shares": x}, "increase") for x in ([], [0.5], [0.0, 1.0], [0.5, 0.5, 1.0])),
    (Looks, {"shares": [0.5, math.nan, 1.0]}, "increase"),
    (Looks, {"shares": [0.5, 1.0], "effective_shares": [0.2, 0.5, 1.0]}, "2 shares and 3 eff"),
    (constant_looks, {"batch_size": 0, "n_rows": 100}, "between 1 and"),
    (doubling_looks, {"batch_size": 101, "n_rows": 100}, "between 1 and"),
    (worst_case_design, DESIGN | {"max_error": 0.0}, "max_error"),
    (worst_case_design, DESIGN | {"max_error": 0.5}, "max_error"),
    (worst_case_design, DESIGN | {"alphas": ()}, "alphas"),
    (worst_case_design, DESIGN | {"batch_sizes": ()}, "batch_sizes"),
    (RandomWalkProposal, {"covariance": "dense"}, "'full'"),
    (RandomWalkProposal, {"covariance": [1.0, -1.0]}, "positive"),
    (RandomWalkProposal, {"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
    (RandomWalkProposal, {"covariance": [[1.0, 0.5], [0.2, 1.0]]}, "symmetric"),
    (RandomWalkProposal, {"scaling": math.inf}, "scaling"),
    (RandomWalkProposal, {"target_acceptance": 1.0}, "between 0 and 1"),
    *((CrankNicolsonProposal, {"b": b}, r"\(0, 1\]") for b in (0.0, 1.0001, math.nan)),
    (ProposalMixture, {"components": ()}, "nothing to choose from"),
    (SurrogateHamiltonianProposal, {"n_trajectories": 0}, "n_trajectories"),
    (SurrogateHamiltonianProposal, {"time": 0.0}, "time"),
    (SurrogateHamiltonianProposal, {"target_acceptance": 1.0}, "target_acceptance"),
    (LangevinProposal, {"step_size": 0.0}, "step_size"),
    (LangevinProposal, {"step_size": lambda n: 1.0 / n}, r"step_size\(0\)"),
    (LangevinProposal, {"batch_size": 0}, "batch_size"),
    (LangevinProposal, {"control_variates": 2}, "control_variates"),
    (LangevinProposal, {"preconditioner": [[1.0, 2.0], [2.0, 1.0]]}, "preconditioner"),
    (LangevinProposal, {"target_acceptance": 1.0}, "target_acceptance"),
    (LangevinProposal, {"target_acceptance": 0.5, "step_size": lambda n: 0.1}, "that is a func"),
    (LangevinProposal, {"control_variates": True, "batch_size": "all"}, "batch_size='all'"),
    (StiefelProposal, {"scaling": math.nan}, "scaling"),
    (StiefelProposal, {"scaling": 4.0}, "between 0 and pi"),
    (StiefelProposal, {"target_acceptance": 1.0}, "between 0 and 1"),
    (StiefelProposal, {"reflect": 1.5}, "reflect"),
    (ReversibleJumpProposal, SELECTED | {"scaling": -1.0}, "scaling"),
    (ReversibleJumpProposal, SELECTED | {"birth_scale": math.inf}, "birth_scale"),
    (ReversibleJumpProposal, SELECTED | {"jump_share": 1.0}, "jump_share"),
    (ReversibleJumpProposal, SELECTED | {"target_acceptance": math.nan}, "target_acceptance"),
    (UniformStiefel.dist, {"n": 2, "p": 3}, "at most n"),
    (UniformStiefel.dist, {"n": 0}, "n=0"),
    (UniformStiefel.dist, {"n": 3, "p": 0}, "p=0"),
    (InclusionIndicators.dist, {"n": 0, "n_active": COUNT}, "n=0"),
    (InclusionIndicators.dist, {"n": 3, "n_active": MATRIX_OF_COUNTS}, "univariate"),
    (SpikeAndSlab.dist, {"inclusion": [0, 1], "slab": COUNT}, "continuous univariate"),
    (
        SpikeAndSlab.dist,
        {"inclusion": [0, 1], "slab": pm.MvNormal.dist(np.zeros(2), np.eye(2))},
        "continuous univariate",
    ),
]

TO_A_RATE = (RandomWalkProposal, LangevinProposal, StiefelProposal)
OF_ANOTHER_TYPE = [
    (RandomWalkProposal, {"covariance": object()}, "object"),
    (SurrogateHamiltonianProposal, {"n_trajectories": 1.5}, "n_trajectories"),
    (SurrogateHamiltonianProposal, {"time": "long"}, "time"),
    (RandomWalkProposal, {"scaling": "large"}, "'auto' or a size"),
    (RandomWalkProposal, {"scaling": None}, "'auto'"),
    *((each, {"target_acceptance": None}, "'auto'") for each in TO_A_RATE),
    (LangevinProposal, {"step_size": "small"}, "step_size"),
    (LangevinProposal, {"step_size": None}, "'auto'"),
    (LangevinProposal, {"batch_size": None}, "'all' or a number"),
    (LangevinProposal, {"preconditioner": "laplace"}, "preconditioner"),
    (UniformStiefel.dist, {"n": 2.5}, "n=2.5"),
    (UniformStiefel.dist, {"n": 3, "p": True}, "p=True"),
    (InclusionIndicators.dist, {"n": 2.5, "n_active": COUNT}, "n=2.5"),
    (InclusionIndicators.dist, {"n": 3, "n_active": 2}, "int is not a distribution"),
    (SpikeAndSlab.dist, {"inclusion": [0, 1], "slab": 2.0}, "float is not a distribution"),
    (SpikeAndSlab.dist, {"inclusion": [0, 1], "slab": np.ones(2)}, "ndarray is not a distribution"),
]


@pytest.mark.parametrize(
    ("error", "make", "settings", "words"),
    [
        *((SettingError, *case) for case in OUT_OF_RANGE),
        *((SettingTypeError, *case) for case in OF_ANOTHER_TYPE),
    ],
)
def test_one_sentence_says_what_is_wrong(error, make, settings, words):
    with pytest.raises(error, match=words) as caught:
        make(**settings)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
