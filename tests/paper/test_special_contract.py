"""AusterityMH with the proposals for special variables."""

import numpy as np
import pytest

from pymc_austerity import AusterityMH, RandomWalkProposal
from pymc_austerity.errors import SettingError
from pymc_austerity.paper import ReversibleJumpProposal, StiefelProposal
from pymc_austerity.proposals import UserProposal
from pymc_austerity.setup.support import is_unconstrained, refuse_unsuitable
from tests import running
from tests.paper.special_models import regression, rotated_rows


def turned():
    return rotated_rows(n_rows=2_000, p=2, noise=2.0)[0], StiefelProposal()


def selected():
    return regression(2_000)[0], ReversibleJumpProposal("beta", "gamma", birth_scale=0.3)


@pytest.fixture(scope="module", params=[turned, selected], ids=["stiefel", "reversible-jump"])
def built(request):
    model, proposal = request.param()
    return model, running.built(model, proposal=proposal, control_variates=None, batch_size=200)


@pytest.mark.few("stiefel")
def test_starts_are_dispersed_where_the_log_density_is_finite(built, rng):
    model, step = built
    log_density = model.compile_logp()
    kinds = step.target.layout
    step.set_rng(rng)
    starts = np.array([step._start() for _ in range(4)])
    assert len(np.unique(starts, axis=0)) == 4
    for start in starts:
        point = {
            block.name: start[block.entries].reshape(block.shape).astype(model[block.name].dtype)
            for block in kinds.blocks
        }
        assert np.isfinite(log_density(point))


@pytest.mark.parametrize("proposal", [None, RandomWalkProposal()])
@pytest.mark.parametrize(
    ("build", "words"),
    [(turned, r"'W'.*StiefelProposal"), (selected, r"'beta'.*ReversibleJumpProposal\('beta'")],
)
def test_proposals_that_would_leave_the_support_are_refused(build, words, proposal):
    model, special = build()
    with pytest.raises(SettingError, match=words):
        refuse_unsuitable(model.value_vars, model, proposal)
    refuse_unsuitable(model.value_vars, model, special)
    assert not is_unconstrained(model.value_vars, model, special)
    assert not is_unconstrained(model.value_vars, model, None)
    refuse_unsuitable(model.value_vars, model, UserProposal(lambda point, rng: (point, 0.0)))


@pytest.mark.parametrize(
    ("build", "proposal", "names", "words"),
    [
        (selected, StiefelProposal(), None, r"'gamma', 'beta'.*UniformStiefel"),
        (selected, ReversibleJumpProposal("beta", "gamma"), ["beta"], r"'gamma' is not.*vars="),
        (turned, ReversibleJumpProposal("beta", "gamma"), None, r"'beta' is not"),
    ],
)
def test_proposals_of_other_variables_are_refused(build, proposal, names, words):
    model, _ = build()
    with model, pytest.raises(SettingError, match=words):
        AusterityMH(vars=names, proposal=proposal, control_variates=None)
