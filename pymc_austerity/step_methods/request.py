"""What a user asks of a step method, checked as far as that is possible without a model."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypedDict

import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.arguments import (
    checked_axis,
    checked_batch_size,
    checked_choice,
    checked_count,
    unless_auto,
)
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals import Proposal, ProposalFunction, as_proposal
from pymc_austerity.sequential import Schedule, SequentialTest, StoppingRule
from pymc_austerity.setup.model_inputs import checked_compile_kwargs, checked_generator
from pymc_austerity.setup.prepared import PreparedModel, prepare
from pymc_austerity.setup.setup_progress import Say


class OptionFields(TypedDict, total=False):
    """The fields of `Options` as keywords of a step method, which editors then know."""

    axis: int
    batch_size: int | Literal["auto"]
    sampling: Literal["auto", "strata", "windows", "fresh"]
    control_variates: Literal["auto", 1, 2] | None
    anchor: Any
    steps_per_draw: int
    tune: bool
    blocked: bool
    initial_point: Mapping[str, NDArray] | None
    compile_kwargs: Mapping[str, Any] | None
    setup_folder: str | os.PathLike[str] | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of a step method that few need.

    A step method takes them together, ``AusterityMH(options=Options(axis=1))``, or one by one,
    ``AusterityMH(axis=1)``. `GroupedMH` and `FireflyMH` take those that have a meaning there.

    Parameters
    ----------
    axis : int
        Axis of the rows in their log-likelihood.
    batch_size : int or "auto"
        Largest number of rows of the first look; each stratum needs ten, and below 40 there are no
        strata. With uniform samples, the number of rows of every look, 500 by default.
    sampling : {"auto", "strata", "windows", "fresh"}
        How rows are sampled. "strata", the default with control variates: by influence, as
        measured on pilot pairs of points. "windows", the default without control variates: short
        runs of consecutive rows in a random order. "fresh": every row drawn anew, as in the paper.
    control_variates : {"auto", 1, 2} or None
        Subtract from each difference its Taylor expansion of this order about the posterior
        mode, whose sum over all rows is known. "auto" is the second order if the model
        allows it, else none. None: without control variates.
    anchor : dict, InferenceData or "auto"
        Point of the expansion: values of the free variables, or draws of an earlier run, whose
        mean is used. "auto" is the mode.
    steps_per_draw : int
        Transitions between recorded draws. This pays where draws are much alike, as those of a
        random walk, and storing them takes time or memory. Where most proposals are accepted, draws
        are nearly independent already, and more transitions only take more time. What
        ``AusterityMH()`` chooses takes more than one where short chains show few effective draws.
    tune : bool
        Whether to adapt the proposal in the tuning phase.
    blocked : bool
        Update all variables together; otherwise each has its own step method, on shared rows.
    initial_point : dict, optional
        Point at which shapes are read and the model is verified, in place of its initial point.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``; the mode is NUMBA by default.
    setup_folder : path, optional
        Where results of passes over `data` are kept for a repetition of the same set-up, as after
        it was killed.

    Raises
    ------
    SettingError, SettingTypeError
        A value cannot be used, or two of them contradict each other.

    Examples
    --------
    >>> from pymc_austerity import AusterityMH, Options
    >>> papers = Options(control_variates=None, batch_size=500)
    >>> AusterityMH(epsilon=0.05, options=papers)
    AusterityMH(epsilon=0.05, batch_size=500, control_variates=None)
    """

    axis: int = 0
    batch_size: int | Literal["auto"] = "auto"
    sampling: Literal["auto", "strata", "windows", "fresh"] = "auto"
    control_variates: Literal["auto", 1, 2] | None = "auto"
    anchor: Any = "auto"
    steps_per_draw: int = 1
    tune: bool = True
    blocked: bool = True
    initial_point: Mapping[str, NDArray] | None = None
    compile_kwargs: Mapping[str, Any] | None = None
    setup_folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        batch_size = unless_auto("batch_size", self.batch_size)
        checked = {
            "axis": checked_axis(self.axis),
            "batch_size": "auto" if batch_size is None else checked_batch_size(batch_size),
            "steps_per_draw": checked_count("steps_per_draw", self.steps_per_draw),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        checked_choice("sampling", self.sampling, ("auto", "strata", "windows", "fresh"))
        checked_choice("control_variates", self.control_variates, ("auto", 1, 2, None))
        checked_choice("tune", self.tune, (True, False))
        checked_choice("blocked", self.blocked, (True, False))
        checked_compile_kwargs(self.compile_kwargs)
        if unless_auto("anchor", self.anchor) is not None and self.control_variates is None:
            raise SettingError(
                "anchor has no effect with control_variates=None, as nothing is expanded about "
                "it: leave one of them out."
            )

    @property
    def given(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        return differing(self)


def differing(record: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults."""
    pairs = [(field, getattr(record, field.name)) for field in fields(record)]
    return {field.name: value for field, value in pairs if not is_same(value, field.default)}


def is_same(value: Any, default: Any) -> bool:
    """Whether a value is a default; arrays and tables, which compare by entry, are not."""
    return value is default or (type(value) is type(default) and bool(value == default))


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
        if self.resume is not None and not hasattr(self.resume, "posterior"):
            raise SettingTypeError(
                f"resume of type {type(self.resume).__name__} is not an earlier run: give what "
                "pm.sample returned."
            )

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
        )

    @cached_property
    def own_proposal(self) -> Proposal[Any] | None:
        """The proposal that the user gives."""
        own = unless_auto("proposal", self.proposal)
        return None if own is None else as_proposal(own)

    def prepared(self, model: pm.Model, say: Say) -> PreparedModel:
        """The model, split and verified."""
        return prepare(model, **self.for_preparing, say=say)

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
    def constants_before(self) -> Mapping[str, Any]:
        """Constants of the earlier run; none if it was made by other samplers."""
        return getattr(getattr(self.resume, "sample_stats", None), "attrs", {})

    @property
    def sampler_before(self) -> str:
        """The step method of this package that made the earlier run; empty if none did."""
        return str(self.constants_before.get("sampler", ""))

    @property
    def steps_per_draw(self) -> int:
        """Transitions between recorded draws, by default as many as in the earlier run."""
        given = self.options.steps_per_draw
        return given if given > 1 else int(self.constants_before.get("steps_per_draw", given))

    @property
    def given(self) -> dict[str, Any]:
        """Arguments and options that differ from the defaults of `AusterityMH`."""
        given = differing(self)
        options = given.pop("options", _USUAL)
        return given | options.given
