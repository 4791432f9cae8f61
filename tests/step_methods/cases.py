"""The step methods that keep PyMC's contract: on several models, in several settings."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pymc as pm

from pymc_austerity import (
    AusterityGibbs,
    AusterityMH,
    FireflyMH,
    GroupedMH,
    LangevinProposal,
    ReversibleJumpProposal,
    StiefelProposal,
)
from tests.paper.fields import triples_field
from tests.paper.special_models import regression, rotated_rows
from tests.step_methods.models import (
    groups,
    many_levels,
    normal_mean,
    normal_regression,
    switch_point,
)

PAPER = {"control_variates": None, "batch_size": 100, "epsilon": 0.05}


@dataclass(frozen=True)
class Case:
    """A step method for a model, and a way of starting processes to try it with."""

    model: Callable[[], pm.Model]
    step: Callable[[], Any]
    context: str = "fork"


def papers() -> AusterityMH:
    return AusterityMH(**PAPER)


def turning() -> AusterityMH:
    return AusterityMH(proposal=StiefelProposal(), **PAPER)


def jumping() -> AusterityMH:
    proposal = ReversibleJumpProposal("beta", "gamma", birth_scale=0.3)
    return AusterityMH(proposal=proposal, **PAPER)


def gibbs(**settings: Any) -> AusterityGibbs:
    return AusterityGibbs(likelihood=["factors"], batch_size=20, **settings)


METROPOLIS = {
    "normal_mean-paper": Case(normal_mean, papers),
    "normal_regression-paper": Case(normal_regression, papers, "spawn"),
    "switch_point-paper": Case(switch_point, papers, "forkserver"),
    "groups-paper": Case(groups, papers),
    "normal_regression-defaults": Case(normal_regression, AusterityMH, "forkserver"),
    "groups-defaults": Case(groups, AusterityMH, "spawn"),
}
"""AusterityMH as it comes, and in the paper's setting."""

CASES = METROPOLIS | {
    "langevin": Case(normal_regression, lambda: AusterityMH(proposal=LangevinProposal())),
    "exact": Case(normal_regression, lambda: AusterityMH(test="exact"), "spawn"),
    "firefly": Case(normal_regression, FireflyMH),
    "levels": Case(many_levels, GroupedMH, "forkserver"),
    "max_error": Case(
        normal_regression, lambda: AusterityMH(**PAPER | {"epsilon": "auto", "max_error": 0.01})
    ),
    "stiefel": Case(lambda: rotated_rows(n_rows=2_000, p=2, noise=2.0)[0], turning),
    "reversible-jump": Case(lambda: regression(2_000)[0], jumping),
    "gibbs-systematic": Case(lambda: triples_field(0.1, n_entries=20), lambda: gibbs(audit=0.3)),
    "gibbs-random": Case(
        lambda: triples_field(0.1, n_entries=20), lambda: gibbs(scan="random"), "spawn"
    ),
}


@cache
def built(name: str) -> tuple[pm.Model, Any]:
    """The model of a case and its step method, which is made once."""
    case = CASES[name]
    with case.model() as model:
        return model, case.step()
