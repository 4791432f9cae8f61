"""A step method as its settings, from which it is set up for a model."""

import inspect
import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

import pymc as pm

from pymc_austerity._pymc import ChainsToCome, without_traces
from pymc_austerity.arguments import refuse_positional, refuse_unknown
from pymc_austerity.errors import SettingError, SettingTypeError, warn_user
from pymc_austerity.setup.model_inputs import (
    checked_model,
    checked_variables,
    refuse_duplicates,
)
from pymc_austerity.setup.setup_progress import Stage, setup_progress
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS
from pymc_austerity.step_methods.austerity_step import AusterityStep, WholeModelSampler
from pymc_austerity.step_methods.interrupts import clean_interrupt
from pymc_austerity.step_methods.request import Options, Request, is_same

_log = logging.getLogger("pymc.austerity")


class Configured(WholeModelSampler):
    """Base class of what users construct: settings, checked as far as that needs no model.

    Inside a model, the step method is set up at once, and takes the place of its settings. Outside,
    ``pm.sample(step=...)`` sets it up for the model that it samples; the same settings serve any
    number of models. What depends on the model, such as names of variables, is checked then.

    A subclass has a ``__new__`` with the signature that users see, which ends with `_made`, and
    `_set_up`. The classes of its step methods are registered with it as virtual subclasses.
    """

    takes: ClassVar[frozenset[str]]
    """Names of the options that have a meaning."""
    __signature__: ClassVar[inspect.Signature]
    _request: Request

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Show the arguments that have names."""
        super().__init_subclass__(**kwargs)
        _, *arguments = inspect.signature(cls.__new__).parameters.values()
        shown = [each for each in arguments if each.kind is not each.VAR_POSITIONAL]
        cls.__signature__ = inspect.Signature(shown)

    @classmethod
    def settings_known(cls) -> list[str]:
        """Names of all arguments and options."""
        shown = inspect.signature(cls).parameters.values()
        named = [each.name for each in shown if each.kind is not each.VAR_KEYWORD]
        return [*named, *(each.name for each in fields(Options) if each.name in cls.takes)]

    @classmethod
    def _merged(cls, options: Options | None, more: Mapping[str, Any]) -> Options:
        """One record of the options that are given together and by name.

        Raises
        ------
        SettingError, SettingTypeError
            One of them has no meaning here, or is given in both ways.
        """
        together = Options() if options is None else options
        if not isinstance(together, Options):
            raise SettingTypeError(
                f"options of type {type(together).__name__} is not a record of options: give "
                f"Options(...), or name them, as in {cls.__name__}(steps_per_draw=2)."
            )
        refuse_unknown(cls.__name__, [*more, *together.given], cls.settings_known())
        for name in sorted(set(more) & set(together.given)):
            raise SettingError(f"{name} is given by name and in options=: leave one of them out.")
        return replace(together, **more)

    @classmethod
    def _made(cls, arguments: Mapping[str, Any]) -> Any:
        """The step method inside a model, and its settings outside.

        Parameters
        ----------
        arguments : mapping
            Local variables of ``__new__``: its arguments, by their names.
        """
        refuse_positional(cls, arguments["args"])
        options = cls._merged(arguments["options"], arguments["more"])
        own = {each.name for each in fields(Request)} & set(arguments)
        request = Request(**{name: arguments[name] for name in own} | {"options": options})
        held = _held(cls, request)
        return held if _is_without_model(request) else held.setup()

    @clean_interrupt
    @without_traces()
    def setup(self, model: pm.Model | None = None) -> Any:
        """Set up the step method for a model, as ``pm.sample`` does when sampling begins.

        Parameters
        ----------
        model : pymc.Model, optional
            By default, the model on the context stack.

        Returns
        -------
        step method
            It has `explain`, which says what it is, and goes to ``pm.sample(step=...)``.
        """
        model = checked_model(self._request.model if model is None else model)
        with setup_progress(type(self).__name__, "looking at the model") as say:
            step = self._set_up(checked_variables(self._request.vars, model), model, say)
        step.constructed_as = type(self).__name__
        step.end_setup(say.seconds)
        return step

    def _set_up(self, variables: list, model: pm.Model, say: Stage) -> Any:
        """The step method on some value variables of a model; the stages are shown."""
        raise NotImplementedError

    def explain(self) -> str:
        """What is subsampled, what is evaluated in full, and why, in plain language.

        Returns
        -------
        str
            Some lines of text.

        Raises
        ------
        AttributeError
            The step method is not set up yet.
        """
        return self.__getattr__("explain")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self!r} has no {name!r} before it is made for a model: construct it inside of "
            "`with pm.Model():`, or call setup(model)."
        )

    def __reduce__(self) -> tuple:
        return _held, (type(self), self._request)

    def __repr__(self) -> str:
        usual = {p.name: p.default for p in inspect.signature(type(self)).parameters.values()}
        usual |= {field.name: field.default for field in fields(Options)}
        words = [
            f"{name}={value!r}"
            for name, value in self._request.given.items()
            if name in self.settings_known() and not is_same(value, usual.get(name))
        ]
        return f"{type(self).__name__}({', '.join(words)})"


def _held(cls: type[Configured], request: Request) -> Configured:
    held = object.__new__(cls)
    held._request = request
    return held


def _is_without_model(request: Request) -> bool:
    """Whether no model is given, nor is one on the context stack."""
    if request.model is not None:
        return False
    try:
        pm.modelcontext(None)
    except TypeError:
        return True
    return False


def with_model(step: Any, model: pm.Model) -> Any:
    """The ``step`` argument of ``pm.sample``, set up for its model.

    Parameters
    ----------
    step : step method, or list of them
        Step methods that are set up are returned unchanged.
    model : pymc.Model
        The model that is sampled.
    """
    if isinstance(step, list | tuple):
        return [with_model(each, model) for each in step]
    return step.setup(model) if isinstance(step, Configured) else step


def check_step_methods(
    model: pm.Model,
    steps: list[Any],
    nuts_sampler: str | None,
    nuts_settings: dict[str, Any],
    var_names: Sequence[str] | None,
    chains: ChainsToCome | None = None,
) -> bool:
    """Reject step methods of other models, and settings without effect beside a step method.

    What `AusterityMH` was left to choose takes the settings of NUTS where it is NUTS, and does
    without them where it is not.

    Parameters
    ----------
    model : pymc.Model
        The model that is sampled.
    steps : list of step methods
        The user's step methods.
    nuts_sampler : str or None
        Name of a sampler that replaces PyMC's NUTS.
    nuts_settings : dict
        Settings of NUTS.
    var_names : sequence of str or None
        Variables to store; None stores all.
    chains : ChainsToCome, optional
        With them, draws of PyMC's NUTS for all variables are those of ``pm.sample()``.

    Returns
    -------
    bool
        Whether the settings of NUTS have done their work, so that PyMC must not see them.

    Raises
    ------
    SettingError
        The reason, in one sentence. Runs without a step method of this package are not checked.

    Warns
    -----
    AusterityWarning
        A Deterministic with one entry per row is computed and stored at every draw.
    """
    for step in steps:
        if isinstance(step, type) and issubclass(step, Configured):
            name = step.__name__
            raise SettingTypeError(f"step={name} is a class: write step={name}().")
    ours = [step for step in steps if isinstance(step, AusterityStep)]
    for step in ours:
        step.refuse_other_model(model)
    if not ours:
        return False
    refuse_duplicates(model)
    name = ours[0].constructed_as
    _refuse_moved_twice(steps)
    if nuts_sampler is not None:
        raise SettingError(
            f"nuts_sampler={nuts_sampler!r} samples all variables by itself and takes no step "
            f"method such as {name}: leave out nuts_sampler or step."
        )
    is_used = _use_settings_of_nuts(model, steps, ours, nuts_settings)
    alone = steps[0]
    if chains and isinstance(alone, AllRowsNUTS) and set(alone.vars) == set(model.value_vars):
        alone.begin_as_pymc(chains)
    by_row = {name for step in ours for name in step.deterministics_by_row}
    stored = by_row if var_names is None else by_row & set(var_names)
    for deterministic in sorted(stored):
        ordered = deterministic.removesuffix("_probs")  # categories, which have them by default
        if ordered != deterministic and ordered in model.named_vars:
            remedy = f"give compute_p=False to the distribution of {ordered!r}"
        else:
            remedy = (
                "leave it out with pm.sample(var_names=[...]) and compute it afterwards with "
                "pm.compute_deterministics"
            )
        warn_user(
            f"Deterministic {deterministic!r} has one entry per row ({ours[0].n_rows:,}), which "
            f"PyMC computes and stores at every draw: {remedy}."
        )
    return is_used


def _use_settings_of_nuts(
    model: pm.Model, steps: list[Any], ours: list[AusterityStep], nuts_settings: dict[str, Any]
) -> bool:
    """Whether the settings are used up; PyMC uses them for variables that it moves by NUTS."""
    on_all_rows = [step for step in ours if isinstance(step, AllRowsNUTS)]
    for step in on_all_rows:
        step.use(nuts_settings)
    moved = {variable for step in steps for variable in step.vars}
    are_all_moved = set(model.continuous_value_vars) <= moved
    if on_all_rows or not nuts_settings or not are_all_moved:
        return are_all_moved
    settings = ", ".join(f"{key}={value!r}" for key, value in nuts_settings.items())
    if not all(step.is_chosen_by_default for step in ours):
        raise SettingError(
            f"{settings} has no effect, because {ours[0].constructed_as} updates all variables "
            "and NUTS is not used: leave it out."
        )
    _log.info(f"{settings} has no effect, because NUTS is not used.")
    return True


def _refuse_moved_twice(steps: list[Any]) -> None:
    """Reject a variable of several step methods, where each one alone would do."""
    for one, other in itertools.combinations(steps, 2):
        twice = [variable.name for variable in one.vars if variable in other.vars]
        if twice:
            both = (getattr(step, "constructed_as", type(step).__name__) for step in (one, other))
            raise SettingError(
                f"{', '.join(map(repr, twice))} is moved by both {' and '.join(both)}: name "
                "the variables of each with vars=, or leave one of them out."
            )
