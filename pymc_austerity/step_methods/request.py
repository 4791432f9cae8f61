"""What a user asks of a step method, checked as far as that is possible without a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pymc as pm

from pymc_austerity.arguments import unless_auto
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals import Proposal, ProposalFunction, as_proposal
from pymc_austerity.sequential import Schedule, SequentialTest, StoppingRule
from pymc_austerity.setup.model_inputs import checked_generator
from pymc_austerity.step_methods.options import Options, differing

_USUAL = Options()


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """The arguments of `AusterityMH`, or those of them that another step method has.

    Raises
    ------
    SettingError, SettingTypeError
        A value cannot be used, or two of them contradict each other.
    """

    vars: Any = None
    epsilon: float | Schedule | Literal["auto"] = "auto"
    max_error: float | None = None
    test: SequentialTest | StoppingRule | Literal["auto", "exact", "firefly"] | None = "auto"
    audit: float | Literal["auto"] = "auto"
    likelihood: Sequence[str] | Literal["auto"] = "auto"
    proposal: Proposal[Any] | ProposalFunction | Literal["auto"] = "auto"
    data: Mapping[str, Any] | None = None
    resume: Any = None
    rng: Any = None
    model: pm.Model | None = None
    options: Options = _USUAL

    def __post_init__(self) -> None:
        _ = self.settings, self.own_proposal, self.for_preparing
        checked_generator(self.rng)
        if self.resume is not None and not self.options.tune:
            raise SettingError("resume has no effect with tune=False: leave one of them out.")

    @cached_property
    def settings(self) -> Settings:
        """How decisions are made."""
        options = self.options
        return Settings(
            epsilon=unless_auto("epsilon", self.epsilon),
            max_error=self.max_error,
            test=self.test,
            batch_size=unless_auto("batch_size", options.batch_size),
            sampling=options.sampling,
            control_variates=options.control_variates,
            audit=self.audit,
            steps_per_draw=options.steps_per_draw,
        )

    @cached_property
    def own_proposal(self) -> Proposal[Any] | None:
        """The proposal that the user gives."""
        own = unless_auto("proposal", self.proposal)
        return None if own is None else as_proposal(own)

    @property
    def for_preparing(self) -> dict[str, Any]:
        """Arguments of `prepare`."""
        return {
            "likelihood": unless_auto("likelihood", self.likelihood),
            "axis": self.options.axis,
            "rng": self.rng,
            "initial_point": self.options.initial_point,
            "data": self.data,
            "setup_folder": self.options.setup_folder,
        }

    @property
    def given(self) -> dict[str, Any]:
        """Arguments and options that differ from the defaults of `AusterityMH`."""
        given = differing(self)
        options = given.pop("options", _USUAL)
        return given | options.given
